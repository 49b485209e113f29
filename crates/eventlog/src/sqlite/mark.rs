//! Detects whether the write-ahead log was removed while it had writes.
//!
//! SQLite keeps the newest writes next to the file. It removes that log itself when the file is closed properly;
//! when the process is killed, the log stays and is read at the next start. If somebody removes it in between,
//! SQLite notices nothing, and the writes are silently lost. So a mark file says that the database is open and
//! has such a log: a mark without a log at the next start means that writes were lost.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::open::{beside, wal_path};

#[derive(Debug)]
pub(super) struct OpenMark {
    mark: PathBuf,
    lost: PathBuf,
}

impl OpenMark {
    /// Checks what the last process left, before the file is opened. If writes were lost, that is recorded.
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

    /// The file is open, and its log exists.
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
            tracing::warn!(%error, "the mark of an open log could not be removed");
        }
    }

    /// The record that writes were lost, until somebody deletes it.
    pub(super) fn lost_writes(&self) -> Option<PathBuf> {
        self.lost.exists().then(|| self.lost.clone())
    }
}
