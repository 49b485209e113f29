//! The results of a workspace scan, so that the next one doesn't have to read unchanged files.
//!
//! A file counts as unchanged if all of its stat data is the same. That isn't reliable for a file that was written at
//! the time of the scan, since the next write may get the same time; such a file is left out of the cache, and read
//! again.
//!
//! The cache is one file, replaced as a whole, with a hash at its end. A file that is damaged or has another version is
//! ignored.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use eventlog::BlobId;
use rustix::fs::Stat;

use crate::ManifestId;

/// The start of the file; another format gets another one.
const MAGIC: &[u8; 8] = b"tlkstat1";
const HASH_BYTES: usize = 32;

/// How close to the scan a file may have been written and still be trusted. Kernels advance the file clock in ticks of
/// up to 10 ms.
const TICK_NS: u32 = 20_000_000;
/// The same for file systems with a resolution of one or two seconds.
const COARSE_TICK_S: i64 = 2;

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// The stat data of a file. If all of it is the same, so is the content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StatKey {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) modified: FileTime,
    pub(crate) changed: FileTime,
}

/// An entry that a scan found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Cached {
    File { key: StatKey, hash: BlobId },
    Symlink { target: Box<[u8]> },
    Directory { mode: u32, modified: FileTime },
}

/// What the last scan found, by path.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct StatCache {
    pub(crate) image: Option<ManifestId>,
    /// How many entries the image has. Not all of them have to be in the cache.
    pub(crate) image_entries: u64,
    pub(crate) entries: HashMap<Box<[u8]>, Cached>,
}

impl FileTime {
    /// The mtime of a file.
    pub(crate) fn modified(stat: &Stat) -> Self {
        Self {
            seconds: stat.st_mtime,
            nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        }
    }

    pub(crate) fn changed(stat: &Stat) -> Self {
        Self {
            seconds: stat.st_ctime,
            nanoseconds: u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
        }
    }

    pub(crate) fn minus_tick(self, is_coarse: bool) -> Self {
        if is_coarse {
            return Self {
                seconds: self.seconds.saturating_sub(COARSE_TICK_S),
                ..self
            };
        }
        match self.nanoseconds.checked_sub(TICK_NS) {
            Some(nanoseconds) => Self { nanoseconds, ..self },
            None => Self {
                seconds: self.seconds.saturating_sub(1),
                nanoseconds: self.nanoseconds + (1_000_000_000 - TICK_NS),
            },
        }
    }
}

impl StatKey {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
            modified: FileTime::modified(stat),
            changed: FileTime::changed(stat),
        }
    }

    /// Whether a write after this moment is sure to change it.
    pub(crate) fn is_settled_by(&self, scan_began: FileTime) -> bool {
        let is_coarse = self.modified.nanoseconds == 0 && self.changed.nanoseconds == 0;
        self.modified.max(self.changed) < scan_began.minus_tick(is_coarse)
    }
}

impl StatCache {
    pub(crate) fn read(file: &Path) -> Self {
        let found = fs::read(file).ok().and_then(|bytes| Self::decode(&bytes));
        found.unwrap_or_default()
    }

    /// Replaces the file. It doesn't have to survive a power loss: a damaged one is ignored.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let directory = file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // Each writer has its own file until the rename, so that two at once don't mix.
        let passing = directory.join(format!("{name}.{}", crate::scan::random_name()));
        let written = fs::File::create_new(&passing).and_then(|mut new| new.write_all(&self.encode()));
        let placed = written.and_then(|()| fs::rename(&passing, file));
        if placed.is_err() {
            fs::remove_file(&passing).ok();
        }
        placed
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.entries.len() * 160);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.image.map_or([0; 32], |image| image.0));
        bytes.extend_from_slice(&self.image_entries.to_le_bytes());
        for (path, cached) in &self.entries {
            put(&mut bytes, path);
            match cached {
                Cached::File { key, hash } => {
                    bytes.push(b'f');
                    for number in [key.device, key.inode, key.size] {
                        bytes.extend_from_slice(&number.to_le_bytes());
                    }
                    bytes.extend_from_slice(&key.mode.to_le_bytes());
                    put_time(&mut bytes, key.modified);
                    put_time(&mut bytes, key.changed);
                    bytes.extend_from_slice(hash.as_bytes());
                }
                Cached::Symlink { target } => {
                    bytes.push(b'l');
                    put(&mut bytes, target);
                }
                Cached::Directory { mode, modified } => {
                    bytes.push(b'd');
                    bytes.extend_from_slice(&mode.to_le_bytes());
                    put_time(&mut bytes, *modified);
                }
            }
        }
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
        if blake3::hash(content).as_bytes() != hash {
            return None;
        }
        let mut rest = content.strip_prefix(MAGIC)?;
        let image: [u8; 32] = take(&mut rest)?;
        let image_entries = u64::from_le_bytes(take(&mut rest)?);
        let mut entries = HashMap::with_capacity(rest.len() / 130);
        while !rest.is_empty() {
            let path = text(&mut rest)?.into();
            let cached = match take::<1>(&mut rest)? {
                [b'f'] => Cached::File {
                    key: StatKey {
                        device: u64::from_le_bytes(take(&mut rest)?),
                        inode: u64::from_le_bytes(take(&mut rest)?),
                        size: u64::from_le_bytes(take(&mut rest)?),
                        mode: u32::from_le_bytes(take(&mut rest)?),
                        modified: time(&mut rest)?,
                        changed: time(&mut rest)?,
                    },
                    hash: BlobId::from_bytes(take(&mut rest)?),
                },
                [b'l'] => Cached::Symlink {
                    target: text(&mut rest)?.into(),
                },
                [b'd'] => Cached::Directory {
                    mode: u32::from_le_bytes(take(&mut rest)?),
                    modified: time(&mut rest)?,
                },
                _ => return None,
            };
            entries.insert(path, cached);
        }
        Some(Self {
            image: (image != [0; 32]).then_some(ManifestId(image)),
            image_entries,
            entries,
        })
    }
}

fn put(bytes: &mut Vec<u8>, text: &[u8]) {
    // Paths and targets have at most 4095 bytes, so nothing is truncated here.
    bytes.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(text);
}

fn put_time(bytes: &mut Vec<u8>, time: FileTime) {
    bytes.extend_from_slice(&time.seconds.to_le_bytes());
    bytes.extend_from_slice(&time.nanoseconds.to_le_bytes());
}

fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(u32::from_le_bytes(take(rest)?)).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(text)
}

fn time(rest: &mut &[u8]) -> Option<FileTime> {
    Some(FileTime {
        seconds: i64::from_le_bytes(take(rest)?),
        nanoseconds: u32::from_le_bytes(take(rest)?),
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (found, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64, nanoseconds: u32) -> FileTime {
        FileTime { seconds, nanoseconds }
    }

    fn key(modified: FileTime, changed: FileTime) -> StatKey {
        StatKey {
            device: 1,
            inode: 2,
            size: 3,
            mode: 0o100_644,
            modified,
            changed,
        }
    }

    #[test]
    fn a_file_written_at_the_time_of_the_scan_is_not_trusted() {
        let scan = time(1000, 10_000_000);
        let long_ago = time(900, 5);
        for (modified, changed, expected) in [
            (long_ago, long_ago, true),
            (long_ago, time(999, 989_999_999), true),
            (long_ago, time(999, 990_000_000), false),
            (time(1000, 9_000_000), long_ago, false),
            (long_ago, scan, false),
            (long_ago, time(1001, 5), false),
            // A time in the future says nothing about the past.
            (time(5000, 5), long_ago, false),
            // A file system with a resolution of seconds: there must be two of them in between.
            (time(997, 0), time(997, 0), true),
            (time(999, 0), time(999, 0), false),
        ] {
            let found = key(modified, changed).is_settled_by(scan);
            assert_eq!(found, expected, "{modified:?} {changed:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_a_damaged_file_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deep/cache");
        let entries = [
            (
                "a",
                Cached::Directory {
                    mode: 0o755,
                    modified: time(-5, 7),
                },
            ),
            (
                "a/b",
                Cached::File {
                    key: key(time(1, 2), time(3, 4)),
                    hash: BlobId::from_bytes([9; 32]),
                },
            ),
            (
                "l",
                Cached::Symlink {
                    target: b"../\xff"[..].into(),
                },
            ),
        ];
        let cache = StatCache {
            image: Some(ManifestId([7; 32])),
            image_entries: 4,
            entries: entries
                .map(|(path, cached)| (path.as_bytes().into(), cached))
                .into(),
        };
        cache.write(&file).unwrap();
        assert_eq!(StatCache::read(&file), cache);
        let whole = fs::read(&file).unwrap();
        for damaged in [
            &whole[..whole.len() - 1],
            &whole[..9],
            b"",
            &[&whole[..40], b"x", &whole[41..]].concat(),
        ] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(StatCache::read(&file), StatCache::default());
        }
        let left: Vec<_> = fs::read_dir(file.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside the cache");
    }
}
