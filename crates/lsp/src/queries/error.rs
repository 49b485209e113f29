//! Why a question has no answer. That there is nothing to be found is an answer, and no error.

use std::path::PathBuf;

use crate::text::{EditError, PositionError, UriError};

/// An error that the server answered with.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct Refusal {
    /// The protocol's number.
    pub code: i64,
    /// The server's words.
    pub message: String,
}

/// A question was not answered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum QueryError {
    /// The server cannot do this.
    #[error("{server} does not offer {what}")]
    Unsupported {
        /// Which server.
        server: String,
        /// What was wanted of it.
        what: &'static str,
    },
    /// The server answered with an error.
    #[error("{server} refused {method}")]
    Refused {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
        /// What it said.
        #[source]
        refusal: Refusal,
    },
    /// The server's answer is not one of those that the protocol knows.
    #[error("{server} gave a broken answer to {method}: {problem} at {place}")]
    Broken {
        /// Which server.
        server: String,
        /// What it was asked.
        method: &'static str,
        /// Where in the answer.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// The server knows the answer only later.
    #[error("{server} has no diagnostics for version {version} yet")]
    NotReady {
        /// Which server.
        server: String,
        /// The version of the document that they are wanted for.
        version: i32,
    },
    /// The place that was asked about is not there.
    #[error(transparent)]
    Position(#[from] PositionError),
    /// The file cannot be named to the server.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The file that was asked about is not open.
    #[error("{} is not open in the server", path.display())]
    NotOpen {
        /// The file.
        path: PathBuf,
    },
    /// What stands there has no name that could be changed.
    #[error("{server} says that nothing can be renamed there")]
    NotRenamable {
        /// Which server.
        server: String,
    },
    /// An edit cannot be applied.
    #[error("{server} wants to edit {place} in a way that cannot be done")]
    BadEdit {
        /// Which server.
        server: String,
        /// Which file.
        place: String,
        /// Why not.
        #[source]
        problem: EditError,
    },
    /// An edit is for something that cannot be read as a text, so nobody could say what it would do.
    #[error("{server} wants to edit {place}, which cannot be read")]
    Unreadable {
        /// Which server.
        server: String,
        /// What.
        place: String,
    },
    /// An edit that is over the limit; a part of it would be worse than nothing.
    #[error("{server} wants to make {edits} edits, and at most {limit} are taken")]
    TooManyEdits {
        /// Which server.
        server: String,
        /// How many.
        edits: usize,
        /// The setting.
        limit: usize,
    },
}
