//! What is at a path, and how it changed.

use eventlog::BlobId;
use serde::{Deserialize, Serialize};

use crate::RelPath;

/// The permission bits that count. The others (set-user-id and such) are never carried.
pub const MODE_MASK: u32 = 0o777;

/// What is at a path. Times and owners aren't part of it.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    File {
        /// The address of its content, which is its BLAKE3 hash.
        #[serde(with = "blob_text")]
        hash: BlobId,
        /// Its size in bytes.
        size: u64,
        /// Its permissions, see [`MODE_MASK`].
        mode: u32,
    },
    Symlink {
        target: LinkTarget,
    },
    /// A directory. It is listed so that an empty one isn't lost; its contents have their own entries.
    Directory,
}

/// Where a symlink points. It doesn't have to be text, or exist.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct LinkTarget(pub Box<[u8]>);

#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub path: RelPath,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Entry>,
    /// The old path, if it was renamed: the file was there with the entry in `before`, and no longer is. The new path
    /// was free before. The old path has no change of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RelPath>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Create,
    /// The content changed, and perhaps the permissions, or a file became a symlink or vice versa.
    Modify,
    Delete,
    /// It moved to another path, perhaps with another content.
    Rename,
    Chmod,
    Symlink,
}

impl Entry {
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory)
    }

    /// The address of the content, if it is a file.
    #[must_use]
    pub fn content(&self) -> Option<BlobId> {
        match self {
            Self::File { hash, .. } => Some(*hash),
            Self::Symlink { .. } | Self::Directory => None,
        }
    }
}

impl Change {
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            _ if self.from.is_some() => ChangeKind::Rename,
            (_, Some(Entry::Symlink { .. })) => ChangeKind::Symlink,
            (None, _) => ChangeKind::Create,
            (_, None) => ChangeKind::Delete,
            (Some(Entry::File { hash: before, .. }), Some(Entry::File { hash: after, .. }))
                if before == after =>
            {
                ChangeKind::Chmod
            }
            _ => ChangeKind::Modify,
        }
    }

    pub fn contents(&self) -> impl Iterator<Item = BlobId> + '_ {
        [&self.before, &self.after]
            .into_iter()
            .flatten()
            .filter_map(Entry::content)
    }
}

impl std::fmt::Debug for LinkTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for LinkTarget {
    /// As text if it is UTF-8, otherwise as a list of bytes.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LinkTarget {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Shape {
            Text(String),
            Bytes(Vec<u8>),
        }
        Ok(Self(match Shape::deserialize(deserializer)? {
            Shape::Text(text) => text.into_bytes().into(),
            Shape::Bytes(bytes) => bytes.into(),
        }))
    }
}

mod blob_text {
    use eventlog::BlobId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &BlobId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BlobId, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}
