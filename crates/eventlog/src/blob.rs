//! Blobs: content stored by its address.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::LogError;
use crate::names::Sequence;

/// How many bytes of content go into one chunk before compression. Only one chunk is held in memory, whatever the
/// size of the blob.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// The address of content; see [`BlobHasher`](crate::BlobHasher).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// The address with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the address.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A text that isn't the address of a blob.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a blob address, which has 64 hexadecimal digits")]
pub struct BadBlobId(pub String);

impl FromStr for BlobId {
    type Err = BadBlobId;

    fn from_str(text: &str) -> Result<Self, BadBlobId> {
        let bad = || BadBlobId(text.chars().take(80).collect());
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() != 64 || !is_hex {
            return Err(bad());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The size of a blob.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlobInfo {
    /// The size of the content.
    pub size_bytes: u64,
    /// The size in the log, after compression.
    pub stored_bytes: u64,
    /// The number of chunks.
    pub chunks: u32,
}

/// What a collection of blobs freed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Collected {
    /// The number of blobs that nothing referred to.
    pub blobs: u64,
    /// The number of abandoned uploads.
    pub uploads: u64,
    /// Their size in the log.
    pub stored_bytes: u64,
}

/// What was dropped from a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Trimmed {
    /// The number of events.
    pub events: u64,
    /// The oldest event that is left.
    pub first: Sequence,
}

/// A blob can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// There is no blob with this address.
    #[error("there is no blob {0}")]
    Missing(BlobId),
    /// The stored content doesn't match the address.
    #[error("the blob {0} is damaged")]
    Damaged(BlobId),
    /// The upload took too long, or was lost when the log failed. Put the content again.
    #[error("the upload expired or was lost")]
    UploadLost,
    /// The content couldn't be read from its source.
    #[error("the content could not be read")]
    Source(#[source] std::io::Error),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
