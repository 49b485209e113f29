//! Sizes, integrity, and giving space back.

use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;

use super::{BUSY_TIMEOUT, wal_path};
use crate::{error::LogError, store::Sizes};

/// How many free pages one step gives back, while commits wait: a megabyte of 4 KiB pages.
const VACUUM_PAGES: u32 = 256;
/// How long commits wait for readers so that the write-ahead log can start over. If that is not enough, it is done
/// another time.
const TRUNCATE_TIMEOUT: Duration = Duration::from_millis(100);
/// The same, where nobody asked for it.
const RESTART_TIMEOUT: Duration = Duration::from_millis(50);
/// A write-ahead log that is longer than this has not started over for a while.
const LONG_WAL_BYTES: u64 = 32 * 1024 * 1024;
/// How many problems are listed; more of them say nothing new.
const PROBLEMS: u32 = 100;

/// Whether a step of giving space back was the last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Vacuumed {
    More,
    All,
}

pub(super) fn sizes(connection: &Connection, path: &Path) -> rusqlite::Result<Sizes> {
    let transaction = connection.unchecked_transaction()?;
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let page_bytes = pragma("page_size")?;
    let wal_bytes = fs::metadata(wal_path(path)).map_or(0, |metadata| metadata.len());
    // Sequence numbers have no gaps, so that events need not be counted one by one.
    let (streams, events) = transaction.query_row(
        "SELECT count(*), coalesce(sum(last_sequence - first_sequence + 1), 0) FROM streams",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (blobs, blob_bytes) = transaction.query_row(
        "SELECT count(*), coalesce(sum(stored_bytes), 0) FROM blobs WHERE id IS NOT NULL",
        [],
        |row| Ok((row.get(0)?, row.get::<_, u64>(1)?)),
    )?;
    // What several blobs have counts for each of them above, and is there once.
    let shared: u64 = transaction.query_row(
        "SELECT coalesce(sum(length(body) * max(0, (
             SELECT count(*) - 1 FROM shared_chunks JOIN blobs ON blobs.number = shared_chunks.blob
             WHERE piece = pieces.number AND blobs.id IS NOT NULL))), 0)
         FROM pieces",
        [],
        |row| row.get(0),
    )?;
    Ok(Sizes {
        total_bytes: pragma("page_count")? * page_bytes + wal_bytes,
        free_bytes: pragma("freelist_count")? * page_bytes,
        wal_bytes,
        streams,
        events,
        blobs,
        blob_bytes: blob_bytes.saturating_sub(shared),
    })
}

/// What SQLite finds wrong with its own pages and indexes.
pub(super) fn problems(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA integrity_check({PROBLEMS})"))?;
    let rows = check.query_map([], |row| row.get::<_, String>(0))?;
    let mut problems = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    problems.retain(|problem| problem != "ok");
    Ok(problems)
}

/// Gives some free pages back to the file system.
pub(super) fn vacuum(connection: &Connection) -> Result<Vacuumed, LogError> {
    let free = || connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u64>(0));
    let before = free()?;
    // The statement gives one page back for each row that is taken from it.
    let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let after = free()?;
    Ok(if after == 0 || after == before {
        Vacuumed::All
    } else {
        Vacuumed::More
    })
}

/// Copies what the write-ahead log holds into the file, as far as readers allow. It keeps nobody waiting.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Whether the write-ahead log is where it should be.
pub(super) fn has_wal(connection: &Connection) -> bool {
    let path = connection.path().map(Path::new).map(wal_path);
    path.is_none_or(|path| path.exists())
}

/// Makes the write-ahead log empty if it has grown long all the same. With readers that follow each other without a
/// pause it would never start over by itself.
pub(super) fn keep_wal_short(connection: &Connection) -> Result<(), LogError> {
    let path = connection.path().map(Path::new).map(wal_path);
    let bytes = path
        .and_then(|path| fs::metadata(path).ok())
        .map_or(0, |metadata| metadata.len());
    if bytes > LONG_WAL_BYTES {
        truncate_wal_within(connection, RESTART_TIMEOUT)?;
    }
    Ok(())
}

/// Makes the write-ahead log empty, unless a reader is in the way.
pub(super) fn truncate_wal(connection: &Connection) -> Result<(), LogError> {
    truncate_wal_within(connection, TRUNCATE_TIMEOUT)
}

fn truncate_wal_within(connection: &Connection, timeout: Duration) -> Result<(), LogError> {
    connection.busy_timeout(timeout)?;
    let truncated = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(truncated?)
}
