//! Fills an empty log from records, in one transaction.

use std::collections::HashSet;

use tokio::sync::mpsc;
use tokio_postgres::{Error, Statement, error::SqlState};

use super::{
    failure::{Failure, outcome},
    leases::microseconds,
    listener,
    pool::Pooled,
    read::number,
    rows::{EventRows, ReferenceRows},
};
use crate::{
    blob::{BlobId, BlobInfo},
    commit::{Event, Head},
    names::{Sequence, StreamId},
    record::{Record, RestoreError},
    store::PIN_TTL,
};

/// How many events are collected before they are written.
const BATCH_EVENTS: usize = 512;
/// How many bytes of bodies are collected before they are written.
const BATCH_BYTES: usize = 1024 * 1024;

/// Others can read in the meantime, but wait before they write.
const BEGIN: &str = "
    BEGIN;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    LOCK TABLE streams, blobs, uploads IN EXCLUSIVE MODE";

struct Statements {
    upload: Statement,
    chunk: Statement,
    stream: Statement,
}

struct Restore<'a> {
    connection: &'a Pooled,
    statements: Statements,
    blobs: HashSet<BlobId>,
    place: RestorePosition,
    waiting: Vec<(i64, Event, Vec<BlobId>)>,
    waiting_bytes: usize,
}

/// Where the next record belongs.
#[derive(Clone, Copy)]
enum RestorePosition {
    Between,
    /// To the blob of this upload, which has no address yet, before the chunk with this number.
    Chunks {
        upload: i64,
        next: u32,
    },
    /// To the stream with this number, before the event with this number.
    Stream {
        stream: i64,
        next: Sequence,
        last: Sequence,
    },
}

pub(super) async fn restore(
    mut connection: Pooled,
    mut records: mpsc::Receiver<Record>,
) -> Result<(), Failure<RestoreError>> {
    connection.enter_transaction();
    if let Err(failed) = fill(&connection, &mut records).await {
        connection.roll_back().await;
        return Err(failed);
    }
    let (ended, ()) = tokio::join!(
        biased;
        connection.batch("COMMIT"),
        listener::send_everything_hint(&connection, connection.schema()),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    outcome([], ended)
}

async fn fill(
    connection: &Pooled,
    records: &mut mpsc::Receiver<Record>,
) -> Result<(), Failure<RestoreError>> {
    let client = &connection.client;
    connection.batch(BEGIN).await?;
    let empty = "SELECT NOT EXISTS (SELECT FROM streams) AND NOT EXISTS (SELECT FROM blobs)";
    if !client.query_one(empty, &[]).await?.try_get::<_, bool>(0)? {
        return Err(Failure::Refused(RestoreError::NotEmpty));
    }
    let mut restore = Restore {
        connection,
        statements: prepare(connection).await?,
        blobs: HashSet::new(),
        place: RestorePosition::Between,
        waiting: Vec::new(),
        waiting_bytes: 0,
    };
    while let Some(record) = records.recv().await {
        match record {
            Record::Blob { id, info } => restore.blob(id, info).await?,
            Record::Chunk { compressed } => restore.chunk(&compressed).await?,
            Record::Stream {
                id,
                head,
                first,
                last,
            } => restore.stream(&id, &head, first, last).await?,
            Record::Event { event, blobs } => restore.event(event, blobs).await?,
            Record::LeftOut { .. } => {}
            Record::End => {
                restore.finish_place()?;
                return Ok(restore.write_events().await?);
            }
        }
    }
    Err(Failure::Refused(RestoreError::Broken))
}

async fn prepare(connection: &Pooled) -> Result<Statements, Error> {
    let upload = "SELECT nextval(pg_get_serial_sequence('uploads', 'number'))";
    let chunk = "INSERT INTO chunks (upload, number, content) VALUES ($1, $2, $3)";
    let stream = "
        INSERT INTO streams (number, id, kind, status, version, first_sequence, last_sequence, body)
        SELECT version, $1, $2, $3, version, $4, $5, $6 FROM nextval('versions') AS version
        RETURNING number";
    let client = &connection.client;
    let (upload, chunk, stream) = tokio::try_join!(
        biased;
        client.prepare(upload),
        client.prepare(chunk),
        client.prepare(stream),
    )?;
    Ok(Statements {
        upload,
        chunk,
        stream,
    })
}

impl Restore<'_> {
    /// Checks that the blob or stream before the next record is complete.
    fn finish_place(&mut self) -> Result<(), Failure<RestoreError>> {
        let is_whole = match self.place {
            RestorePosition::Between => true,
            RestorePosition::Chunks { .. } => false,
            RestorePosition::Stream { next, last, .. } => next == last.next(),
        };
        self.place = RestorePosition::Between;
        if is_whole { Ok(()) } else { Err(broken()) }
    }

    /// The upload of the next chunk, and how many chunks it has.
    async fn upload(&self) -> Result<(i64, u32), Failure<RestoreError>> {
        match self.place {
            RestorePosition::Chunks { upload, next } => Ok((upload, next)),
            RestorePosition::Between => {
                let row = self.connection.query_one(&self.statements.upload, []).await?;
                Ok((row.try_get(0)?, 0))
            }
            RestorePosition::Stream { .. } => Err(broken()),
        }
    }

    async fn chunk(&mut self, compressed: &[u8]) -> Result<(), Failure<RestoreError>> {
        let (upload, next) = self.upload().await?;
        let number = i64::from(next);
        self.connection
            .execute(&self.statements.chunk, [&upload, &number, &compressed])
            .await?;
        let next = next + 1;
        self.place = RestorePosition::Chunks { upload, next };
        Ok(())
    }

    async fn blob(&mut self, id: BlobId, info: BlobInfo) -> Result<(), Failure<RestoreError>> {
        let (upload, chunks) = self.upload().await?;
        if chunks != info.chunks || !self.blobs.insert(id) {
            return Err(broken());
        }
        let (address, chunks) = (id.as_bytes().as_slice(), i64::from(chunks));
        let (size_bytes, stored_bytes) = (number(info.size_bytes), number(info.stored_bytes));
        let pin = microseconds(PIN_TTL);
        self.connection
            .execute(
                &self.connection.statements.make_blob,
                [&address, &upload, &size_bytes, &stored_bytes, &chunks, &pin],
            )
            .await?;
        self.place = RestorePosition::Between;
        Ok(())
    }

    async fn stream(
        &mut self,
        id: &StreamId,
        head: &Head,
        first: Sequence,
        last: Sequence,
    ) -> Result<(), Failure<RestoreError>> {
        self.finish_place()?;
        if first == Sequence::START || first > last.next() {
            return Err(broken());
        }
        self.check_blobs(&head.blobs)?;
        let (id, kind, status, body) = (id.as_str(), &*head.kind, &*head.status, &*head.body);
        let (first_sequence, last_sequence) = (number(first.get()), number(last.get()));
        let row = self
            .connection
            .query_one(
                &self.statements.stream,
                [&id, &kind, &status, &first_sequence, &last_sequence, &body],
            )
            .await
            .map_err(broken_if_duplicate)?;
        let stream = row.try_get(0)?;
        let mut references = ReferenceRows::default();
        references.push(stream, 0, &head.blobs);
        references.insert(self.connection).await?;
        self.place = RestorePosition::Stream {
            stream,
            next: first,
            last,
        };
        Ok(())
    }

    async fn event(&mut self, event: Event, blobs: Vec<BlobId>) -> Result<(), Failure<RestoreError>> {
        self.check_blobs(&blobs)?;
        let RestorePosition::Stream { stream, next, .. } = &mut self.place else {
            return Err(broken());
        };
        if event.sequence != *next {
            return Err(broken());
        }
        *next = next.next();
        self.waiting_bytes += event.body.len();
        self.waiting.push((*stream, event, blobs));
        if self.waiting.len() >= BATCH_EVENTS || self.waiting_bytes >= BATCH_BYTES {
            self.write_events().await?;
        }
        Ok(())
    }

    async fn write_events(&mut self) -> Result<(), Error> {
        let (mut events, mut references) = (EventRows::default(), ReferenceRows::default());
        for (stream, event, blobs) in &self.waiting {
            events.push(*stream, event);
            references.push(*stream, event.sequence.get(), blobs);
        }
        tokio::try_join!(biased; events.insert(self.connection), references.insert(self.connection))?;
        self.waiting.clear();
        self.waiting_bytes = 0;
        Ok(())
    }

    fn check_blobs(&self, ids: &[BlobId]) -> Result<(), Failure<RestoreError>> {
        match ids.iter().find(|id| !self.blobs.contains(id)) {
            None => Ok(()),
            Some(missing) => Err(Failure::Refused(RestoreError::BlobMissing(*missing))),
        }
    }
}

fn broken() -> Failure<RestoreError> {
    Failure::Refused(RestoreError::Broken)
}

/// A stream that comes twice isn't a failure of the database.
fn broken_if_duplicate(error: Error) -> Failure<RestoreError> {
    if error.code() == Some(&SqlState::UNIQUE_VIOLATION) {
        return broken();
    }
    error.into()
}
