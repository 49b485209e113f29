//! A manifest as bytes. The same tree always has the same bytes; the name of a manifest is their hash.
//!
//! Each entry is a letter for its type, its path, and the data of that type. Variable-length data is preceded by its
//! length. All numbers are little-endian.

use eventlog::BlobId;

use super::{Manifest, ManifestId};
use crate::{Entry, LinkTarget, MODE_MASK, RelPath};

/// Comes first; another encoding gets another one.
const MAGIC: &[u8; 8] = b"tlkmani1";

/// Bytes that aren't a manifest, or not the expected one.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this is no manifest: {why}")]
pub struct BadManifest {
    why: &'static str,
}

impl Manifest {
    /// Encodes the manifest.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAGIC.len() + self.entries.len() * 96);
        bytes.extend_from_slice(MAGIC);
        for (path, entry) in &self.entries {
            match entry {
                Entry::Directory => {
                    bytes.push(b'd');
                    put(&mut bytes, path.as_bytes());
                }
                Entry::File { hash, size, mode } => {
                    bytes.push(b'f');
                    put(&mut bytes, path.as_bytes());
                    bytes.extend_from_slice(hash.as_bytes());
                    bytes.extend_from_slice(&size.to_le_bytes());
                    bytes.extend_from_slice(&mode.to_le_bytes());
                }
                Entry::Symlink { target } => {
                    bytes.push(b'l');
                    put(&mut bytes, path.as_bytes());
                    put(&mut bytes, &target.0);
                }
            }
        }
        bytes
    }

    /// Decodes what [`encode`](Self::encode) wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadManifest> {
        let mut rest = bytes.strip_prefix(MAGIC).ok_or(BadManifest {
            why: "it does not begin like one",
        })?;
        let mut entries: Vec<(RelPath, Entry)> = Vec::with_capacity(rest.len() / 96);
        while let Some((kind, after)) = rest.split_first() {
            rest = after;
            let path = RelPath::from_bytes(text(&mut rest)?).map_err(|_| BadManifest {
                why: "a path in it is none",
            })?;
            let entry = match kind {
                b'd' => Entry::Directory,
                b'f' => file(&mut rest)?,
                b'l' => Entry::Symlink {
                    target: LinkTarget(text(&mut rest)?.into()),
                },
                _ => {
                    return Err(BadManifest {
                        why: "an entry of no kind",
                    });
                }
            };
            if entries.last().is_some_and(|(last, _)| *last >= path) {
                return Err(BadManifest {
                    why: "it is not in order",
                });
            }
            entries.push((path, entry));
        }
        Ok(Self {
            entries: entries.into_iter().collect(),
        })
    }

    /// Decodes the manifest with this name.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode), or the name doesn't match.
    pub(crate) fn decode_named(bytes: &[u8], id: ManifestId) -> Result<Self, BadManifest> {
        if blake3::hash(bytes).as_bytes() != &id.0 {
            return Err(BadManifest {
                why: "it is another one",
            });
        }
        Self::decode(bytes)
    }
}

fn file(rest: &mut &[u8]) -> Result<Entry, BadManifest> {
    let hash = BlobId::from_bytes(fixed(rest)?);
    let size = u64::from_le_bytes(fixed(rest)?);
    let mode = u32::from_le_bytes(fixed(rest)?);
    if mode & !MODE_MASK != 0 {
        return Err(BadManifest {
            why: "permissions that no file of ours has",
        });
    }
    Ok(Entry::File { hash, size, mode })
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    // Paths and targets have at most 4095 bytes, so nothing is truncated here.
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(text);
}

fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], BadManifest> {
    let length = u32::from_le_bytes(fixed(rest)?);
    let length = usize::try_from(length).map_err(|_| CUT_OFF)?;
    let (text, after) = rest.split_at_checked(length).ok_or(CUT_OFF)?;
    *rest = after;
    Ok(text)
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], BadManifest> {
    let (found, after) = rest.split_first_chunk::<N>().ok_or(CUT_OFF)?;
    *rest = after;
    Ok(*found)
}

const CUT_OFF: BadManifest = BadManifest { why: "it is cut off" };
