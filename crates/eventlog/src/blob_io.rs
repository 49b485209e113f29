//! Content into the log and out again, chunk by chunk.
//!
//! Whatever the size of the content, one chunk of it is in memory at a time. Hashing and compressing happen on a
//! thread where they keep nobody waiting.

use std::sync::Arc;

use fastcdc::v2020::FastCDC;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::{
    blob::{BlobError, BlobId, BlobInfo, CHUNK_BYTES},
    error::LogError,
    store::{BlobStart, Store},
};

/// How hard a chunk is compressed: fast, and most of what there is to gain.
const COMPRESSION_LEVEL: i32 = 3;

/// Content up to this size is expanded on the spot: that takes less time than waking another thread does.
const SMALL_BYTES: u64 = 16 * 1024;

/// Puts content into the log, and says where it is.
pub(crate) async fn put(
    store: &dyn Store,
    mut content: impl AsyncRead + Unpin + Send,
) -> Result<(BlobId, BlobInfo), BlobError> {
    let upload = store.begin_upload().await?;
    let mut gathered = Gathered::default();
    let mut buffer = Vec::new();
    loop {
        let is_end = fill(&mut content, &mut buffer).await.map_err(BlobError::Source)?;
        if buffer.is_empty() {
            break;
        }
        let number = gathered.info().chunks;
        // Most content is small, and one chunk.
        let is_whole = is_end && number == 0;
        let compressed;
        (gathered, buffer, compressed) = elsewhere(move || {
            let length = if is_whole { buffer.len() } else { cut(&buffer) };
            let rest = buffer.split_off(length);
            let compressed = compress(&buffer);
            gathered.add(&buffer, compressed.as_deref().unwrap_or_default());
            (gathered, rest, compressed)
        })
        .await?;
        store.put_chunk(upload, number, compressed?).await?;
    }
    let (id, info) = (gathered.id(), gathered.info());
    store.finish_upload(upload, id, info).await?;
    // It may have been there before, compressed in another way.
    let info = store.blob_info(id).await?.ok_or(BlobError::Missing(id))?;
    Ok((id, info))
}

/// Reads until there is enough for the largest chunk, or the content ends; whether it has.
async fn fill(content: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let missing = CHUNK_BYTES - buffer.len().min(CHUNK_BYTES);
    let read = content.take(missing as u64).read_to_end(buffer).await?;
    Ok(read < missing)
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
        })
    }

    /// What is known of the blob.
    pub fn info(&self) -> BlobInfo {
        self.info
    }

    /// The next piece of the content; `None` when there is no more. The last piece is handed out when the whole
    /// is known to be what the address says; so a reader that got `None` has seen all of it, unharmed.
    /// *Cancel safety*: dropped half-way, the next call gives the same piece.
    pub async fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, BlobError> {
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
            let content = gathered.add_compressed(&compressed);
            (gathered, content)
        };
        let (gathered, content) = if self.info.size_bytes <= SMALL_BYTES {
            expand()
        } else {
            elsewhere(expand).await?
        };
        if number + 1 == self.info.chunks {
            self.check_whole(&gathered)?;
        }
        if content.is_empty() {
            return Err(BlobError::Damaged(self.id));
        }
        self.gathered = gathered;
        Ok(Some(content))
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
    hasher: blake3::Hasher,
    size_bytes: u64,
    stored_bytes: u64,
    chunks: u32,
}

impl Gathered {
    /// Adds a chunk, and gives its content. One that cannot be read counts as empty, which the end will show.
    pub(crate) fn add_compressed(&mut self, compressed: &[u8]) -> Vec<u8> {
        let content = decompress(compressed).unwrap_or_default();
        self.add(&content, compressed);
        content
    }

    /// Adds the content of a chunk that is kept in the compressed form.
    pub(crate) fn add(&mut self, content: &[u8], compressed: &[u8]) {
        self.hasher.update(content);
        self.size_bytes += content.len() as u64;
        self.stored_bytes += compressed.len() as u64;
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
        BlobId::from_bytes(*self.hasher.finalize().as_bytes())
    }

    /// Whether the chunks are that blob.
    pub(crate) fn is_whole(&self, id: BlobId, info: BlobInfo) -> bool {
        self.id() == id && self.info() == info
    }
}

/// Compresses a chunk by itself.
pub(crate) fn compress(chunk: &[u8]) -> Result<Vec<u8>, LogError> {
    zstd::bulk::compress(chunk, COMPRESSION_LEVEL).map_err(|error| LogError::Engine(Arc::new(error)))
}

/// The content of a chunk; `None` if it is not one, or would be larger than a chunk may be.
pub(crate) fn decompress(compressed: &[u8]) -> Option<Vec<u8>> {
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
