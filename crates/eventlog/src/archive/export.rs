//! From a log to an archive.

use std::{
    error::Error,
    io::{self, Write},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Contents,
    format::{
        BlobLine, Bytes, ChunkLine, EndLine, EventLine, FORMAT, HeaderLine, HoleLine, Line, StreamLine,
        VERSION,
    },
};
use crate::{
    blob_io::{Piece, piece_stored},
    error::LogError,
    log::Log,
    record::{QUEUE_RECORDS, Record},
    repair::Repairer,
};

/// The zstd level of an archive: fast, with most of the gain.
const COMPRESSION_LEVEL: i32 = 3;

/// An archive couldn't be written. What exists of it has no end line, so it can't be taken for a complete one.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The archive couldn't be written to its target.
    #[error("the archive cannot be written")]
    Target(#[source] io::Error),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Writes a snapshot of the log into an archive while the log is in use, and returns the target. Damaged parts
/// are left out and reported, in the archive too. On SQLite the write-ahead log grows until it is done. *Cancel
/// safety*: if the future is dropped, the archive is cut short.
pub async fn export<W: Write + Send + 'static>(log: &Log, target: W) -> Result<(W, Contents), ExportError> {
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    // Dropping this future drops the receiver, which stops the writing thread, and that stops the reader of the
    // log.
    let (wanted, _wanting) = oneshot::channel();
    let writing = tokio::task::spawn_blocking(move || write(receiver, target, &wanted));
    let dumped = log.store().dump(sender).await;
    let written = writing
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))?;
    match (dumped, written) {
        // The writer only stopped because the records did.
        (Err(error), Err(ExportError::Log(LogError::Closed))) => Err(error.into()),
        (_, Err(error)) => Err(error),
        (Err(error), Ok(_)) => Err(error.into()),
        (Ok(()), Ok(done)) => Ok(done),
    }
}

fn write<W: Write>(
    mut records: mpsc::Receiver<Record>,
    target: W,
    wanted: &oneshot::Sender<()>,
) -> Result<(W, Contents), ExportError> {
    let mut lines = Lines::start(target).map_err(ExportError::Target)?;
    let mut contents = Contents::default();
    let (mut repairer, mut repaired) = (Repairer::default(), Vec::new());
    while let Some(record) = records.blocking_recv().filter(|_| !wanted.is_closed()) {
        repairer.take(record, &mut repaired);
        for record in repaired.drain(..) {
            match line_of(record, &mut contents)? {
                Some(line) => lines.write(&line).map_err(ExportError::Target)?,
                None => {
                    contents.left_out = repairer.left_out();
                    let target = lines.finish(contents.left_out.clone());
                    return Ok((target.map_err(ExportError::Target)?, contents));
                }
            }
        }
    }
    Err(LogError::Closed.into())
}

/// The line for a record; `None` at the end.
fn line_of(record: Record, contents: &mut Contents) -> Result<Option<Line>, LogError> {
    Ok(Some(match record {
        Record::Chunk { compressed } => {
            let damaged =
                || LogError::Corrupt(Arc::from(Box::<dyn Error + Send + Sync>::from("a damaged chunk")));
            match piece_stored(&compressed).ok_or_else(damaged)? {
                Piece::Data(content) => Line::Chunk(ChunkLine {
                    content: Bytes::encode(&content),
                }),
                Piece::Hole(bytes) => Line::Hole(HoleLine { bytes }),
            }
        }
        Record::Blob { id, info } => {
            contents.blobs += 1;
            Line::Blob(BlobLine {
                id: id.to_string(),
                size_bytes: info.size_bytes,
                chunks: info.chunks,
            })
        }
        Record::Stream {
            id,
            head,
            first,
            last,
        } => {
            contents.streams += 1;
            Line::Stream(StreamLine::encode(&id, &head, first, last))
        }
        Record::Event { event, blobs } => {
            contents.events += 1;
            Line::Event(EventLine::encode(&event, &blobs))
        }
        Record::LeftOut { .. } | Record::End => return Ok(None),
    }))
}

struct Lines<W: Write> {
    encoder: zstd::stream::write::Encoder<'static, W>,
    hasher: blake3::Hasher,
    records: u64,
}

impl<W: Write> Lines<W> {
    fn start(target: W) -> io::Result<Self> {
        let mut encoder = zstd::stream::write::Encoder::new(target, COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        let mut lines = Self {
            encoder,
            hasher: blake3::Hasher::new(),
            records: 0,
        };
        let (format, version) = (FORMAT.to_owned(), VERSION);
        lines.write_line(&Line::Header(HeaderLine { format, version }))?;
        Ok(lines)
    }

    fn write(&mut self, record: &Line) -> io::Result<()> {
        self.records += 1;
        self.write_line(record)
    }

    fn write_line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.encoder.write_all(&text)
    }

    fn finish(mut self, left_out: Vec<String>) -> io::Result<W> {
        let end = EndLine {
            left_out,
            records: self.records,
            blake3: self.hasher.finalize().to_string(),
        };
        self.write_line(&Line::End(end))?;
        let mut target = self.encoder.finish()?;
        target.flush()?;
        Ok(target)
    }
}
