//! Opens the file: takes its lock, checks its schema, and sets up connections.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::{mark::OpenMark, schema};
use crate::{
    error::{LogError, OpenError},
    file_lock::{FileLock, LockError},
};

/// Readers and the writer never block each other; only a checkpoint may, for a moment.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The write-ahead log is truncated to this size when it restarts. SQLite checkpoints every four megabytes by
/// itself, so the log is only longer after a long reader or a large transaction.
const WAL_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
/// How many prepared statements each connection caches: about as many as there are.
const CACHED_STATEMENTS: usize = 64;

/// Locks the file for this process, and opens it for the writer.
pub(super) fn open(path: &Path) -> Result<(Connection, FileLock, OpenMark), OpenError> {
    let failed = |source: LogError| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let lock = lock(path)?;
    // This comes first, because opening the file creates a write-ahead log.
    let mark = OpenMark::look(path).map_err(|error| failed(error.into()))?;
    refuse_newer(path)?;
    let mut connection =
        connect(path, OpenFlags::SQLITE_OPEN_CREATE).map_err(|error| failed(error.into()))?;
    set_up(&connection)
        .and_then(|()| schema::migrate(&mut connection))
        .map_err(|error| failed(error.into()))?;
    mark.set().map_err(|error| failed(error.into()))?;
    Ok((connection, lock, mark))
}

/// Opens a file that no process has open for reading only, without changing it.
pub(super) fn look(path: &Path) -> Result<(Connection, FileLock), OpenError> {
    let lock = lock(path)?;
    refuse_newer(path)?;
    Ok((read_only(path)?, lock))
}

/// Rejects a file with a newer schema without leaving a trace in it. A normal connection would move what a killed
/// process left in the write-ahead log when it is closed.
fn refuse_newer(path: &Path) -> Result<(), OpenError> {
    if std::fs::metadata(path).map_or(true, |metadata| metadata.len() == 0) {
        return Ok(());
    }
    let found = schema::current(&read_only(path)?).map_err(|error| OpenError::File {
        path: path.to_owned(),
        source: error.into(),
    })?;
    if found > schema::NEWEST {
        return Err(OpenError::NewerSchema {
            path: path.to_owned(),
            found,
            known: schema::NEWEST,
        });
    }
    Ok(())
}

fn lock(path: &Path) -> Result<FileLock, OpenError> {
    FileLock::take(&beside(path, ".lock"), "").map_err(|error| match error {
        LockError::Taken { holder } => OpenError::Taken {
            path: path.to_owned(),
            pid: holder.map(|holder| holder.pid),
        },
        LockError::File { source, .. } => OpenError::File {
            path: path.to_owned(),
            source: source.into(),
        },
    })
}

/// A connection that leaves no trace.
fn read_only(path: &Path) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Ok(connection)
    });
    connection.map_err(|error| OpenError::File {
        path: path.to_owned(),
        source: error.into(),
    })
}

pub(super) fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // Only takes effect on a file without tables. It allows free pages to be returned step by step later.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_LIMIT_BYTES)?;
    // Dropped content is overwritten, so a secret that was removed from the log isn't left in the file.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(())
}

/// The write-ahead log of a file.
pub(super) fn wal_path(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
