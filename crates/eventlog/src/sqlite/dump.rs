//! Everything there is at one moment, as records.

use std::sync::Arc;

use rusqlite::{Connection, Row};
use tokio::sync::mpsc;

use super::heads::{HEAD_COLUMNS, blobs_of_column, head_of_row};
use crate::{
    blob::{BlobId, BlobInfo},
    commit::Event,
    error::LogError,
    names::Sequence,
    record::Record,
};

/// Sends all records, and waits where the receiver is slow. One transaction sees one moment; what is written
/// meanwhile stays in the write-ahead log until it ends.
pub(super) fn dump(connection: &Connection, records: &mpsc::Sender<Record>) -> Result<(), LogError> {
    let transaction = connection.unchecked_transaction()?;
    let send = |record| records.blocking_send(record).map_err(|_| LogError::Closed);
    blobs(&transaction, &send)?;
    streams(&transaction, &send)?;
    send(Record::End)
}

fn blobs(connection: &Connection, send: &impl Fn(Record) -> Result<(), LogError>) -> Result<(), LogError> {
    let mut list = connection.prepare(
        "SELECT number, id, size_bytes, stored_bytes, chunks FROM blobs WHERE id IS NOT NULL ORDER BY number",
    )?;
    let mut list_chunks =
        connection.prepare("SELECT body FROM all_chunks WHERE blob = ?1 ORDER BY number")?;
    let mut rows = list.query([])?;
    while let Some(row) = rows.next()? {
        let mut chunks = list_chunks.query([row.get::<_, i64>(0)?])?;
        while let Some(chunk) = chunks.next()? {
            send(Record::Chunk {
                compressed: chunk.get(0)?,
            })?;
        }
        send(Record::Blob {
            id: BlobId::from_bytes(row.get(1)?),
            info: BlobInfo {
                size_bytes: row.get(2)?,
                stored_bytes: row.get(3)?,
                chunks: row.get(4)?,
            },
        })?;
    }
    Ok(())
}

fn streams(connection: &Connection, send: &impl Fn(Record) -> Result<(), LogError>) -> Result<(), LogError> {
    let mut list = connection.prepare(&format!(
        "SELECT {HEAD_COLUMNS}, streams.number, first_sequence FROM streams ORDER BY version"
    ))?;
    let mut list_events = connection.prepare(
        "SELECT sequence, at_ms, kind, body, (
             SELECT group_concat(lower(hex(blobs.id)), ' ' ORDER BY position)
             FROM blob_references AS reference JOIN blobs ON blobs.number = blob
             WHERE reference.stream = events.stream AND reference.sequence = events.sequence)
         FROM events WHERE stream = ?1 ORDER BY sequence",
    )?;
    let mut rows = list.query([])?;
    while let Some(row) = rows.next()? {
        let found = head_of_row(row)?;
        send(Record::Stream {
            id: found.stream,
            head: found.head,
            first: Sequence::from_u64(row.get(8)?),
            last: found.last_sequence,
        })?;
        let mut events = list_events.query([row.get::<_, i64>(7)?])?;
        while let Some(row) = events.next()? {
            send(event_of_row(row)?)?;
        }
    }
    Ok(())
}

fn event_of_row(row: &Row<'_>) -> rusqlite::Result<Record> {
    let event = Event {
        sequence: Sequence::from_u64(row.get(0)?),
        at_ms: row.get(1)?,
        kind: row.get(2)?,
        body: Arc::from(row.get::<_, Vec<u8>>(3)?),
    };
    let blobs = blobs_of_column(row, 4)?;
    Ok(Record::Event { event, blobs })
}
