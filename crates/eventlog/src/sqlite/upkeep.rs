//! Sizes, integrity checks, and returning space.

use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;

use super::{BUSY_TIMEOUT, wal_path};
use crate::{error::LogError, store::Sizes};

/// How many free pages one step returns while commits wait: a megabyte of 4 KiB pages.
const VACUUM_PAGES: u32 = 256;
/// How long commits wait for readers so that the write-ahead log can restart. If that isn't enough, it is tried
/// again later.
const TRUNCATE_TIMEOUT: Duration = Duration::from_millis(100);
/// The same, if nobody asked for it.
const RESTART_TIMEOUT: Duration = Duration::from_millis(50);
/// A write-ahead log that is longer than this hasn't restarted for a while.
const LONG_WAL_BYTES: u64 = 32 * 1024 * 1024;
/// How many problems are listed. More would add nothing.
const PROBLEMS: u32 = 100;

/// Whether a vacuum step was the last one.
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
    // Sequence numbers have no gaps, so events needn't be counted one by one.
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
    // Shared bodies were counted for each of their blobs above, but exist once.
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

/// Returns some free pages to the file system.
pub(super) fn vacuum(connection: &Connection) -> Result<Vacuumed, LogError> {
    let free = || connection.pragma_query_value(None, "freelist_count", |row| row.get::<_, u64>(0));
    let before = free()?;
    // The statement returns one page for each row that is fetched from it.
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

/// Copies the write-ahead log into the file as far as readers allow. It blocks nobody.
pub(super) fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Whether the write-ahead log exists.
pub(super) fn has_wal(connection: &Connection) -> bool {
    let path = connection.path().map(Path::new).map(wal_path);
    path.is_none_or(|path| path.exists())
}

/// Empties the write-ahead log if it has grown long. With a constant stream of readers it would never restart by
/// itself.
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

/// Empties the write-ahead log, unless a reader is in the way.
pub(super) fn truncate_wal(connection: &Connection) -> Result<(), LogError> {
    truncate_wal_within(connection, TRUNCATE_TIMEOUT)
}

fn truncate_wal_within(connection: &Connection, timeout: Duration) -> Result<(), LogError> {
    connection.busy_timeout(timeout)?;
    let truncated = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(truncated?)
}
