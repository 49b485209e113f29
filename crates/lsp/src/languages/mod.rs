//! The entry point: questions about code, answered by whichever servers can.
//!
//! [`Languages`] puts the rest together. A question names a file; the registry determines which servers are for it; the
//! lifecycle manager keeps them up; the server gets the current state of the file; and the conversation with it ends in
//! an answer in our own types.
//!
//! **Invariant:** an answer is about files as they were when the question came, or later: every open text is compared
//! with its file before each question, and a question that involves other files first waits until the server has been
//! notified of all changes. Nothing that is known about a file when a question comes is sent after it.
//!
//! **Invariant:** if a server exits during a question, the next process is asked again, until the caller's time is over
//! or the server is given up. Questions change nothing; anything that might is never repeated.

mod ask;
mod by_hand;
mod choices;
mod conversation;
mod disk;
mod error;
mod open_texts;
mod representatives;
mod service;
mod telling;
mod view;
mod workspace;

pub use ask::{Answered, Ask, WhenIndexing, WhenStarting};
pub use disk::ReadTextError;
pub use error::AskError;
pub(crate) use open_texts::OpenTexts;
pub use service::{Languages, LanguagesOptions, ServerCheck};
pub use view::{Detail, ServerView};
pub use workspace::PathError;
