//! Why a question has no answer. "Nothing found" is an answer, not an error.

use std::path::PathBuf;

use crate::text::{EditError, PositionError, UriError};

/// An error that the server answered with.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}

/// A question was not answered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum QueryError {
    #[error("{server} does not offer {what}")]
    Unsupported { server: String, what: &'static str },
    #[error("{server} refused {method}")]
    Refused {
        server: String,
        method: &'static str,
        #[source]
        refusal: Refusal,
    },
    #[error("{server} gave an invalid answer to {method}: {problem} at {place}")]
    Broken {
        server: String,
        method: &'static str,
        place: String,
        problem: String,
    },
    #[error("{server} has no diagnostics for version {version} yet")]
    NotReady {
        server: String,
        /// The requested version of the document.
        version: i32,
    },
    #[error(transparent)]
    Position(#[from] PositionError),
    #[error(transparent)]
    Uri(#[from] UriError),
    #[error("{} is not open in the server", path.display())]
    NotOpen { path: PathBuf },
    #[error("{server} says that nothing can be renamed there")]
    NotRenamable { server: String },
    #[error("{server} wants to edit {place} in a way that is not possible")]
    BadEdit {
        server: String,
        place: String,
        /// The reason.
        #[source]
        problem: EditError,
    },
    /// The edit is for something that can't be read as text.
    #[error("{server} wants to edit {place}, which cannot be read")]
    Unreadable { server: String, place: String },
    /// The edit is over the limit; a partial edit would be worse than no edit.
    #[error("{server} wants to make {edits} edits; the limit is {limit}")]
    TooManyEdits {
        server: String,
        edits: usize,
        limit: usize,
    },
}
