//! Filling an empty log from records, inside one transaction.

use kernel::block_on;
use rusqlite::ErrorCode;
use tokio::sync::mpsc;

use super::{apply, blobs, desk::Desk};
use crate::{
    blob::{BlobId, BlobInfo},
    commit::{Event, Head},
    error::LogError,
    names::{Life, Sequence, StreamId},
    record::{Record, RestoreError},
};

/// How far each restored stream is, for the tails that wait for it.
pub(super) type Restored = Vec<(StreamId, Life, Sequence)>;

/// What the records of a log have led to so far.
struct Restore<'a> {
    desk: &'a mut Desk,
    place: Place,
    streams: Restored,
}

/// Where in the log the next record belongs.
enum Place {
    Between,
    /// In the chunks of the blob of that row, before the chunk of that number.
    Chunks {
        row: i64,
        next: u32,
    },
    /// In the stream of that row, before the event of that number.
    Stream {
        row: i64,
        next: Sequence,
        last: Sequence,
    },
}

/// Applies records as they come. The caller makes what it did durable, or takes it back.
pub(super) fn restore(
    desk: &mut Desk,
    mut records: mpsc::Receiver<Record>,
) -> Result<Restored, RestoreError> {
    let is_empty: bool = desk
        .connection
        .query_row(
            "SELECT NOT EXISTS (SELECT 1 FROM streams)
                AND NOT EXISTS (SELECT 1 FROM blobs WHERE id IS NOT NULL)",
            [],
            |row| row.get(0),
        )
        .map_err(failed)?;
    if !is_empty {
        return Err(RestoreError::NotEmpty);
    }
    let mut restore = Restore {
        desk,
        place: Place::Between,
        streams: Vec::new(),
    };
    while let Some(record) = block_on(records.recv()) {
        match record {
            Record::Blob { id, info } => restore.blob(id, info)?,
            Record::Chunk { compressed } => restore.chunk(&compressed)?,
            Record::Stream {
                id,
                head,
                first,
                last,
            } => restore.stream(id, &head, first, last)?,
            Record::Event { event, blobs } => restore.event(&event, &blobs)?,
            Record::LeftOut { .. } => {}
            Record::End => {
                restore.finish_place()?;
                return Ok(restore.streams);
            }
        }
    }
    Err(RestoreError::Broken)
}

impl Restore<'_> {
    /// Whether what the records were at is whole.
    fn finish_place(&mut self) -> Result<(), RestoreError> {
        let is_whole = match self.place {
            Place::Between => true,
            Place::Chunks { .. } => false,
            Place::Stream { next, last, .. } => next == last.next(),
        };
        self.place = Place::Between;
        if is_whole {
            Ok(())
        } else {
            Err(RestoreError::Broken)
        }
    }

    fn chunk(&mut self, compressed: &[u8]) -> Result<(), RestoreError> {
        let (row, next) = match self.place {
            Place::Chunks { row, next } => (row, next),
            Place::Between => (self.new_blob()?, 0),
            Place::Stream { .. } => return Err(RestoreError::Broken),
        };
        blobs::insert_chunk(&self.desk.connection, row, next, compressed).map_err(failed)?;
        self.place = Place::Chunks { row, next: next + 1 };
        Ok(())
    }

    fn blob(&mut self, id: BlobId, info: BlobInfo) -> Result<(), RestoreError> {
        let (row, chunks) = match self.place {
            Place::Chunks { row, next } => (row, next),
            // An empty blob has no chunks.
            Place::Between => (self.new_blob()?, 0),
            Place::Stream { .. } => return Err(RestoreError::Broken),
        };
        if chunks != info.chunks {
            return Err(RestoreError::Broken);
        }
        blobs::name(&self.desk.connection, row, id, info).map_err(failed)?;
        self.place = Place::Between;
        Ok(())
    }

    fn new_blob(&mut self) -> Result<i64, LogError> {
        let row = self.desk.blobs.next_number();
        self.desk
            .connection
            .prepare_cached("INSERT INTO blobs (number) VALUES (?1)")?
            .execute([row])?;
        Ok(row)
    }

    fn stream(
        &mut self,
        id: StreamId,
        head: &Head,
        first: Sequence,
        last: Sequence,
    ) -> Result<(), RestoreError> {
        self.finish_place()?;
        if first == Sequence::START || first > last.next() {
            return Err(RestoreError::Broken);
        }
        self.check_blobs(&head.blobs)?;
        let version = self.desk.next_version();
        let row =
            apply::insert_stream(&self.desk.connection, &id, head, version, (first, last)).map_err(failed)?;
        self.place = Place::Stream {
            row,
            next: first,
            last,
        };
        self.streams.push((id, Life::from_u64(version.get()), last));
        Ok(())
    }

    fn event(&mut self, event: &Event, blobs: &[BlobId]) -> Result<(), RestoreError> {
        self.check_blobs(blobs)?;
        let Place::Stream { row, next, .. } = &mut self.place else {
            return Err(RestoreError::Broken);
        };
        if event.sequence != *next {
            return Err(RestoreError::Broken);
        }
        apply::insert_event(&self.desk.connection, *row, event, blobs).map_err(failed)?;
        *next = next.next();
        Ok(())
    }

    fn check_blobs(&self, ids: &[BlobId]) -> Result<(), RestoreError> {
        for id in ids {
            let number = blobs::number_of(&self.desk.connection, *id).map_err(failed)?;
            if number.is_none() {
                return Err(RestoreError::BlobMissing(*id));
            }
        }
        Ok(())
    }
}

/// A row that is there already comes from records that name a stream or a blob twice.
fn failed(error: rusqlite::Error) -> RestoreError {
    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
        return RestoreError::Broken;
    }
    RestoreError::Log(error.into())
}
