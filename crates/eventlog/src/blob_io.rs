//! Reads and writes content chunk by chunk.
//!
//! Only one chunk of the content is in memory at a time, whatever its size. Hashing and compression run on
//! threads that may block.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use fastcdc::v2020::FastCDC;
use rustix::{fs::SeekFrom, io::Errno};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{
    address::{HOLE_BYTES, RunHasher, is_zero},
    blob::{BlobError, BlobId, BlobInfo, CHUNK_BYTES},
    error::LogError,
    store::{BlobStart, Store, UploadId},
};

/// The zstd level for chunks: fast, with most of the gain.
const COMPRESSION_LEVEL: i32 = 3;

/// Content up to this size is decompressed in place, which takes less time than waking another thread.
const SMALL_BYTES: u64 = 16 * 1024;

/// A part of some content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Bytes.
    Data(Vec<u8>),
    /// This many zeros, which aren't stored.
    Hole(u64),
}

/// A source of content, block by block.
pub(crate) trait BlockSource {
    /// The next block of [`HOLE_BYTES`], or several if they are a hole. The last block may be shorter. `None` at
    /// the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Piece>, BlobError>> + Send;
}

/// Content from a stream of bytes.
pub(crate) struct StreamBlocks<R>(pub(crate) R);

impl<R: AsyncRead + Unpin + Send> BlockSource for StreamBlocks<R> {
    async fn next(&mut self) -> Result<Option<Piece>, BlobError> {
        let mut block = Vec::new();
        let mut limited = (&mut self.0).take(HOLE_BYTES as u64);
        limited.read_to_end(&mut block).await.map_err(BlobError::Source)?;
        Ok(piece_of(block))
    }
}

/// The content of a file, from its beginning.
pub(crate) struct FileBlocks {
    file: Arc<File>,
    at: u64,
}

impl FileBlocks {
    pub(crate) fn new(file: File) -> Self {
        Self {
            file: Arc::new(file),
            at: 0,
        }
    }
}

impl BlockSource for FileBlocks {
    async fn next(&mut self) -> Result<Option<Piece>, BlobError> {
        let (file, at) = (Arc::clone(&self.file), self.at);
        let piece = run_blocking(move || block_at(&file, at)).await?;
        let piece = piece.map_err(BlobError::Source)?;
        self.at += match &piece {
            Some(Piece::Data(block)) => block.len() as u64,
            Some(Piece::Hole(bytes)) => *bytes,
            None => 0,
        };
        Ok(piece)
    }
}

/// The block of a file at an offset. If the block is all zeros, the result extends to where the file has data
/// again.
fn block_at(file: &File, at: u64) -> std::io::Result<Option<Piece>> {
    let mut block = vec![0; HOLE_BYTES];
    let mut filled = 0;
    while filled < HOLE_BYTES {
        match file.read_at(&mut block[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    block.truncate(filled);
    let piece = piece_of(block);
    Ok(match piece {
        Some(Piece::Hole(bytes)) => {
            let to = hole_end(file, at)?.max(at + bytes);
            Some(Piece::Hole((to - at) / HOLE_BYTES as u64 * HOLE_BYTES as u64))
        }
        piece => piece,
    })
}

/// The end of the hole at an offset of a file, or the offset itself if the file system can't tell.
///
/// # Errors
/// The file can't be queried.
pub fn hole_end(file: &File, from: u64) -> std::io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(data) => Ok(data),
        // There is no data after the offset.
        Err(Errno::NXIO) => Ok(file.metadata()?.len().max(from)),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(from),
        Err(error) => Err(error.into()),
    }
}

fn piece_of(block: Vec<u8>) -> Option<Piece> {
    match block.len() {
        0 => None,
        HOLE_BYTES if is_zero(&block) => Some(Piece::Hole(HOLE_BYTES as u64)),
        _ => Some(Piece::Data(block)),
    }
}

/// Puts content into the log and returns its address.
pub(crate) async fn put(
    store: &dyn Store,
    mut content: impl BlockSource,
) -> Result<(BlobId, BlobInfo), BlobError> {
    let mut putting = BlobUpload {
        store,
        upload: store.begin_upload().await?,
        verifier: BlobVerifier::default(),
    };
    let (mut buffer, mut hole) = (Vec::new(), 0);
    loop {
        match content.next().await? {
            Some(Piece::Hole(bytes)) => {
                putting.rest(std::mem::take(&mut buffer)).await?;
                hole += bytes;
            }
            Some(Piece::Data(block)) => {
                putting.hole(std::mem::take(&mut hole)).await?;
                if buffer.is_empty() {
                    buffer = block;
                } else {
                    buffer.extend(block);
                }
                while buffer.len() >= CHUNK_BYTES {
                    buffer = putting.first_chunk(buffer, cut).await?;
                }
            }
            None => {
                putting.rest(buffer).await?;
                putting.hole(hole).await?;
                break;
            }
        }
    }
    let (id, info) = (putting.verifier.id(), putting.verifier.info());
    store.finish_upload(putting.upload, id, info).await?;
    // The blob may have existed before, with another compressed size.
    let info = store.blob_info(id).await?.ok_or(BlobError::Missing(id))?;
    Ok((id, info))
}

/// Content on its way into the log.
struct BlobUpload<'a> {
    store: &'a dyn Store,
    upload: UploadId,
    verifier: BlobVerifier,
}

impl BlobUpload<'_> {
    /// Puts the rest of a run that is complete.
    async fn rest(&mut self, mut buffer: Vec<u8>) -> Result<(), BlobError> {
        // Most content is small and fits into one chunk.
        let is_whole = self.verifier.info().chunks == 0;
        while !buffer.is_empty() {
            let length = if is_whole {
                |content: &[u8]| content.len()
            } else {
                cut
            };
            buffer = self.first_chunk(buffer, length).await?;
        }
        Ok(())
    }

    /// Puts the first chunk of the buffer and returns the rest.
    async fn first_chunk(
        &mut self,
        mut buffer: Vec<u8>,
        length: fn(&[u8]) -> usize,
    ) -> Result<Vec<u8>, BlobError> {
        let mut verifier = std::mem::take(&mut self.verifier);
        let (verifier, rest, compressed) = run_blocking(move || {
            let rest = buffer.split_off(length(&buffer));
            let compressed = compress(&buffer)?;
            let piece = Piece::Data(buffer);
            verifier.add(&piece, &compressed);
            Ok::<_, LogError>((verifier, rest, compressed))
        })
        .await??;
        let number = verifier.info().chunks - 1;
        self.verifier = verifier;
        self.store.put_chunk(self.upload, number, compressed).await?;
        Ok(rest)
    }

    async fn hole(&mut self, bytes: u64) -> Result<(), BlobError> {
        if bytes == 0 {
            return Ok(());
        }
        let (number, piece) = (self.verifier.info().chunks, Piece::Hole(bytes));
        let stored = store_form(&piece)?;
        self.verifier.add(&piece, &stored);
        self.store.put_chunk(self.upload, number, stored).await
    }
}

/// The length of the first chunk of some content. The bytes around the cut decide, not the distance from the
/// start. So two versions of a file share most of their chunks, whatever was inserted or removed.
fn cut(content: &[u8]) -> usize {
    let mut chunks = FastCDC::new(content, CHUNK_BYTES / 8, CHUNK_BYTES / 2, CHUNK_BYTES);
    chunks.next().map_or(content.len(), |chunk| chunk.length)
}

/// Reads a blob from start to end.
#[derive(Debug)]
pub struct BlobReader {
    store: Arc<dyn Store>,
    id: BlobId,
    info: BlobInfo,
    verifier: BlobVerifier,
    /// The first chunk, compressed, until it is requested.
    first: Option<Vec<u8>>,
    /// How many zeros of the last hole haven't been returned as bytes yet.
    zeros: u64,
}

impl BlobReader {
    pub(crate) async fn open(store: Arc<dyn Store>, id: BlobId) -> Result<Self, BlobError> {
        let start = store.blob_starts(vec![id]).await?.pop().flatten();
        Self::begin(store, id, start)
    }

    fn begin(store: Arc<dyn Store>, id: BlobId, start: Option<BlobStart>) -> Result<Self, BlobError> {
        let BlobStart { info, first } = start.ok_or(BlobError::Missing(id))?;
        Ok(Self {
            store,
            id,
            info,
            verifier: BlobVerifier::default(),
            first,
            zeros: 0,
        })
    }

    /// The size of the blob.
    pub fn info(&self) -> BlobInfo {
        self.info
    }

    /// Like [`next_piece`](Self::next_piece), but returns holes as zeros.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, BlobError> {
        if self.zeros == 0 {
            match self.next_piece().await? {
                None => return Ok(None),
                Some(Piece::Data(chunk)) => return Ok(Some(chunk)),
                Some(Piece::Hole(bytes)) => self.zeros = bytes,
            }
        }
        let length = usize::try_from(self.zeros).map_or(CHUNK_BYTES, |zeros| zeros.min(CHUNK_BYTES));
        self.zeros -= length as u64;
        Ok(Some(vec![0; length]))
    }

    /// The next piece of the content, or `None` at the end. The last piece is returned only after the whole
    /// content was verified against the address. So a reader that got `None` has seen all of it, undamaged.
    /// *Cancel safety*: if the future is dropped, the next call returns the same piece.
    pub async fn next_piece(&mut self) -> Result<Option<Piece>, BlobError> {
        let number = self.verifier.info().chunks;
        if number == self.info.chunks {
            self.check_whole(&self.verifier)?;
            return Ok(None);
        }
        let chunk = match self.first.take() {
            Some(first) => Some(first),
            None => self.store.blob_chunk(self.id, number).await?,
        };
        let Some(compressed) = chunk else {
            let is_there = self.store.blob_info(self.id).await?.is_some();
            return Err(if is_there {
                BlobError::Damaged(self.id)
            } else {
                BlobError::Missing(self.id)
            });
        };
        let mut verifier = self.verifier.clone();
        let expand = move || {
            let piece = verifier.add_stored(&compressed);
            (verifier, piece)
        };
        let (verifier, piece) = if self.info.size_bytes <= SMALL_BYTES {
            expand()
        } else {
            run_blocking(expand).await?
        };
        if number + 1 == self.info.chunks {
            self.check_whole(&verifier)?;
        }
        let Some(piece) = piece else {
            return Err(BlobError::Damaged(self.id));
        };
        self.verifier = verifier;
        Ok(Some(piece))
    }

    fn check_whole(&self, verifier: &BlobVerifier) -> Result<(), BlobError> {
        if verifier.is_whole(self.id, self.info) {
            Ok(())
        } else {
            Err(BlobError::Damaged(self.id))
        }
    }
}

/// Reads whole blobs, in the order of their addresses.
pub(crate) async fn read_all(store: &Arc<dyn Store>, ids: &[BlobId]) -> Result<Vec<Vec<u8>>, BlobError> {
    let starts = store.blob_starts(ids.to_vec()).await?;
    let mut contents = Vec::with_capacity(ids.len());
    for (id, start) in ids.iter().zip(starts) {
        let mut reader = BlobReader::begin(Arc::clone(store), *id, start)?;
        let mut content = Vec::new();
        while let Some(chunk) = reader.next_chunk().await? {
            content.extend(chunk);
        }
        contents.push(content);
    }
    Ok(contents)
}

/// Computes the address and size of a blob from its chunks as they pass by.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlobVerifier {
    runs: RunHasher,
    size_bytes: u64,
    stored_bytes: u64,
    chunks: u32,
}

impl BlobVerifier {
    /// Adds a stored chunk and returns its content. A chunk that can't be decoded counts as empty, which fails
    /// the final check.
    pub(crate) fn add_stored(&mut self, stored: &[u8]) -> Option<Piece> {
        let piece = piece_stored(stored);
        match &piece {
            Some(piece) => self.add(piece, stored),
            None => self.add(&Piece::Data(Vec::new()), stored),
        }
        piece
    }

    pub(crate) fn add(&mut self, piece: &Piece, stored: &[u8]) {
        self.size_bytes += match piece {
            Piece::Data(content) => {
                self.runs.data(content);
                content.len() as u64
            }
            Piece::Hole(bytes) => {
                self.runs.hole(*bytes);
                *bytes
            }
        };
        self.stored_bytes += stored.len() as u64;
        self.chunks += 1;
    }

    /// The size of a blob with these chunks.
    pub(crate) fn info(&self) -> BlobInfo {
        BlobInfo {
            size_bytes: self.size_bytes,
            stored_bytes: self.stored_bytes,
            chunks: self.chunks,
        }
    }

    /// The address of a blob with these chunks.
    pub(crate) fn id(&self) -> BlobId {
        self.runs.id()
    }

    pub(crate) fn is_whole(&self, id: BlobId, info: BlobInfo) -> bool {
        self.id() == id && self.info() == info
    }
}

/// A hole is stored as a frame that zstd skips, with the number of its zeros.
const HOLE_FRAME: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0];

/// Encodes a piece for storage.
pub(crate) fn store_form(piece: &Piece) -> Result<Vec<u8>, LogError> {
    match piece {
        Piece::Data(chunk) => compress(chunk),
        Piece::Hole(bytes) => Ok([HOLE_FRAME, bytes.to_le_bytes()].concat()),
    }
}

/// Decodes a stored piece. `None` if it is invalid or larger than a chunk may be.
pub(crate) fn piece_stored(stored: &[u8]) -> Option<Piece> {
    if let Some(bytes) = stored.strip_prefix(&HOLE_FRAME) {
        let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
        let is_one = bytes > 0 && bytes.is_multiple_of(HOLE_BYTES as u64);
        return is_one.then_some(Piece::Hole(bytes));
    }
    decompress(stored)
        .filter(|content| !content.is_empty())
        .map(Piece::Data)
}

fn compress(chunk: &[u8]) -> Result<Vec<u8>, LogError> {
    zstd::bulk::compress(chunk, COMPRESSION_LEVEL).map_err(|error| LogError::Engine(Arc::new(error)))
}

/// The content of a chunk. `None` if it is invalid or larger than a chunk may be.
fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(compressed, CHUNK_BYTES).ok()
}

async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LogError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|failed| LogError::Engine(Arc::new(failed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_never_grows_beyond_its_size() {
        let full = vec![7; CHUNK_BYTES];
        assert_eq!(decompress(&compress(&full).unwrap()), Some(full));
        assert_eq!(decompress(&compress(&vec![7; CHUNK_BYTES + 1]).unwrap()), None);
        assert_eq!(decompress(&compress(&vec![0; 1 << 30]).unwrap()), None);
        assert_eq!(decompress(b"no such thing"), None);
    }
}
