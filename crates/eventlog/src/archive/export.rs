//! From a log to an archive.

use std::{
    io::{self, Write},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Contents,
    format::{BlobLine, Bytes, ChunkLine, EndLine, EventLine, FORMAT, HeaderLine, Line, StreamLine, VERSION},
};
use crate::{
    blob::BlobId,
    blob_io::Gathered,
    error::LogError,
    log::Log,
    record::{QUEUE_RECORDS, Record},
};

/// How hard an archive is compressed: fast, and most of what there is to gain.
const COMPRESSION_LEVEL: i32 = 3;

/// An archive was not written. What is there of it has no end, and cannot be taken for a whole one.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The archive could not be written to where it goes.
    #[error("the archive cannot be written")]
    Target(#[source] io::Error),
    /// A blob is damaged, so that no archive with it could be whole.
    #[error("the blob {0} is damaged")]
    DamagedBlob(BlobId),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Writes everything that the log holds at one moment into an archive, while the log is in use, and gives the
/// target back. On SQLite the write-ahead log grows until it is done. *Cancel safety*: dropped half-way, the
/// archive is cut short.
pub async fn export<W: Write + Send + 'static>(log: &Log, target: W) -> Result<(W, Contents), ExportError> {
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    // Dropped with this future, which stops the thread that writes, and thereby the one that reads the log.
    let (wanted, _wanting) = oneshot::channel();
    let writing = tokio::task::spawn_blocking(move || write(receiver, target, &wanted));
    let dumped = log.store().dump(sender).await;
    let written = writing
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))?;
    match (dumped, written) {
        // The writer stopped in the middle of things because the records did.
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
    let (mut contents, mut gathered) = (Contents::default(), Gathered::default());
    while let Some(record) = records.blocking_recv().filter(|_| !wanted.is_closed()) {
        let line = match record {
            Record::Chunk { compressed } => {
                let content = gathered.add_compressed(&compressed);
                Line::Chunk(ChunkLine {
                    content: Bytes::encode(&content),
                })
            }
            Record::Blob { id, info } => {
                if !std::mem::take(&mut gathered).is_whole(id, info) {
                    return Err(ExportError::DamagedBlob(id));
                }
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
            Record::End => {
                let target = lines.finish().map_err(ExportError::Target)?;
                return Ok((target, contents));
            }
        };
        lines.write(&line).map_err(ExportError::Target)?;
    }
    Err(LogError::Closed.into())
}

/// The lines of an archive, as they are written.
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

    fn finish(mut self) -> io::Result<W> {
        let end = EndLine {
            records: self.records,
            blake3: self.hasher.finalize().to_string(),
        };
        self.write_line(&Line::End(end))?;
        let mut target = self.encoder.finish()?;
        target.flush()?;
        Ok(target)
    }
}
