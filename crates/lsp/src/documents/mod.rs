//! Which documents are open in a server, and for which callers.
//!
//! [`Documents`] tracks the documents of one server, across all its generations. A caller that asks about a file takes
//! a [`Lease`] on it; as long as there is one, the server has the file open with its latest text. A lease is returned
//! in its destructor, so it is returned on every path.
//!
//! There is no queue of messages. For each document, the state has its target (`wanted`) and what the server knows
//! (`told`), and the [`Outbox`] makes the next message from the difference. So the messages of a document are in the
//! order of its changes no matter who made them, ten changes in a row may become one message, nothing can pile up, and
//! a new generation of the server gets everything again because the state forgets what the old one knew.
//!
//! Rules:
//!
//! 1. Making a message and counting it as told is one step, under the lock. The one outbox of a generation sends them
//!    one by one. If it can't send one, we no longer know what the server knows, and the generation must end.
//! 2. A version is never used for two texts of one path, not even after the document was closed: a late answer for an
//!    old text can never look like one for the current text.
//! 3. A document without a lease stays open for a while, so that the next question about it meets a warm server: the 64
//!    most recently used ones (a setting), for five minutes (a setting). Its text is then the last known one, so a
//!    caller that learns that the file has changed calls [`Documents::changed_on_disk`], which closes it.
//! 4. When a generation ends, documents without a lease are dropped. The others are opened again, ordered by
//!    path, at their latest version.
//!
//! **Who owns the state:** [`Documents`], behind one lock that is held no longer than it takes to compare two
//! texts. The decisions are pure functions in `state.rs` and `document.rs`.

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
