//! Reading a tree.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;

use eventlog::{BlobHasher, BlobId};
use kernel::Scope;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::error::TreeError;
use super::resolve::Tree;
use super::sparse::{FilePiece, next_piece};
use super::stat::{FileKind, FileStat};
use crate::{Entry, LinkTarget, RelPath};

/// How much of a file is read at once: enough to make the calls cheap, little enough for many concurrent readers.
const READ_BYTES: usize = 128 * 1024;
/// The maximum size of a file that is read without waiting: as much as a disk reads in one go, if it isn't in memory.
const AT_HAND_BYTES: u64 = 64 * 1024;
/// How often a file is read again because it was written during the read. After that, the result is used as is; callers
/// that need certainty check again later anyway.
const READINGS: u32 = 3;

/// Limits for reading whole files that someone else made, with any size.
#[derive(Clone, Debug)]
pub struct ReadBounds {
    /// Reading stops once it is cancelled.
    pub scope: Scope,
    /// A larger file isn't read. Holes count: a later reader gets them as zeros.
    pub max_file_bytes: u64,
}

impl ReadBounds {
    /// Fails if reading must stop.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.scope.cause() {
            None => Ok(()),
            Some(cause) => Err(io::Error::new(io::ErrorKind::Interrupted, cause.to_string())),
        }
    }
}

impl Tree {
    /// What is at a path; `None` if the tree has nothing there, including when a parent is missing, or is a file or a
    /// symlink. A file is read completely, for its hash.
    pub fn entry(&self, path: &RelPath) -> Result<Option<Entry>, TreeError> {
        Ok(self.look(path)?.map(|(entry, _)| entry))
    }

    /// Like [`entry`](Self::entry), with the stat data. If the file was written in the meantime, the two may not match;
    /// then a later stat has different times.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry).
    pub fn look(&self, path: &RelPath) -> Result<Option<(Entry, FileStat)>, TreeError> {
        self.look_at(path, None)
    }

    /// Like [`look`](Self::look), within bounds.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry); it is too large; or the scope was cancelled.
    pub fn look_within(
        &self,
        path: &RelPath,
        bounds: &ReadBounds,
    ) -> Result<Option<(Entry, FileStat)>, TreeError> {
        self.look_at(path, Some(bounds))
    }

    fn look_at(
        &self,
        path: &RelPath,
        bounds: Option<&ReadBounds>,
    ) -> Result<Option<(Entry, FileStat)>, TreeError> {
        let Some(stat) = self.stat(path)? else {
            return Ok(None);
        };
        let entry = match stat.kind {
            FileKind::Directory => Entry::Directory,
            FileKind::Symlink => match self.link_target(path) {
                Ok(target) => Entry::Symlink { target },
                Err(TreeError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
            FileKind::Special => {
                return Err(TreeError::NotAFile {
                    path: path.to_string(),
                });
            }
            FileKind::File => {
                let mut file = match self.open_file(path) {
                    Ok(file) => file,
                    Err(TreeError::NotFound { .. }) => return Ok(None),
                    Err(error) => return Err(error),
                };
                return hashed(path, &mut file, bounds).map(Some);
            }
        };
        Ok(Some((entry, stat)))
    }

    /// The stat data of a path; `None` as for [`entry`](Self::entry).
    pub fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, TreeError> {
        let found = self.parent(path).and_then(|(directory, name)| {
            statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| TreeError::of("look at", path, error))
        });
        match found {
            Ok(stat) => Ok(Some(stat.into())),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file for reading. Doesn't block on a pipe.
    pub fn open_file(&self, path: &RelPath) -> Result<File, TreeError> {
        let (directory, name) = self.parent(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let not_a_file = || TreeError::NotAFile {
            path: path.to_string(),
        };
        let file = openat(&directory, name, flags, Mode::empty()).map_err(|error| match error {
            // A symlink, a socket, or a device without a driver.
            Errno::LOOP | Errno::NXIO | Errno::NODEV => not_a_file(),
            error => TreeError::of("open", path, error),
        })?;
        let stat = fstat(&file).map_err(|error| TreeError::of("look at", path, error))?;
        match FileStat::from(stat).kind {
            FileKind::File => Ok(file.into()),
            FileKind::Directory => Err(TreeError::IsADirectory {
                path: path.to_string(),
            }),
            FileKind::Symlink | FileKind::Special => Err(not_a_file()),
        }
    }

    /// The entry and content of a regular file. Both come from the same read: the hash matches exactly this content.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn file(&self, path: &RelPath, limit: u64) -> Result<(Entry, Vec<u8>), TreeError> {
        let file = self.open_file(path)?;
        let stat = fstat(&file).map_err(|error| TreeError::of("look at", path, error))?;
        let stat = FileStat::from(stat);
        let content = content_of(file, stat.size, path, limit)?;
        Ok((entry_of(stat, &content), content))
    }

    /// Like [`file`](Self::file), without waiting: for a small file on the root's file system with a cached path.
    /// `None` only means that it has to be read where blocking is fine.
    #[must_use]
    pub fn file_at_hand(&self, path: &RelPath) -> Option<(Entry, Vec<u8>)> {
        let file = self.open_at_hand(path)?;
        let stat = FileStat::from(fstat(&file).ok()?);
        if stat.kind != FileKind::File || stat.size > AT_HAND_BYTES {
            return None;
        }
        let content = content_of(file.into(), stat.size, path, AT_HAND_BYTES).ok()?;
        Some((entry_of(stat, &content), content))
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// As for [`open_file`](Self::open_file), or it has more than `limit` bytes.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Vec<u8>, TreeError> {
        content_of(self.open_file(path)?, 0, path, limit)
    }

    /// Where a symlink points.
    pub fn link_target(&self, path: &RelPath) -> Result<LinkTarget, TreeError> {
        let (directory, name) = self.parent(path)?;
        let target = readlinkat(&directory, name, Vec::new())
            .map_err(|error| TreeError::of("read the symlink", path, error))?;
        Ok(LinkTarget(target.into_bytes().into()))
    }

    /// The entries of a directory, or of the root: names and kinds, in no particular order. The names are raw; not all
    /// of them are valid in a [`RelPath`].
    pub fn list(&self, directory: Option<&RelPath>) -> Result<Vec<(OsString, FileKind)>, TreeError> {
        let open = self.directory(directory)?;
        let failed = |error: Errno| match directory {
            Some(path) => TreeError::of("list", path, error),
            None => TreeError::Root {
                path: self.path().display().to_string(),
                source: error.into(),
            },
        };
        names_in(&open).map_err(failed)
    }
}

pub(super) fn names_in(directory: impl AsFd) -> Result<Vec<(OsString, FileKind)>, Errno> {
    let mut found = Vec::new();
    for item in Dir::read_from(&directory)? {
        let item = item?;
        let name = OsString::from_vec(item.file_name().to_bytes().to_vec());
        if name == OsStr::new(".") || name == OsStr::new("..") {
            continue;
        }
        let kind = match item.file_type() {
            // Not every file system reports the type in the listing.
            rustix::fs::FileType::Unknown => match statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileStat::from(stat).kind,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            known => known.into(),
        };
        found.push((name, kind));
    }
    Ok(found)
}

/// The stat data of an open file.
pub(crate) fn stat_of(path: &RelPath, file: &File) -> Result<FileStat, TreeError> {
    fstat(file)
        .map(FileStat::from)
        .map_err(|error| TreeError::of("look at", path, error))
}

/// The entry of an open file, whatever its current position.
pub(crate) fn entry_of_open(path: &RelPath, file: &mut File) -> Result<Entry, TreeError> {
    file.rewind()
        .map_err(|error| TreeError::of("read", path, error))?;
    Ok(hashed(path, file, None)?.0)
}

/// The entry of an open file, read from its start. A file that is written in the meantime is read again, so that the
/// result is consistent.
fn hashed(
    path: &RelPath,
    file: &mut File,
    bounds: Option<&ReadBounds>,
) -> Result<(Entry, FileStat), TreeError> {
    let too_large = |size: u64| match bounds {
        Some(bounds) if size > bounds.max_file_bytes => Err(TreeError::TooLarge {
            path: path.to_string(),
            limit: bounds.max_file_bytes,
        }),
        _ => Ok(()),
    };
    // The file may grow while it is read, so check this with every piece.
    let may_go_on = |size: u64| match bounds {
        Some(bounds) => bounds
            .check()
            .map_err(|error| TreeError::of("read", path, error))
            .and_then(|()| too_large(size)),
        None => Ok(()),
    };

    let mut before = stat_of(path, file)?;
    let mut left = READINGS;
    loop {
        left -= 1;
        too_large(before.size)?;
        let (hash, size) = hash_sized(file, before.size, path, may_go_on)?;
        let after = stat_of(path, file)?;
        if left == 0 || (before == after && after.size == size) {
            let mode = before.mode;
            return Ok((Entry::File { hash, size, mode }, before));
        }
        before = after;
        file.rewind()
            .map_err(|error| TreeError::of("read", path, error))?;
    }
}

fn entry_of(stat: FileStat, content: &[u8]) -> Entry {
    Entry::File {
        hash: BlobId::of(content),
        size: content.len() as u64,
        mode: stat.mode,
    }
}

/// The content of a file with about this many bytes.
fn content_of(file: File, expected: u64, path: &RelPath, limit: u64) -> Result<Vec<u8>, TreeError> {
    // With room for one more byte, one call reads it and the next one finds its end.
    let room = usize::try_from(expected.min(limit))
        .unwrap_or(0)
        .saturating_add(1);
    let mut content = Vec::with_capacity(room);
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| TreeError::of("read", path, error))?;
    if content.len() as u64 > limit {
        return Err(TreeError::TooLarge {
            path: path.to_string(),
            limit,
        });
    }
    Ok(content)
}

/// The address and size of the rest of a file. The expected size avoids a large buffer for a small file.
fn hash_sized(
    mut content: &File,
    expected: u64,
    path: &RelPath,
    may_go_on: impl Fn(u64) -> Result<(), TreeError>,
) -> Result<(BlobId, u64), TreeError> {
    let (mut hasher, mut size) = (BlobHasher::default(), 0);
    let wanted = usize::try_from(expected).map_or(READ_BYTES, |expected| expected.saturating_add(1));
    let mut buffer = vec![0; wanted.min(READ_BYTES)];
    let failed = |error| TreeError::of("read", path, error);
    while let Some(piece) = next_piece(&mut content, size, &mut buffer).map_err(failed)? {
        match piece {
            FilePiece::Data(data) => hasher.update(data),
            FilePiece::Hole(bytes) => hasher.zeros(bytes),
        }
        size += piece.len();
        may_go_on(size)?;
    }
    Ok((hasher.finish(), size))
}
