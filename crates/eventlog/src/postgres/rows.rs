//! Rows on their way into the database, column by column: as many as there are go in one statement.
//!
//! Each `async fn` here sends its statement when it is first polled, so that several can be sent in one go. Without
//! rows it sends nothing.

use tokio_postgres::Error;

use super::{
    connection::{Connection, Parameter},
    read::number,
};
use crate::{
    blob::BlobId,
    commit::{Committed, Event, Head},
};

/// Rows of `streams`.
#[derive(Default)]
pub(super) struct StreamRows<'a> {
    numbers: Vec<i64>,
    ids: Vec<&'a str>,
    versions: Vec<i64>,
    last_sequences: Vec<i64>,
    kinds: Vec<Option<&'a str>>,
    statuses: Vec<Option<&'a str>>,
    bodies: Vec<Option<&'a [u8]>>,
}

impl<'a> StreamRows<'a> {
    pub(super) fn push(&mut self, stream: i64, id: &'a str, at: Committed, head: Option<&'a Head>) {
        self.numbers.push(stream);
        self.ids.push(id);
        self.versions.push(number(at.version.get()));
        self.last_sequences.push(number(at.last_sequence.get()));
        self.kinds.push(head.map(|head| &*head.kind));
        self.statuses.push(head.map(|head| &*head.status));
        self.bodies.push(head.map(|head| &*head.body));
    }

    /// Makes new streams. Their numbers are their versions.
    pub(super) async fn insert(&self, connection: &Connection) -> Result<(), Error> {
        if self.ids.is_empty() {
            return Ok(());
        }
        let columns: [Parameter<'_>; 6] = [
            &self.versions,
            &self.ids,
            &self.kinds,
            &self.statuses,
            &self.last_sequences,
            &self.bodies,
        ];
        let insert = &connection.statements.insert_streams;
        connection.execute(insert, columns).await.map(drop)
    }

    /// Moves streams on. One without a new head keeps the one it has.
    pub(super) async fn update(&self, connection: &Connection) -> Result<(), Error> {
        if self.numbers.is_empty() {
            return Ok(());
        }
        let columns: [Parameter<'_>; 6] = [
            &self.numbers,
            &self.versions,
            &self.last_sequences,
            &self.kinds,
            &self.statuses,
            &self.bodies,
        ];
        let update = &connection.statements.update_streams;
        connection.execute(update, columns).await.map(drop)
    }
}

/// Rows of `events`.
#[derive(Default)]
pub(super) struct EventRows<'a> {
    streams: Vec<i64>,
    sequences: Vec<i64>,
    at_ms: Vec<i64>,
    kinds: Vec<&'a str>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> EventRows<'a> {
    pub(super) fn push(&mut self, stream: i64, event: &'a Event) {
        self.streams.push(stream);
        self.sequences.push(number(event.sequence.get()));
        self.at_ms.push(event.at_ms);
        self.kinds.push(&event.kind);
        self.bodies.push(&event.body);
    }

    pub(super) async fn insert(&self, connection: &Connection) -> Result<(), Error> {
        if self.streams.is_empty() {
            return Ok(());
        }
        let columns: [Parameter<'_>; 5] = [
            &self.streams,
            &self.sequences,
            &self.at_ms,
            &self.kinds,
            &self.bodies,
        ];
        let insert = &connection.statements.insert_events;
        connection.execute(insert, columns).await.map(drop)
    }
}

/// Rows of `blob_references`.
#[derive(Default)]
pub(super) struct ReferenceRows<'a> {
    streams: Vec<i64>,
    sequences: Vec<i64>,
    positions: Vec<i64>,
    blobs: Vec<&'a [u8]>,
}

impl<'a> ReferenceRows<'a> {
    /// The blobs of an event, or of the head at sequence 0.
    pub(super) fn push(&mut self, stream: i64, sequence: u64, blobs: &'a [BlobId]) {
        for (position, blob) in (0..).zip(blobs) {
            self.streams.push(stream);
            self.sequences.push(number(sequence));
            self.positions.push(position);
            self.blobs.push(blob.as_bytes());
        }
    }

    pub(super) async fn insert(&self, connection: &Connection) -> Result<(), Error> {
        if self.streams.is_empty() {
            return Ok(());
        }
        let columns: [Parameter<'_>; 4] = [&self.streams, &self.sequences, &self.positions, &self.blobs];
        let insert = &connection.statements.refer_to_blobs;
        connection.execute(insert, columns).await.map(drop)
    }
}

/// Drops what the heads of some streams refer to.
pub(super) async fn forget_head_blobs(connection: &Connection, streams: &[i64]) -> Result<(), Error> {
    if streams.is_empty() {
        return Ok(());
    }
    let forget = &connection.statements.forget_head_blobs;
    connection.execute(forget, [&streams]).await.map(drop)
}
