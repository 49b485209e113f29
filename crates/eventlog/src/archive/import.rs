//! From an archive to an empty log.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    Contents,
    format::{BlobLine, EndLine, FORMAT, HeaderLine, LINE_LIMIT_BYTES, Line, VERSION},
};
use crate::{
    blob::BlobId,
    blob_io::{self, BlobVerifier, Piece},
    error::LogError,
    log::Log,
    record::{QUEUE_RECORDS, Record, RestoreError},
};

/// An archive wasn't imported; nothing of it is in the log.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Only an empty log can be filled, because its content could contradict the archive.
    #[error("the log is not empty, and an archive can only be imported into an empty one")]
    NotEmpty,
    /// The source isn't an archive.
    #[error("this is not an archive")]
    NotAnArchive,
    /// The archive was written by a newer Tidelock.
    #[error("the archive has format {found}, and this version knows formats up to {VERSION}")]
    NewerFormat {
        /// The format of the archive.
        found: u32,
    },
    /// The archive has no end line.
    #[error("the archive was cut short")]
    CutShort,
    /// The archive isn't what was written.
    #[error("the archive is damaged at line {line}")]
    Damaged {
        /// The line number, from 1.
        line: u64,
    },
    /// A head or event refers to a blob that isn't in the archive.
    #[error("the archive refers to the blob {0}, which it does not hold")]
    BlobMissing(BlobId),
    /// The archive couldn't be read from its source.
    #[error("the archive cannot be read")]
    Source(#[source] io::Error),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Fills an empty log from an archive, all or nothing. Streams, sequence numbers, times, heads and blobs stay the
/// same; versions are new, in the same order. Nobody else writes in the meantime. *Cancel safety*: if the future
/// is dropped, the import is rolled back, unless it was about to finish.
pub async fn import<R: Read + Send + 'static>(log: &Log, source: R) -> Result<Contents, ImportError> {
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS);
    // Dropping this future drops the receiver, which stops the reading thread, and that stops the log that waits
    // for records.
    let (wanted, _wanting) = oneshot::channel();
    let reading = tokio::task::spawn_blocking(move || read(source, &sender, &wanted));
    let restored = log.store().restore(receiver).await;
    let read = reading
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))?;
    match (restored, read) {
        (Ok(()), Ok((contents, _))) => Ok(contents),
        // The log only stopped because the archive did.
        (Ok(()) | Err(RestoreError::Broken), Err(error)) => Err(error),
        (Err(RestoreError::NotEmpty), _) => Err(ImportError::NotEmpty),
        (Err(RestoreError::BlobMissing(id)), _) => Err(ImportError::BlobMissing(id)),
        (Err(RestoreError::Broken), Ok((_, line))) => Err(ImportError::Damaged { line }),
        (Err(RestoreError::Log(error)), _) => Err(error.into()),
    }
}

/// Reads the archive and sends its records; the last one only after the whole was verified. If the log stops
/// taking them, it reports why itself. Returns the contents, or the line of the error.
fn read(
    source: impl Read,
    records: &mpsc::Sender<Record>,
    wanted: &oneshot::Sender<()>,
) -> Result<(Contents, u64), ImportError> {
    let mut lines = Lines::start(source)?;
    let mut contents = Contents::default();
    let mut verifier = BlobVerifier::default();
    loop {
        let before = lines.hasher.clone();
        let line = lines.next()?;
        let damaged = ImportError::Damaged { line: lines.number };
        let record = match line {
            Line::Header(_) => return Err(damaged),
            Line::Chunk(chunk) => {
                let piece = Piece::Data(chunk.decode().ok_or(damaged)?);
                chunk_of(&piece, &mut verifier)?
            }
            Line::Hole(hole) => chunk_of(&hole.decode().ok_or(damaged)?, &mut verifier)?,
            Line::Blob(blob) => {
                contents.blobs += 1;
                finish_blob(&blob, std::mem::take(&mut verifier)).ok_or(damaged)?
            }
            Line::Stream(stream) => {
                contents.streams += 1;
                let (id, head, first, last) = stream.decode().ok_or(damaged)?;
                Record::Stream {
                    id,
                    head,
                    first,
                    last,
                }
            }
            Line::Event(event) => {
                contents.events += 1;
                let (event, blobs) = event.decode().ok_or(damaged)?;
                Record::Event { event, blobs }
            }
            Line::End(end) => {
                if !is_end(&end, lines.number, &before) {
                    return Err(damaged);
                }
                lines.finish()?;
                contents.left_out = end.left_out;
                Record::End
            }
        };
        let is_end = record == Record::End;
        if wanted.is_closed() || records.blocking_send(record).is_err() || is_end {
            return Ok((contents, lines.number));
        }
    }
}

fn chunk_of(piece: &Piece, verifier: &mut BlobVerifier) -> Result<Record, LogError> {
    let compressed = blob_io::store_form(piece)?;
    verifier.add(piece, &compressed);
    Ok(Record::Chunk { compressed })
}

/// The blob that the chunks before it make, if they match.
fn finish_blob(blob: &BlobLine, verifier: BlobVerifier) -> Option<Record> {
    let (id, info) = (verifier.id(), verifier.info());
    let is_whole =
        blob.id == id.to_string() && (blob.size_bytes, blob.chunks) == (info.size_bytes, info.chunks);
    is_whole.then_some(Record::Blob { id, info })
}

/// Whether the end matches what came before it: all lines but the header and the end are records.
fn is_end(end: &EndLine, line: u64, before: &blake3::Hasher) -> bool {
    end.records + 2 == line && end.blake3 == before.finalize().to_string()
}

struct Lines<R: Read> {
    decoder: BufReader<zstd::stream::read::Decoder<'static, BufReader<R>>>,
    hasher: blake3::Hasher,
    /// How many lines were read.
    number: u64,
}

impl<R: Read> Lines<R> {
    fn start(source: R) -> Result<Self, ImportError> {
        let decoder = zstd::stream::read::Decoder::new(source).map_err(ImportError::Source)?;
        let mut lines = Self {
            decoder: BufReader::new(decoder),
            hasher: blake3::Hasher::new(),
            number: 0,
        };
        // If the first line is damaged, this was never an archive.
        let header = match lines.next() {
            Ok(Line::Header(header)) => header,
            Ok(_) | Err(ImportError::Damaged { .. }) => return Err(ImportError::NotAnArchive),
            Err(error) => return Err(error),
        };
        check_header(&header)?;
        Ok(lines)
    }

    fn next(&mut self) -> Result<Line, ImportError> {
        self.number += 1;
        let mut text = Vec::new();
        let limit = LINE_LIMIT_BYTES as u64;
        let read = (&mut self.decoder).take(limit).read_until(b'\n', &mut text);
        read.map_err(|error| self.failed(error))?;
        if text.last() != Some(&b'\n') {
            return Err(if text.len() == LINE_LIMIT_BYTES {
                ImportError::Damaged { line: self.number }
            } else {
                ImportError::CutShort
            });
        }
        self.hasher.update(&text);
        serde_json::from_slice(&text).map_err(|_| ImportError::Damaged { line: self.number })
    }

    /// Checks that nothing follows the end.
    fn finish(&mut self) -> Result<(), ImportError> {
        let rest = self.decoder.fill_buf().map(<[u8]>::len);
        match rest {
            Ok(0) => Ok(()),
            Ok(_) => Err(ImportError::Damaged {
                line: self.number + 1,
            }),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The decoder's errors have no type of their own: an unexpected end is one kind, damage another, and the
    /// others come from the source.
    fn failed(&self, error: io::Error) -> ImportError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ImportError::CutShort,
            io::ErrorKind::Other | io::ErrorKind::InvalidData => ImportError::Damaged { line: self.number },
            _ => ImportError::Source(error),
        }
    }
}

fn check_header(header: &HeaderLine) -> Result<(), ImportError> {
    if header.format != FORMAT {
        return Err(ImportError::NotAnArchive);
    }
    if !(1..=VERSION).contains(&header.version) {
        return Err(ImportError::NewerFormat {
            found: header.version,
        });
    }
    Ok(())
}
