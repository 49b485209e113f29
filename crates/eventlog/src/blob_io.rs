//! Content into the log and out again, chunk by chunk.
//!
//! Whatever the size of the content, one chunk of it is in memory at a time. Hashing and compressing happen on a
//! thread where they keep nobody waiting.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use fastcdc::v2020::FastCDC;
use rustix::{fs::SeekFrom, io::Errno};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{
    address::{HOLE_BYTES, Runs, is_zero},
    blob::{BlobError, BlobId, BlobInfo, CHUNK_BYTES},
    error::LogError,
    store::{BlobStart, Store, UploadId},
};

/// How hard a chunk is compressed: fast, and most of what there is to gain.
const COMPRESSION_LEVEL: i32 = 3;

/// Content up to this size is expanded on the spot: that takes less time than waking another thread does.
const SMALL_BYTES: u64 = 16 * 1024;

/// A part of some content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Bytes.
    Data(Vec<u8>),
    /// So many zeros that nobody has to keep.
    Hole(u64),
}

/// Where content comes from, block by block.
pub(crate) trait Blocks {
    /// The next block of [`HOLE_BYTES`], or several if they are a hole; the last one is shorter. None at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Piece>, BlobError>> + Send;
}

/// Content that comes as a stream of bytes.
pub(crate) struct StreamBlocks<R>(pub(crate) R);

impl<R: AsyncRead + Unpin + Send> Blocks for StreamBlocks<R> {
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

impl Blocks for FileBlocks {
    async fn next(&mut self) -> Result<Option<Piece>, BlobError> {
        let (file, at) = (Arc::clone(&self.file), self.at);
        let piece = elsewhere(move || block_at(&file, at)).await?;
        let piece = piece.map_err(BlobError::Source)?;
        self.at += match &piece {
            Some(Piece::Data(block)) => block.len() as u64,
            Some(Piece::Hole(bytes)) => *bytes,
            None => 0,
        };
        Ok(piece)
    }
}

/// The block of a file that begins somewhere. If it is all zeros, so is everything up to where the file has data again.
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

/// Up to where a file has nothing but a hole, from a place on; the place itself if the file system doesn't say.
///
/// # Errors
/// The file cannot be asked.
pub fn hole_end(file: &File, from: u64) -> std::io::Result<u64> {
    match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(data) => Ok(data),
        // No data after it.
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

/// Puts content into the log, and says where it is.
pub(crate) async fn put(
    store: &dyn Store,
    mut content: impl Blocks,
) -> Result<(BlobId, BlobInfo), BlobError> {
    let mut putting = Putting {
        store,
        upload: store.begin_upload().await?,
        gathered: Gathered::default(),
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
    let (id, info) = (putting.gathered.id(), putting.gathered.info());
    store.finish_upload(putting.upload, id, info).await?;
    // It may have been there before, compressed in another way.
    let info = store.blob_info(id).await?.ok_or(BlobError::Missing(id))?;
    Ok((id, info))
}

/// Content on its way into the log.
struct Putting<'a> {
    store: &'a dyn Store,
    upload: UploadId,
    gathered: Gathered,
}

impl Putting<'_> {
    /// Puts all of a run that is over.
    async fn rest(&mut self, mut buffer: Vec<u8>) -> Result<(), BlobError> {
        // Most content is small, and one chunk.
        let is_whole = self.gathered.info().chunks == 0;
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

    /// Puts the first chunk of what there is, and gives the rest.
    async fn first_chunk(
        &mut self,
        mut buffer: Vec<u8>,
        length: fn(&[u8]) -> usize,
    ) -> Result<Vec<u8>, BlobError> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let (gathered, rest, compressed) = elsewhere(move || {
            let rest = buffer.split_off(length(&buffer));
            let compressed = compress(&buffer)?;
            let piece = Piece::Data(buffer);
            gathered.add(&piece, &compressed);
            Ok::<_, LogError>((gathered, rest, compressed))
        })
        .await??;
        let number = gathered.info().chunks - 1;
        self.gathered = gathered;
        self.store.put_chunk(self.upload, number, compressed).await?;
        Ok(rest)
    }

    async fn hole(&mut self, bytes: u64) -> Result<(), BlobError> {
        if bytes == 0 {
            return Ok(());
        }
        let (number, piece) = (self.gathered.info().chunks, Piece::Hole(bytes));
        let stored = store_form(&piece)?;
        self.gathered.add(&piece, &stored);
        self.store.put_chunk(self.upload, number, stored).await
    }
}

/// How long the first chunk of some content is. The bytes around the cut decide, and not how far it is from the start; so
/// two versions of a file have most chunks in common, whatever was put in or taken out.
fn cut(content: &[u8]) -> usize {
    let mut chunks = FastCDC::new(content, CHUNK_BYTES / 8, CHUNK_BYTES / 2, CHUNK_BYTES);
    chunks.next().map_or(content.len(), |chunk| chunk.length)
}

/// Reads a blob from its start to its end.
#[derive(Debug)]
pub struct BlobReader {
    store: Arc<dyn Store>,
    id: BlobId,
    info: BlobInfo,
    gathered: Gathered,
    /// The first chunk, compressed, until somebody asks for it.
    first: Option<Vec<u8>>,
    /// How many zeros of the last hole have not been handed out as bytes.
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
            gathered: Gathered::default(),
            first,
            zeros: 0,
        })
    }

    /// What is known of the blob.
    pub fn info(&self) -> BlobInfo {
        self.info
    }

    /// As [`next_piece`](Self::next_piece), with holes as the zeros that they are.
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

    /// The next piece of the content; `None` when there is no more. The last piece is handed out when the whole
    /// is known to be what the address says; so a reader that got `None` has seen all of it, unharmed.
    /// *Cancel safety*: dropped half-way, the next call gives the same piece.
    pub async fn next_piece(&mut self) -> Result<Option<Piece>, BlobError> {
        let number = self.gathered.info().chunks;
        if number == self.info.chunks {
            self.check_whole(&self.gathered)?;
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
        let mut gathered = self.gathered.clone();
        let expand = move || {
            let piece = gathered.add_stored(&compressed);
            (gathered, piece)
        };
        let (gathered, piece) = if self.info.size_bytes <= SMALL_BYTES {
            expand()
        } else {
            elsewhere(expand).await?
        };
        if number + 1 == self.info.chunks {
            self.check_whole(&gathered)?;
        }
        let Some(piece) = piece else {
            return Err(BlobError::Damaged(self.id));
        };
        self.gathered = gathered;
        Ok(Some(piece))
    }

    fn check_whole(&self, gathered: &Gathered) -> Result<(), BlobError> {
        if gathered.is_whole(self.id, self.info) {
            Ok(())
        } else {
            Err(BlobError::Damaged(self.id))
        }
    }
}

/// Reads blobs, whole, in the order of their addresses.
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

/// The chunks of a blob as they go by, to see at the end whether they are what the address says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    runs: Runs,
    size_bytes: u64,
    stored_bytes: u64,
    chunks: u32,
}

impl Gathered {
    /// Adds a chunk as it is stored, and gives what it is. One that cannot be read counts as empty, which the end will show.
    pub(crate) fn add_stored(&mut self, stored: &[u8]) -> Option<Piece> {
        let piece = piece_stored(stored);
        match &piece {
            Some(piece) => self.add(piece, stored),
            None => self.add(&Piece::Data(Vec::new()), stored),
        }
        piece
    }

    /// Adds a piece that is kept in the stored form.
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

    /// What is known of a blob of these chunks.
    pub(crate) fn info(&self) -> BlobInfo {
        BlobInfo {
            size_bytes: self.size_bytes,
            stored_bytes: self.stored_bytes,
            chunks: self.chunks,
        }
    }

    /// The address of a blob of these chunks.
    pub(crate) fn id(&self) -> BlobId {
        self.runs.id()
    }

    /// Whether the chunks are that blob.
    pub(crate) fn is_whole(&self, id: BlobId, info: BlobInfo) -> bool {
        self.id() == id && self.info() == info
    }
}

/// How a hole is stored: a frame that zstd itself skips, with the number of its zeros.
const HOLE_FRAME: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0];

/// The form in which a piece is stored.
pub(crate) fn store_form(piece: &Piece) -> Result<Vec<u8>, LogError> {
    match piece {
        Piece::Data(chunk) => compress(chunk),
        Piece::Hole(bytes) => Ok([HOLE_FRAME, bytes.to_le_bytes()].concat()),
    }
}

/// What is stored in that form; `None` if it is nothing, or would be larger than a chunk may be.
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

/// Compresses a chunk by itself.
fn compress(chunk: &[u8]) -> Result<Vec<u8>, LogError> {
    zstd::bulk::compress(chunk, COMPRESSION_LEVEL).map_err(|error| LogError::Engine(Arc::new(error)))
}

/// The content of a chunk; `None` if it is not one, or would be larger than a chunk may be.
fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::decompress(compressed, CHUNK_BYTES).ok()
}

/// Runs something that takes a while on a thread of its own.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, LogError> {
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
