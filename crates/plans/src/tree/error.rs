//! Errors on a path of a tree.

use std::io;

use rustix::io::Errno;

use crate::RelPath;

#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("cannot open the directory {path}")]
    Root {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("`{path}` leads through a symlink or out of the tree")]
    LeadsOut { path: String },
    #[error("`{path}` does not exist")]
    NotFound { path: String },
    #[error("`{path}` or what it is in is not a directory")]
    NotADirectory { path: String },
    #[error("`{path}` is a directory")]
    IsADirectory { path: String },
    #[error("`{path}` is not a regular file")]
    NotAFile { path: String },
    #[error("`{path}` is there already")]
    Exists { path: String },
    #[error("the directory `{path}` is not empty")]
    NotEmpty { path: String },
    #[error("the file system of `{path}` cannot exchange two files in one step")]
    CannotExchange { path: String },
    #[error("`{path}` is larger than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("the new content of `{path}` cannot be read")]
    Source {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot {what} `{path}`")]
    Io {
        what: &'static str,
        path: String,
        #[source]
        source: io::Error,
    },
}

impl TreeError {
    /// Converts a system error from an operation on the last name of a path.
    pub(super) fn of(what: &'static str, path: &RelPath, error: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_string(), error.into());
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::NotFound { path },
            Some(Errno::NOTDIR) => Self::NotADirectory { path },
            Some(Errno::ISDIR) => Self::IsADirectory { path },
            Some(Errno::EXIST) => Self::Exists { path },
            Some(Errno::NOTEMPTY) => Self::NotEmpty { path },
            _ => Self::Io { what, path, source },
        }
    }

    /// Converts a system error from the walk to the last name's directory. An `ELOOP` or `EXDEV` means that the
    /// kernel refused.
    pub(super) fn on_the_way(path: &RelPath, error: Errno) -> Self {
        match error {
            Errno::LOOP | Errno::XDEV => Self::LeadsOut {
                path: path.to_string(),
            },
            error => Self::of("find", path, error),
        }
    }

    /// The same error for another path: the one that the user knows, where we used a name of our own.
    pub(crate) fn about(self, path: &RelPath) -> Self {
        match self {
            Self::Io { what, source, .. } => Self::Io {
                what,
                path: path.to_string(),
                source,
            },
            error => error,
        }
    }

    /// Whether it means that the tree has nothing at the path: a parent is missing, or is a file or a symlink.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::NotFound { .. } | Self::NotADirectory { .. } | Self::LeadsOut { .. }
        )
    }

    /// The matching system error kind.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotFound { .. } => io::ErrorKind::NotFound,
            Self::NotADirectory { .. } => io::ErrorKind::NotADirectory,
            Self::IsADirectory { .. } => io::ErrorKind::IsADirectory,
            Self::Exists { .. } => io::ErrorKind::AlreadyExists,
            Self::NotEmpty { .. } => io::ErrorKind::DirectoryNotEmpty,
            Self::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Self::CannotExchange { .. } => io::ErrorKind::Unsupported,
            Self::LeadsOut { .. } => io::ErrorKind::PermissionDenied,
            Self::NotAFile { .. } => io::ErrorKind::InvalidInput,
            Self::Root { source, .. } | Self::Source { source, .. } | Self::Io { source, .. } => {
                source.kind()
            }
        }
    }
}

impl From<TreeError> for io::Error {
    fn from(error: TreeError) -> Self {
        Self::new(error.kind(), error)
    }
}
