//! Room on the disk for the log's own records.
//!
//! When a command has filled the disk, it must still be possible to write down that it is over: that is what gives the room
//! back, and what somebody waits for. So
//!
//! 1. the write-ahead log has its next [`AHEAD_BYTES`] on the disk before it needs them, and nobody else can take them;
//! 2. contents of files, which are large and can be stored later, are refused while less than [`CONTENT_BYTES`] is free.

use std::{fs::OpenOptions, io, path::Path};

use rustix::{
    fs::{FallocateFlags, fallocate, statvfs},
    io::Errno,
};

use super::open::wal_path;
use crate::error::LogError;

/// What the write-ahead log has ahead: some hundred commits.
const AHEAD_BYTES: u64 = 8 * 1024 * 1024;
/// Contents of files leave this much free.
const CONTENT_BYTES: u64 = 16 * 1024 * 1024;

/// Sets room apart for the write-ahead log of a file. What is set apart already costs nothing.
pub(super) fn set_apart(path: &Path) {
    match allocate(&wal_path(path)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            tracing::debug!("the disk is full, so no room is set apart for the log");
        }
        Err(error) => tracing::warn!(%error, "no room is set apart for the log in case the disk is full"),
    }
}

/// The file keeps its length, and only gets the blocks behind it.
fn allocate(wal: &Path) -> io::Result<()> {
    // SQLite locks the file and its index, not the write-ahead log; so closing it takes no lock away.
    let wal = OpenOptions::new().write(true).open(wal)?;
    match fallocate(&wal, FallocateFlags::KEEP_SIZE, 0, AHEAD_BYTES) {
        // Not every file system can.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether there is room for contents of files.
pub(super) fn for_content(path: &Path) -> Result<(), LogError> {
    // Where nobody can say how much is free, the write itself finds out.
    let Ok(found) = statvfs(path) else {
        return Ok(());
    };
    if found.f_bavail.saturating_mul(found.f_frsize) < CONTENT_BYTES {
        return Err(LogError::DiskFull);
    }
    Ok(())
}
