//! Looking at a tree.

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

/// How much of a file is read at once: enough to make the calls cheap, little enough for a stack of readers.
const READ_BYTES: usize = 128 * 1024;
/// A file that is read at once has no more than this: as much as a disk reads in one go, if it is not in memory.
const AT_HAND_BYTES: u64 = 64 * 1024;
/// How often a file that is written while it is read is read again. After that it is taken as it was found; whoever needs
/// certainty looks again later anyway.
const READINGS: u32 = 3;

/// What bounds the reading of whole files that somebody else made, who may have made them of any size.
#[derive(Clone, Debug)]
pub struct ReadBounds {
    /// Nothing more is read once it is cancelled.
    pub scope: Scope,
    /// A file with more bytes is not read. Holes count: what reads the file later gets them as zeros.
    pub max_file_bytes: u64,
}

impl ReadBounds {
    /// Whether it may go on.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.scope.cause() {
            None => Ok(()),
            Some(cause) => Err(io::Error::new(io::ErrorKind::Interrupted, cause.to_string())),
        }
    }
}

impl Tree {
    /// What is at a path; `None` if the tree has nothing there, also because something on the way is missing, a file, or a
    /// symlink. A file is read whole, for its hash.
    pub fn entry(&self, path: &RelPath) -> Result<Option<Entry>, TreeError> {
        Ok(self.look(path)?.map(|(entry, _)| entry))
    }

    /// The same, with what the file system says of it. If the file was written meanwhile, the two may not belong together;
    /// then the times of a later look differ.
    ///
    /// # Errors
    /// As for [`entry`](Self::entry).
    pub fn look(&self, path: &RelPath) -> Result<Option<(Entry, FileStat)>, TreeError> {
        self.look_at(path, None)
    }

    /// The same within bounds.
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

    /// What the file system says of a path; `None` as for [`entry`](Self::entry).
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

    /// A regular file, open for reading. A pipe does not hold it up.
    pub fn open_file(&self, path: &RelPath) -> Result<File, TreeError> {
        let (directory, name) = self.parent(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let not_a_file = || TreeError::NotAFile {
            path: path.to_string(),
        };
        let file = openat(&directory, name, flags, Mode::empty()).map_err(|error| match error {
            // A symlink, a socket, and a device without a driver.
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

    /// What is at a path and its content, if it is a regular file. Both are of one reading: who knows the hash has seen
    /// exactly this.
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

    /// The same without waiting: for a small file to which the way is in memory, and which is on the file system of the root.
    /// `None` says only that it has to be read where that may take its time.
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

    /// The content of a file, whole.
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

    /// What is in a directory, or in the root: names and kinds, in no order. The names are as they are; not every one of
    /// them can be part of a [`RelPath`].
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
            // Not every file system says it in the listing.
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

/// What the file system says of a file that is open.
pub(crate) fn stat_of(path: &RelPath, file: &File) -> Result<FileStat, TreeError> {
    fstat(file)
        .map(FileStat::from)
        .map_err(|error| TreeError::of("look at", path, error))
}

/// The entry of a file that is open, wherever it was read to.
pub(crate) fn entry_of_open(path: &RelPath, file: &mut File) -> Result<Entry, TreeError> {
    file.rewind()
        .map_err(|error| TreeError::of("read", path, error))?;
    Ok(hashed(path, file, None)?.0)
}

/// The entry of a file that is open, read from its beginning. A file that is written meanwhile is read again, so that what
/// is said is true of one moment.
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
    // It may grow while it is read, so this is asked with every piece.
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

/// The content of a file that has about so many bytes.
fn content_of(file: File, expected: u64, path: &RelPath, limit: u64) -> Result<Vec<u8>, TreeError> {
    // With room for one byte more, one call reads it and the next one finds its end.
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

/// The address of what is left to be read, and how much that was. The size is what is expected; for a small file there is
/// no need of a large buffer.
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
