//! The same rows, written by hand with rusqlite: one thread, prepared statements, nothing checked.
//!
//! The log itself creates the file with its streams, so schema and settings are the same. The loop leaves behind a
//! file that the log could continue with: heads, events, and the version counter once per transaction. Beyond that it
//! leaves out whatever a loop that owns its data can leave out: it looks up no versions, knows the row of every
//! stream, sends no answers and wakes no readers.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use rusqlite::{Connection, params};

use super::{
    files::path_in,
    rows::{EVENT_BYTES, EVENT_KIND, HEAD_BYTES, KIND, STATUS, body},
};

const AT_MS: i64 = 1_700_000_000_000;

/// Writes a head and an event for each commit, to each stream in turn, with the given number of commits per
/// transaction. Returns how long that took, not counting creating and opening the file.
pub(super) fn write(directory: &Path, commits: u64, commits_per_transaction: u64) -> Result<Duration> {
    let connection = Connection::open(path_in(directory))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    ensure!(mode == "wal", "the log made a file in mode `{mode}`");
    let streams: Vec<i64> = connection
        .prepare("SELECT number FROM streams ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let (head, event) = (body(HEAD_BYTES), body(EVENT_BYTES));
    let mut update = connection.prepare(
        "UPDATE streams SET version = ?2, last_sequence = ?3, kind = ?4, status = ?5, body = ?6
         WHERE number = ?1",
    )?;
    let mut insert = connection
        .prepare("INSERT INTO events (stream, sequence, at_ms, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut count = connection.prepare("UPDATE meta SET value = ?1 WHERE key = 'version'")?;

    let began = Instant::now();
    let mut written = 0;
    while written < commits {
        let transaction = connection.unchecked_transaction()?;
        let end = commits.min(written + commits_per_transaction);
        for index in written..end {
            let stream = streams[index as usize % streams.len()];
            let sequence = index / streams.len() as u64 + 1;
            let version = streams.len() as u64 + index + 1;
            update.execute(params![stream, version, sequence, KIND, STATUS, &head[..]])?;
            insert.execute(params![stream, sequence, AT_MS, EVENT_KIND, &event[..]])?;
        }
        count.execute([streams.len() as u64 + end])?;
        transaction.commit()?;
        written = end;
    }
    Ok(began.elapsed())
}

/// The number of events in the file of a closed log.
pub(super) fn count_events(directory: &Path) -> Result<u64> {
    let connection = Connection::open(path_in(directory))?;
    Ok(connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?)
}
