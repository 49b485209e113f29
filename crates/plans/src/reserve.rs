//! Room on the disk that is given back when a command has taken all the rest: enough to write down that it is over.
//!
//! Without it nothing could be written that would make room, and whoever waits for the end of the command would wait forever.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

/// How much is kept: some thousand commits of the log.
const RESERVE_BYTES: u64 = 8 * 1024 * 1024;
/// It is only made where this much is free beside it.
const FREE_BYTES: u64 = 64 * 1024 * 1024;

/// The reserve: a file that holds nothing.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Below the directory of the service.
    pub(crate) fn below(directory: &Path) -> Self {
        Self {
            path: directory.join("reserve"),
        }
    }

    /// Makes it, if it is not there and there is room. It blocks.
    pub(crate) fn keep(&self) {
        if let Err(error) = self.make() {
            tracing::warn!(%error, path = %self.path.display(), "no room is kept for a full disk");
        }
    }

    fn make(&self) -> io::Result<()> {
        if self.path.try_exists()? {
            return Ok(());
        }
        let directory = self.path.parent().unwrap_or(&self.path);
        let found = statvfs(directory)?;
        if found.f_bavail.saturating_mul(found.f_frsize) < RESERVE_BYTES + FREE_BYTES {
            return Ok(());
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&self.path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
            Ok(()) => Ok(()),
            // Not every file system can set room apart.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                let piece = vec![0; 64 * 1024];
                (0..RESERVE_BYTES / piece.len() as u64).try_for_each(|_| file.write_all(&piece))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives it back. It blocks.
    pub(crate) fn give_back(&self) {
        match fs::remove_file(&self.path) {
            Ok(()) => tracing::warn!("the log takes nothing; the room that was kept for that is given back"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "the room that was kept for a full disk is not given back"),
        }
    }
}
