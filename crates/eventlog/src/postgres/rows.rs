//! Rows for bulk inserts, column by column, so that any number of rows is one statement.
//!
//! Each `async fn` here sends its statement when it is first polled, so that several can be sent together.
//! Without rows it sends nothing.

use tokio_postgres::{Error, Row};

use super::{
    connection::{Connection, Parameter},
    read::number,
};
use crate::{
    blob::BlobId,
    commit::{Commit, Durability, Event, Write},
};

/// A commit as the parameters of `write_commit`.
#[derive(Default)]
pub(super) struct CommitRows<'a> {
    is_relaxed: bool,
    pub(super) ids: Vec<&'a str>,
    expected: Vec<i64>,
    kinds: Vec<Option<&'a str>>,
    statuses: Vec<Option<&'a str>>,
    bodies: Vec<Option<&'a [u8]>>,
    event_counts: Vec<i64>,
    event_writes: Vec<i32>,
    event_places: Vec<i64>,
    event_kinds: Vec<&'a str>,
    event_bodies: Vec<&'a [u8]>,
    blob_writes: Vec<i32>,
    blob_places: Vec<i64>,
    blob_positions: Vec<i64>,
    blob_ids: Vec<&'a [u8]>,
    lease_keys: Vec<&'a str>,
    lease_tokens: Vec<i64>,
}

impl<'a> CommitRows<'a> {
    pub(super) fn of(commit: &'a Commit) -> Self {
        let mut rows = Self {
            is_relaxed: commit.durability == Durability::Relaxed,
            ..Self::default()
        };
        for (place, write) in (1..).zip(&commit.writes) {
            rows.push(place, write);
        }
        for lease in &commit.under {
            rows.lease_keys.push(&lease.key);
            rows.lease_tokens.push(number(lease.token.get()));
        }
        rows
    }

    fn push(&mut self, place: i32, write: &'a Write) {
        let head = write.head.as_ref();
        self.ids.push(write.stream.as_str());
        self.expected.push(number(write.expected.get()));
        self.kinds.push(head.map(|head| &*head.kind));
        self.statuses.push(head.map(|head| &*head.status));
        self.bodies.push(head.map(|head| &*head.body));
        self.event_counts.push(number(write.events.len() as u64));
        if let Some(head) = head {
            self.push_blobs(place, 0, &head.blobs);
        }
        for (event_place, event) in (1..).zip(&write.events) {
            self.event_writes.push(place);
            self.event_places.push(event_place);
            self.event_kinds.push(&event.kind);
            self.event_bodies.push(&event.body);
            self.push_blobs(place, event_place, &event.blobs);
        }
    }

    fn push_blobs(&mut self, write: i32, place: i64, blobs: &'a [BlobId]) {
        for (position, blob) in (0..).zip(blobs) {
            self.blob_writes.push(write);
            self.blob_places.push(place);
            self.blob_positions.push(position);
            self.blob_ids.push(blob.as_bytes());
        }
    }

    pub(super) async fn write(&self, connection: &Connection, mark: i64) -> Result<Vec<Row>, Error> {
        let parameters: [Parameter<'_>; 18] = [
            &mark,
            &self.is_relaxed,
            &self.ids,
            &self.expected,
            &self.kinds,
            &self.statuses,
            &self.bodies,
            &self.event_counts,
            &self.event_writes,
            &self.event_places,
            &self.event_kinds,
            &self.event_bodies,
            &self.blob_writes,
            &self.blob_places,
            &self.blob_positions,
            &self.blob_ids,
            &self.lease_keys,
            &self.lease_tokens,
        ];
        connection
            .query(&connection.statements.write_commit, parameters)
            .await
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
