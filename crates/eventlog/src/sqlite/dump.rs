//! A snapshot of everything, as records. What can't be read is left out and reported.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use tokio::sync::mpsc;

use super::damage::is_damage;
use super::heads::{HEAD_COLUMNS, blobs_of_column, head_of_row};
use super::schema::{self, SHARED_CHUNKS};
use crate::{
    blob::{BlobId, BlobInfo},
    commit::Event,
    error::LogError,
    names::Sequence,
    record::Record,
};

/// How many events in a row may be unreadable before the rest of their stream is given up: more than fit on a
/// page.
const BAD_EVENTS: u32 = 10_000;

/// Sends all records, and waits for a slow receiver. One transaction sees one snapshot; what is written in the
/// meantime stays in the write-ahead log until it ends.
pub(super) fn dump(connection: &Connection, records: &mpsc::Sender<Record>) -> Result<(), LogError> {
    let transaction = connection.unchecked_transaction()?;
    let send = |record| records.blocking_send(record).map_err(|_| LogError::Closed);
    blobs(&transaction, &send)?;
    streams(&transaction, &send)?;
    send(Record::End)
}

/// Rows with their numbers and names, from an index if the table itself is damaged.
fn listed<T>(
    connection: &Connection,
    [straight, by_index]: [&str; 2],
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T> + Copy,
) -> rusqlite::Result<Vec<T>> {
    let list = |sql: &str| {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], read)?;
        rows.collect::<rusqlite::Result<Vec<_>>>()
    };
    match list(straight) {
        Err(error) if is_damage(&error) => list(by_index),
        listed => listed,
    }
}

/// The value, or `None` if it is damaged.
fn unless_damaged<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn blobs(connection: &Connection, send: &impl Fn(Record) -> Result<(), LogError>) -> Result<(), LogError> {
    let list = listed(
        connection,
        [
            "SELECT number, id FROM blobs WHERE id IS NOT NULL ORDER BY number",
            "SELECT number, id FROM blobs INDEXED BY sqlite_autoindex_blobs_1 WHERE id IS NOT NULL ORDER BY id",
        ],
        |row| Ok((row.get::<_, i64>(0)?, BlobId::from_bytes(row.get(1)?))),
    )?;
    let mut info =
        connection.prepare("SELECT size_bytes, stored_bytes, chunks FROM blobs WHERE number = ?1")?;
    // A file that hasn't been opened since an update may still have the tables of an earlier version.
    let chunks = match schema::current(connection)? {
        ..SHARED_CHUNKS => "chunks",
        _ => "all_chunks",
    };
    let mut list_chunks = connection.prepare(&format!(
        "SELECT body FROM {chunks} WHERE blob = ?1 ORDER BY number"
    ))?;
    for (number, id) in list {
        let info = info.query_row([number], |row| {
            Ok(BlobInfo {
                size_bytes: row.get(0)?,
                stored_bytes: row.get(1)?,
                chunks: row.get(2)?,
            })
        });
        let Some(info) = unless_damaged(info)? else {
            send(Record::LeftOut {
                what: format!("the blob {id} cannot be read"),
                blob: Some(id),
            })?;
            continue;
        };
        let mut chunks = list_chunks.query([number])?;
        // If a chunk can't be read, the rest is missing, and the check of the blob fails.
        while let Some(Some(chunk)) = unless_damaged(chunks.next())? {
            let Some(compressed) = unless_damaged(chunk.get(0))? else {
                break;
            };
            send(Record::Chunk { compressed })?;
        }
        send(Record::Blob { id, info })?;
    }
    Ok(())
}

fn streams(connection: &Connection, send: &impl Fn(Record) -> Result<(), LogError>) -> Result<(), LogError> {
    let list = listed(
        connection,
        [
            "SELECT number, CAST(id AS BLOB) FROM streams ORDER BY version",
            "SELECT number, CAST(id AS BLOB) FROM streams INDEXED BY sqlite_autoindex_streams_1 ORDER BY id",
        ],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)),
    )?;
    let mut read_head = connection.prepare(&format!(
        "SELECT {HEAD_COLUMNS}, first_sequence FROM streams WHERE streams.number = ?1"
    ))?;
    let mut list_events = connection.prepare(
        "SELECT sequence, at_ms, kind, body, (
             SELECT group_concat(lower(hex(blobs.id)), ' ' ORDER BY position)
             FROM blob_references AS reference JOIN blobs ON blobs.number = blob
             WHERE reference.stream = events.stream AND reference.sequence = events.sequence)
         FROM events WHERE stream = ?1 AND sequence > ?2 ORDER BY sequence",
    )?;
    for (number, name) in list {
        let read = read_head
            .query_row([number], |row| Ok((head_of_row(row)?, row.get(7)?)))
            .optional();
        let Some(Some((found, first))) = unless_damaged(read)? else {
            send(Record::LeftOut {
                what: format!("the stream `{}` cannot be read", String::from_utf8_lossy(&name)),
                blob: None,
            })?;
            continue;
        };
        let last = found.last_sequence;
        send(Record::Stream {
            id: found.stream,
            head: found.head,
            first: Sequence::from_u64(first),
            last,
        })?;
        events(&mut list_events, number, last, send)?;
    }
    Ok(())
}

/// Sends the events of a stream. Events that can't be read are omitted.
fn events(
    list: &mut Statement<'_>,
    stream: i64,
    last: Sequence,
    send: &impl Fn(Record) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let (mut after, mut bad) = (0, 0);
    loop {
        let mut rows = list.query(params![stream, after])?;
        loop {
            let event = match unless_damaged(rows.next())? {
                Some(None) => return Ok(()),
                Some(Some(row)) => unless_damaged(event_of_row(row))?,
                None => None,
            };
            let Some((event, blobs)) = event else { break };
            (after, bad) = (event.sequence.get(), 0);
            send(Record::Event { event, blobs })?;
        }
        (after, bad) = (after + 1, bad + 1);
        if after >= last.get() || bad > BAD_EVENTS {
            return Ok(());
        }
    }
}

fn event_of_row(row: &Row<'_>) -> rusqlite::Result<(Event, Vec<BlobId>)> {
    let event = Event {
        sequence: Sequence::from_u64(row.get(0)?),
        at_ms: row.get(1)?,
        kind: row.get(2)?,
        body: Arc::from(row.get::<_, Vec<u8>>(3)?),
    };
    Ok((event, blobs_of_column(row, 4)?))
}
