//! Whether the write-ahead log was taken away while it held writes.
//!
//! SQLite keeps the newest writes beside the file. It removes that log itself when the file is closed as it should be; when
//! the process is killed, it stays and is read at the next start. If somebody removes it in between, SQLite finds nothing
//! wrong, and the writes are gone without a word. So a mark says that the file is open, and that there is such a log: a
//! mark without a log at the next start means that writes were lost.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::open::{beside, wal_path};

/// The mark of a file that is open.
#[derive(Debug)]
pub(super) struct OpenMark {
    mark: PathBuf,
    lost: PathBuf,
}

impl OpenMark {
    /// Looks at what the last process left, before the file is opened. If writes were lost, that is written down.
    pub(super) fn look(path: &Path) -> io::Result<Self> {
        let own = Self {
            mark: beside(path, ".open"),
            lost: beside(path, ".lost-writes"),
        };
        if own.mark.exists() && path.exists() && !wal_path(path).exists() {
            tracing::error!(
                path = %path.display(),
                "the write-ahead log was removed while no daemon ran; the last writes before that are lost"
            );
            fs::rename(&own.mark, &own.lost)?;
        }
        Ok(own)
    }

    /// The file is open, and its log is there.
    pub(super) fn set(&self) -> io::Result<()> {
        File::create(&self.mark)?.sync_all()?;
        match self.mark.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }

    /// The file is about to be closed, and its log to be removed.
    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_file(&self.mark) {
            tracing::warn!(%error, "the mark of an open log stays behind");
        }
    }

    /// The note that writes were lost, until somebody removes it.
    pub(super) fn lost_writes(&self) -> Option<PathBuf> {
        self.lost.exists().then(|| self.lost.clone())
    }
}
