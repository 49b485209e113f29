//! The log of a background daemon: a file that is rotated when it is full, so there are never more than two.
//!
//! The daemon's standard error is this file, so it also contains what is not logged through `tracing`, such as a panic.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use tracing_subscriber::fmt::MakeWriter;

/// A log longer than this is rotated. There are never more than two files of about this size.
pub(crate) const LOG_LIMIT_BYTES: u64 = 8 << 20;

/// Opens a log for appending. Rotates it first if it is too long.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LOG_LIMIT_BYTES) {
        match fs::rename(path, put_aside(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    open_at_end(path)
}

fn open_at_end(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

fn put_aside(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// The standard error of a daemon, redirected to the log at a path.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    /// Held while a line is written, so that no other write comes between the length check and the rotation.
    turn: Arc<Mutex<()>>,
}

impl LogFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            turn: Arc::default(),
        }
    }

    /// Continues in a new file if this one is full. Leaves a file alone that is not the one at our path.
    fn make_room(&self) -> io::Result<()> {
        let current = rustix::fs::fstat(rustix::stdio::stderr())?;
        if u64::try_from(current.st_size).is_ok_and(|length| length <= LOG_LIMIT_BYTES) {
            return Ok(());
        }
        let named = fs::symlink_metadata(&self.path)?;
        if (named.dev(), named.ino()) != (current.st_dev, current.st_ino) {
            return Ok(());
        }
        fs::rename(&self.path, put_aside(&self.path))?;
        let next = open_at_end(&self.path)?;
        rustix::stdio::dup2_stderr(&next)?;
        Ok(())
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.make_room().is_err() {
            // Without a second file, the log has to start over in this one, or it would grow forever.
            rustix::fs::ftruncate(rustix::stdio::stderr(), 0)?;
        }
        io::stderr().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogFile {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_grown_too_long_is_put_aside_at_a_start() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("daemon.log");
        let length = |path: &Path| fs::metadata(path).unwrap().len();
        fs::write(&path, "kept\n").unwrap();
        assert_eq!(open(&path).unwrap().metadata().unwrap().len(), 5);
        let grown = File::options().write(true).open(&path).unwrap();
        grown.set_len(LOG_LIMIT_BYTES + 1).unwrap();
        assert_eq!(open(&path).unwrap().metadata().unwrap().len(), 0);
        assert_eq!(length(&put_aside(&path)), LOG_LIMIT_BYTES + 1);
    }
}
