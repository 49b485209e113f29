//! One commit inside the open transaction: look first, then write, so that a refused commit has written nothing.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use rusqlite::{Connection, OptionalExtension, params};

use super::{blobs, heads::head, leases::Leases};
use crate::{
    blob::BlobId,
    commit::{Commit, CommitError, Committed, Event, Head, Write},
    error::LogError,
    names::{Sequence, StreamId, Version},
};

/// What a commit did: its answer, and what the tails are to be told once it is on disk.
pub(super) type Applied = (Vec<Committed>, Vec<(StreamId, Vec<Arc<Event>>)>);

/// A stream as the check found it.
struct Found {
    number: i64,
    last_sequence: u64,
}

pub(super) fn commit(
    connection: &Connection,
    commit: &Commit,
    leases: &Leases,
    now: Instant,
    mut next_version: impl FnMut() -> Version,
) -> Result<Applied, CommitError> {
    if let Some(lost) = commit.under.iter().find(|lease| !leases.is_held(lease, now)) {
        return Err(CommitError::Fenced {
            key: Arc::clone(&lost.key),
        });
    }
    let mut found = Vec::with_capacity(commit.writes.len());
    for write in &commit.writes {
        found.push(check_version(connection, write)?);
    }
    check_blobs(connection, commit)?;
    let at_ms = unix_ms();
    let (mut committed, mut published) = (Vec::new(), Vec::new());
    for (write, found) in commit.writes.iter().zip(found) {
        let version = next_version();
        let (answer, events) = make(connection, write, found, version, at_ms).map_err(LogError::from)?;
        committed.push(answer);
        if !events.is_empty() {
            published.push((write.stream.clone(), events));
        }
    }
    Ok((committed, published))
}

/// Whether the stream is at the version that the writer saw.
fn check_version(connection: &Connection, write: &Write) -> Result<Option<Found>, CommitError> {
    let mut statement = connection
        .prepare_cached("SELECT number, version, last_sequence FROM streams WHERE id = ?1")
        .map_err(LogError::from)?;
    let row = statement
        .query_row([write.stream.as_str()], |row| {
            let found = Found {
                number: row.get(0)?,
                last_sequence: row.get(2)?,
            };
            Ok((row.get::<_, u64>(1)?, found))
        })
        .optional()
        .map_err(LogError::from)?;
    let (version, found) = row.map_or((0, None), |(version, found)| (version, Some(found)));
    if version == write.expected.get() {
        return Ok(found);
    }
    let actual = head(connection, &write.stream).map_err(LogError::from)?;
    Err(CommitError::Conflict {
        stream: write.stream.clone(),
        actual: actual.map(Box::new),
    })
}

/// Whether every blob that the commit refers to is there. It stays there, because the collector works on the same
/// thread.
fn check_blobs(connection: &Connection, commit: &Commit) -> Result<(), CommitError> {
    for id in commit.blobs() {
        if blobs::number_of(connection, *id)
            .map_err(LogError::from)?
            .is_none()
        {
            return Err(CommitError::BlobMissing(*id));
        }
    }
    Ok(())
}

fn make(
    connection: &Connection,
    write: &Write,
    found: Option<Found>,
    version: Version,
    at_ms: i64,
) -> rusqlite::Result<(Committed, Vec<Arc<Event>>)> {
    let before = found.as_ref().map_or(0, |found| found.last_sequence);
    let last = before + write.events.len() as u64;
    let number = write_head(connection, write, found, version, last)?;
    let mut events = Vec::with_capacity(write.events.len());
    for (sequence, new) in (before + 1..).zip(&write.events) {
        let event = Event {
            sequence: Sequence::from_u64(sequence),
            at_ms,
            kind: Arc::clone(&new.kind),
            body: Arc::clone(&new.body),
        };
        insert_event(connection, number, &event, &new.blobs)?;
        events.push(Arc::new(event));
    }
    let committed = Committed {
        version,
        last_sequence: Sequence::from_u64(last),
    };
    Ok((committed, events))
}

/// Appends an event to the stream of that number.
pub(super) fn insert_event(
    connection: &Connection,
    stream: i64,
    event: &Event,
    blobs: &[BlobId],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (stream, sequence, at_ms, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let sequence = event.sequence;
    insert.execute(params![
        stream,
        sequence.get(),
        event.at_ms,
        &*event.kind,
        &*event.body
    ])?;
    insert_references(connection, stream, sequence, blobs)
}

fn write_head(
    connection: &Connection,
    write: &Write,
    found: Option<Found>,
    version: Version,
    last: u64,
) -> rusqlite::Result<i64> {
    match (&write.head, found) {
        (Some(head), Some(Found { number, .. })) => {
            let mut update = connection.prepare_cached(
                "UPDATE streams SET version = ?2, last_sequence = ?3, kind = ?4, status = ?5, body = ?6
                 WHERE number = ?1",
            )?;
            update.execute(params![
                number,
                version.get(),
                last,
                &*head.kind,
                &*head.status,
                &*head.body
            ])?;
            let mut forget = connection
                .prepare_cached("DELETE FROM blob_references WHERE stream = ?1 AND sequence = 0")?;
            forget.execute([number])?;
            insert_references(connection, number, Sequence::START, &head.blobs)?;
            Ok(number)
        }
        (None, Some(Found { number, .. })) => {
            let mut update = connection
                .prepare_cached("UPDATE streams SET version = ?2, last_sequence = ?3 WHERE number = ?1")?;
            update.execute(params![number, version.get(), last])?;
            Ok(number)
        }
        (head, None) => {
            let Some(head) = head else {
                unreachable!("a new stream has a head; the commit was checked for it");
            };
            let bounds = (Sequence::START.next(), Sequence::from_u64(last));
            insert_stream(connection, &write.stream, head, version, bounds)
        }
    }
}

/// Makes a stream with these first and last events, and answers its number.
pub(super) fn insert_stream(
    connection: &Connection,
    id: &StreamId,
    head: &Head,
    version: Version,
    (first, last): (Sequence, Sequence),
) -> rusqlite::Result<i64> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO streams (id, kind, status, version, first_sequence, last_sequence, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let number = insert.insert(params![
        id.as_str(),
        &*head.kind,
        &*head.status,
        version.get(),
        first.get(),
        last.get(),
        &*head.body
    ])?;
    insert_references(connection, number, Sequence::START, &head.blobs)?;
    Ok(number)
}

/// Writes down which blobs a head (at the start) or an event refers to. They were found to be there.
fn insert_references(
    connection: &Connection,
    stream: i64,
    sequence: Sequence,
    blobs: &[BlobId],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO blob_references (stream, sequence, position, blob)
         SELECT ?1, ?2, ?3, number FROM blobs WHERE id = ?4",
    )?;
    for (position, id) in (0_i64..).zip(blobs) {
        let inserted = insert.execute(params![stream, sequence.get(), position, id.as_bytes()])?;
        if inserted != 1 {
            return Err(rusqlite::Error::StatementChangedRows(inserted));
        }
    }
    Ok(())
}

pub(super) fn unix_ms() -> i64 {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}
