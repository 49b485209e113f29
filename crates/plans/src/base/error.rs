//! What can go wrong with a base.

use std::io;
use std::path::{Path, PathBuf};

use crate::RelPath;
use crate::scan::ScanError;

#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    #[error("there is no directory {} (any more)", workspace.display())]
    Gone { workspace: PathBuf },
    #[error("cancelled")]
    Cancelled,
    #[error("`{path}` has changed meanwhile")]
    Differs { path: RelPath },
    #[error("{what} failed")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
}

impl BaseError {
    /// An I/O error, with what was being done and where.
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source }
    }

    /// Why a scan of a workspace failed.
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
