//! The way in: questions about code, answered by whichever servers know.
//!
//! [`Languages`] puts the rest together. A question names a file; the registry says which servers are for it; the
//! lifecycle manager has them up, whatever happens to them meanwhile; the server is made to know the file as it is on
//! disk; and the conversation with it ends in an answer in our own words.
//!
//! **Invariant:** an answer is about files as they were when the question came, or later: every open text is compared
//! with its file before each question, and a question that looks at other files first waits until the server has been
//! told of all changes. Nothing that is known of a file when a question comes is sent after it.
//!
//! **Invariant:** a question whose server went away is asked of the next process, until the caller's time is over or the
//! server is given up. A question changes nothing; what might is never repeated.

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
