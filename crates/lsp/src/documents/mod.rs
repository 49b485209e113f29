//! What is open in a server, and for whom.
//!
//! [`Documents`] is the book of one server, over all its generations. Whoever asks about a file takes a [`Lease`] on it;
//! as long as anybody holds one, the server has the file open at its latest text. What a lease must do when it is given
//! back happens in its destructor, so it happens on every path.
//!
//! The book does not keep a queue of messages. It knows for each document what it should be (`wanted`) and what the
//! server was told (`told`), and the [`Outbox`] makes the next message out of the difference. So the messages of a
//! document are in the order of its changes whoever made them, ten changes in a row may become one message, nothing can
//! pile up, and a new generation of the server is told everything again by forgetting what the old one was told.
//!
//! Rules:
//!
//! 1. A message is made and counted as told in one step, under the lock. The one outbox of a generation sends them one
//!    by one. If it cannot send one, nobody knows what the server knows: the generation must end.
//! 2. A version is never used for two texts of one path, not even after the document was closed: a late answer for an
//!    old text can never look like one for the current text.
//! 3. Without a lease a document stays open for a while, so that the next question about it is answered by a warm
//!    server: the 64 used last (a setting), for five minutes (a setting). Since its text is then the one that was
//!    known last, whoever learns that the file has changed says so with [`Documents::changed_on_disk`], which closes it.
//! 4. When a generation ends, documents without a lease are forgotten. The others are opened again, in the order of
//!    their paths, at their latest version.
//!
//! **Who owns the state:** [`Documents`], behind one lock that is held for no longer than it takes to compare two texts.
//! The decisions are pure and stand in `state.rs` and `document.rs`.

mod book;
mod document;
mod message;
mod outbox;
mod state;
mod sync;

pub use book::{DocumentError, Documents, Lease, SentError};
pub use message::{DocumentMessage, Outgoing, TextIs};
pub use outbox::Outbox;
pub use state::{DocumentCounts, DocumentSettings};
pub use sync::{ChangeSync, DocumentSync, OpenClose, SaveSync};
