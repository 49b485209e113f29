//! A snapshot in a file of its own.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::error::{BackupError, LogError};

/// Writes a copy next to the target, makes it durable, and only then gives it its name. It never replaces an
/// existing file.
pub(super) fn backup(connection: &Connection, path: &Path) -> Result<(), BackupError> {
    let failed = |source: io::Error| BackupError::File {
        path: path.to_owned(),
        source,
    };
    if path.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(path.to_owned()));
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    // The file is removed again on every path but the last.
    let copy = tempfile::Builder::new()
        .prefix(".backup-")
        .tempfile_in(&directory)
        .map_err(failed)?;
    let name = copy.path().to_str();
    let name = name.ok_or_else(|| failed(io::Error::other("the name of the directory is not UTF-8")))?;
    connection
        .execute("VACUUM INTO ?1", [name])
        .map_err(LogError::from)?;
    copy.as_file().sync_all().map_err(failed)?;
    copy.persist_noclobber(path).map_err(|error| {
        if error.error.kind() == io::ErrorKind::AlreadyExists {
            BackupError::Exists(path.to_owned())
        } else {
            failed(error.error)
        }
    })?;
    File::open(&directory)
        .and_then(|directory| directory.sync_all())
        .map_err(failed)
}
