//! Disk space for the log's own records.
//!
//! When a command has filled the disk, it must still be possible to record that the command ended: that frees the
//! space again, and somebody waits for it. So
//!
//! 1. the write-ahead log allocates its next [`AHEAD_BYTES`] before it needs them, and nobody else can take them;
//! 2. content of files, which is large and can be stored later, is refused while less than [`CONTENT_BYTES`] is
//!    free.

use std::{fs::OpenOptions, io, path::Path};

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};

use super::open::wal_path;
use crate::error::LogError;

/// How much the write-ahead log allocates ahead: some hundred commits.
const AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// Content of files leaves this much free.
const CONTENT_BYTES: u64 = 16 * 1024 * 1024;

/// Allocates space for the write-ahead log of a file. It costs nothing if the space is allocated already.
pub(super) fn allocate_ahead(path: &Path) {
    match allocate(&wal_path(path)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            tracing::debug!("the disk is full, so no space is reserved for the log");
        }
        Err(error) => tracing::warn!(%error, "could not reserve disk space for the log"),
    }
}

/// Allocates blocks behind the end of the file, which keeps its length.
fn allocate(wal: &Path) -> io::Result<()> {
    // SQLite locks the database file and its index, not the write-ahead log, so closing this descriptor releases
    // no lock.
    let wal = OpenOptions::new().write(true).open(wal)?;
    match fallocate(&wal, FallocateFlags::KEEP_SIZE, 0, AHEAD_BYTES) {
        // Some file systems can't allocate ahead.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn check_content_space(path: &Path) -> Result<(), LogError> {
    // If the free space is unknown, the write itself will find out.
    let Ok(found) = statvfs(path) else {
        return Ok(());
    };
    if found.f_bavail.saturating_mul(found.f_frsize) < CONTENT_BYTES {
        return Err(LogError::DiskFull);
    }
    Ok(())
}
