//! What can go wrong with a base.

use std::io;
use std::path::{Path, PathBuf};

use crate::path::RelPath;
use crate::scan::ScanError;

/// A base could not be made, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// There is no such workspace, or it was taken away meanwhile.
    #[error("there is no directory {} (any more)", workspace.display())]
    Gone {
        /// Where it should be.
        workspace: PathBuf,
    },
    /// Whoever wanted it wants it no longer.
    #[error("cancelled")]
    Cancelled,
    /// A content is not the one that was said to be there. Look again, and try again.
    #[error("`{path}` has changed meanwhile")]
    Differs {
        /// The path.
        path: RelPath,
    },
    /// A file of it.
    #[error("{what} failed")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl BaseError {
    /// A failure of the system, with what was being done and where.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source }
    }

    /// Why a scan of a workspace did not come to its end.
    pub(super) fn of_scan(error: ScanError, workspace: &Path) -> Self {
        match error {
            ScanError::Cancelled => Self::Cancelled,
            ScanError::Gone => Self::Gone {
                workspace: workspace.to_owned(),
            },
            ScanError::Io(source) => Self::io("the scan of", workspace)(source),
        }
    }
}
