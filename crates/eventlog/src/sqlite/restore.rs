//! Fills an empty log from records, inside one transaction.

use kernel::block_on;
use rusqlite::ErrorCode;
use tokio::sync::mpsc;

use super::{apply, blobs, writer_state::WriterState};
use crate::{
    blob::{BlobId, BlobInfo},
    commit::{Event, Head},
    error::LogError,
    names::{Incarnation, Sequence, StreamId},
    record::{Record, RestoreError},
};

/// The positions of the restored streams, for the tails that wait for them.
pub(super) type Restored = Vec<(StreamId, Incarnation, Sequence)>;

struct Restore<'a> {
    state: &'a mut WriterState,
    place: RestorePosition,
    streams: Restored,
}

/// Where the next record belongs.
enum RestorePosition {
    Between,
    /// To the chunks of the blob in this row, before the chunk with this number.
    Chunks {
        row: i64,
        next: u32,
    },
    /// To the stream in this row, before the event with this number.
    Stream {
        row: i64,
        next: Sequence,
        last: Sequence,
    },
}

/// Applies records as they arrive. The caller commits or rolls back.
pub(super) fn restore(
    state: &mut WriterState,
    mut records: mpsc::Receiver<Record>,
) -> Result<Restored, RestoreError> {
    let is_empty: bool = state
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
        state,
        place: RestorePosition::Between,
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
    /// Checks that the blob or stream before the next record is complete.
    fn finish_place(&mut self) -> Result<(), RestoreError> {
        let is_whole = match self.place {
            RestorePosition::Between => true,
            RestorePosition::Chunks { .. } => false,
            RestorePosition::Stream { next, last, .. } => next == last.next(),
        };
        self.place = RestorePosition::Between;
        if is_whole {
            Ok(())
        } else {
            Err(RestoreError::Broken)
        }
    }

    fn chunk(&mut self, compressed: &[u8]) -> Result<(), RestoreError> {
        let (row, next) = match self.place {
            RestorePosition::Chunks { row, next } => (row, next),
            RestorePosition::Between => (self.new_blob()?, 0),
            RestorePosition::Stream { .. } => return Err(RestoreError::Broken),
        };
        blobs::insert_chunk(&self.state.connection, row, next, compressed).map_err(failed)?;
        self.place = RestorePosition::Chunks { row, next: next + 1 };
        Ok(())
    }

    fn blob(&mut self, id: BlobId, info: BlobInfo) -> Result<(), RestoreError> {
        let (row, chunks) = match self.place {
            RestorePosition::Chunks { row, next } => (row, next),
            // An empty blob has no chunks.
            RestorePosition::Between => (self.new_blob()?, 0),
            RestorePosition::Stream { .. } => return Err(RestoreError::Broken),
        };
        if chunks != info.chunks {
            return Err(RestoreError::Broken);
        }
        blobs::name(&self.state.connection, row, id, info).map_err(failed)?;
        self.place = RestorePosition::Between;
        Ok(())
    }

    fn new_blob(&mut self) -> Result<i64, LogError> {
        let row = self.state.blobs.next_number();
        self.state
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
        let version = self.state.next_version();
        let row = apply::insert_stream(&self.state.connection, &id, head, version, (first, last))
            .map_err(failed)?;
        self.place = RestorePosition::Stream {
            row,
            next: first,
            last,
        };
        self.streams
            .push((id, Incarnation::from_u64(version.get()), last));
        Ok(())
    }

    fn event(&mut self, event: &Event, blobs: &[BlobId]) -> Result<(), RestoreError> {
        self.check_blobs(blobs)?;
        let RestorePosition::Stream { row, next, .. } = &mut self.place else {
            return Err(RestoreError::Broken);
        };
        if event.sequence != *next {
            return Err(RestoreError::Broken);
        }
        apply::insert_event(&self.state.connection, *row, event, blobs).map_err(failed)?;
        *next = next.next();
        Ok(())
    }

    fn check_blobs(&self, ids: &[BlobId]) -> Result<(), RestoreError> {
        for id in ids {
            let number = blobs::number_of(&self.state.connection, *id).map_err(failed)?;
            if number.is_none() {
                return Err(RestoreError::BlobMissing(*id));
            }
        }
        Ok(())
    }
}

/// A row that exists already means that the records name a stream or a blob twice.
fn failed(error: rusqlite::Error) -> RestoreError {
    if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
        return RestoreError::Broken;
    }
    RestoreError::Log(error.into())
}
