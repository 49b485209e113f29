//! Applies one commit inside the open transaction. It checks everything before it writes, so a refused commit has
//! written nothing.

use std::{
    sync::Arc,
    time::{Instant, SystemTime},
};

use rusqlite::{Connection, params};

use super::{
    blobs,
    heads::head,
    leases::Leases,
    stream_cache::{CachedStream, HeadBlobs, StreamCache},
};
use crate::{
    blob::BlobId,
    commit::{Commit, CommitError, Committed, Event, Head, Write},
    error::LogError,
    hub::{Change, ChangeKind},
    names::{Incarnation, Sequence, StreamId, Version},
};

/// The result of a commit: its answer, and the changes to publish once it is on disk.
pub(super) type Applied = (Vec<Committed>, Vec<Change>);

pub(super) fn commit(
    connection: &Connection,
    commit: &Commit,
    streams: &mut StreamCache,
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
        found.push(check_version(connection, streams, &write.stream, write.expected)?);
    }
    check_blobs(connection, commit)?;
    let at_ms = unix_ms();
    let mut committed = Vec::with_capacity(commit.writes.len());
    let mut changes = Vec::with_capacity(commit.writes.len());
    for (write, found) in commit.writes.iter().zip(found) {
        let (written, events) =
            make(connection, write, found, next_version(), at_ms).map_err(LogError::from)?;
        committed.push(Committed {
            version: written.version,
            last_sequence: Sequence::from_u64(written.last_sequence),
        });
        changes.push(Change {
            stream: write.stream.clone(),
            incarnation: incarnation(written.number),
            kind: ChangeKind::Written(events),
        });
        streams.remember(&write.stream, written);
    }
    Ok((committed, changes))
}

/// Checks that a stream is at the version that its writer saw.
pub(super) fn check_version(
    connection: &Connection,
    streams: &mut StreamCache,
    stream: &StreamId,
    expected: Version,
) -> Result<Option<CachedStream>, CommitError> {
    let found = streams.look(connection, stream).map_err(LogError::from)?;
    let version = found.as_ref().map_or(Version::NONE, |found| found.version);
    if version == expected {
        return Ok(found);
    }
    let actual = head(connection, stream).map_err(LogError::from)?.map(Box::new);
    let stream = stream.clone();
    // Versions only grow: a newer one was written by somebody who saw the stream as it was after the loss.
    let is_as_before = actual.as_ref().is_none_or(|actual| actual.version < expected);
    Err(match is_as_before && streams.was_rolled_back(expected) {
        true => CommitError::RolledBack { stream, actual },
        false => CommitError::Conflict { stream, actual },
    })
}

/// Checks that every blob that the commit refers to exists. It can't go away before the commit, because the
/// collector works on the same thread.
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

/// Makes one write, and returns the resulting state of the stream.
fn make(
    connection: &Connection,
    write: &Write,
    found: Option<CachedStream>,
    version: Version,
    at_ms: i64,
) -> rusqlite::Result<(CachedStream, Vec<Arc<Event>>)> {
    let before = found.as_ref().map_or(0, |found| found.last_sequence);
    let written = write_head(
        connection,
        write,
        found,
        version,
        before + write.events.len() as u64,
    )?;
    let mut events = Vec::with_capacity(write.events.len());
    for (sequence, new) in (before + 1..).zip(&write.events) {
        let event = Event {
            sequence: Sequence::from_u64(sequence),
            at_ms,
            kind: Arc::clone(&new.kind),
            body: Arc::clone(&new.body),
        };
        insert_event(connection, written.number, &event, &new.blobs)?;
        events.push(Arc::new(event));
    }
    Ok((written, events))
}

pub(super) fn incarnation(number: i64) -> Incarnation {
    Incarnation::from_u64(number.unsigned_abs())
}

/// Appends an event to the stream with this number.
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
    found: Option<CachedStream>,
    version: Version,
    last_sequence: u64,
) -> rusqlite::Result<CachedStream> {
    let Some(found) = found else {
        let Some(head) = &write.head else {
            unreachable!("a new stream has a head; the commit was checked for it");
        };
        let bounds = (Sequence::START.next(), Sequence::from_u64(last_sequence));
        let number = insert_stream(connection, &write.stream, head, version, bounds)?;
        return Ok(CachedStream {
            number,
            version,
            last_sequence,
            kind: Arc::clone(&head.kind),
            status: Arc::clone(&head.status),
            blobs: HeadBlobs::of(head),
        });
    };
    let moved = CachedStream {
        version,
        last_sequence,
        ..found
    };
    let Some(head) = &write.head else {
        let mut update = connection
            .prepare_cached("UPDATE streams SET version = ?2, last_sequence = ?3 WHERE number = ?1")?;
        update.execute(params![moved.number, version.get(), last_sequence])?;
        return Ok(moved);
    };
    update_head(connection, &moved, head)?;
    if moved.blobs == HeadBlobs::Some {
        let mut forget =
            connection.prepare_cached("DELETE FROM blob_references WHERE stream = ?1 AND sequence = 0")?;
        forget.execute([moved.number])?;
    }
    insert_references(connection, moved.number, Sequence::START, &head.blobs)?;
    Ok(CachedStream {
        kind: Arc::clone(&head.kind),
        status: Arc::clone(&head.status),
        blobs: HeadBlobs::of(head),
        ..moved
    })
}

/// Replaces the head of a stream. SQLite writes every column that is named, and every index on it, so columns
/// that don't change are left out.
fn update_head(connection: &Connection, stream: &CachedStream, head: &Head) -> rusqlite::Result<()> {
    let (number, version, last) = (stream.number, stream.version.get(), stream.last_sequence);
    let body = &*head.body;
    if stream.kind != head.kind {
        let sql = "UPDATE streams SET version = ?2, last_sequence = ?3, body = ?4, status = ?5, kind = ?6
                   WHERE number = ?1";
        let mut update = connection.prepare_cached(sql)?;
        update.execute(params![number, version, last, body, &*head.status, &*head.kind])?;
    } else if stream.status != head.status {
        let sql =
            "UPDATE streams SET version = ?2, last_sequence = ?3, body = ?4, status = ?5 WHERE number = ?1";
        let mut update = connection.prepare_cached(sql)?;
        update.execute(params![number, version, last, body, &*head.status])?;
    } else {
        let sql = "UPDATE streams SET version = ?2, last_sequence = ?3, body = ?4 WHERE number = ?1";
        let mut update = connection.prepare_cached(sql)?;
        update.execute(params![number, version, last, body])?;
    }
    Ok(())
}

/// Creates a stream with these first and last events, and returns its number. The number is the stream's first
/// version, so no number is ever reused. In older files, numbers count the streams, and are lower than any
/// version to come.
pub(super) fn insert_stream(
    connection: &Connection,
    id: &StreamId,
    head: &Head,
    version: Version,
    (first, last): (Sequence, Sequence),
) -> rusqlite::Result<i64> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO streams (number, id, kind, status, version, first_sequence, last_sequence, body)
         VALUES (?4, ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
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

/// Stores which blobs a head (sequence 0) or an event refers to. The blobs are known to exist.
fn insert_references(
    connection: &Connection,
    stream: i64,
    sequence: Sequence,
    blobs: &[BlobId],
) -> rusqlite::Result<()> {
    if blobs.is_empty() {
        return Ok(());
    }
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
