//! Removing entries from a tree.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{AtFlags, Mode, OFlags, chmod, openat, unlinkat};
use rustix::io::Errno;

use super::error::TreeError;
use super::read::names_in;
use super::resolve::Tree;
use super::stat::FileKind;
use crate::RelPath;

/// The maximum depth of a directory that is removed recursively. One descriptor is open per level; the longest
/// possible system path has about two thousand names.
const DEPTH: usize = 2048;
/// How often a directory is listed again because someone added an entry while it was being emptied.
const ROUNDS: u32 = 8;

impl Tree {
    /// Removes a file, a symlink, anything else that is not a directory, or an empty directory.
    pub fn remove(&self, path: &RelPath) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        remove_at(&directory, name).map_err(|error| TreeError::of("remove", path, error))
    }

    /// Removes an empty directory, and nothing else.
    pub fn remove_directory(&self, path: &RelPath) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        unlinkat(&directory, name, AtFlags::REMOVEDIR).map_err(|error| TreeError::of("remove", path, error))
    }

    /// Removes whatever is at a path, with everything in it. It is not an error if nothing is there. Symlink targets
    /// are left alone.
    pub fn remove_all(&self, path: &RelPath) -> Result<(), TreeError> {
        let (directory, name) = match self.parent(path) {
            Err(TreeError::NotFound { .. }) => return Ok(()),
            found => found?,
        };
        match remove_at(&directory, name) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => empty_and_remove(directory.as_fd(), name, DEPTH)
                .map_err(|error| TreeError::of("remove", path, error)),
            Err(error) => Err(TreeError::of("remove", path, error)),
        }
    }
}

fn remove_at(directory: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    match unlinkat(&directory, name, AtFlags::empty()) {
        // Which of the two errors it is differs between file systems.
        Err(Errno::ISDIR | Errno::PERM) => match unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTDIR) => Err(Errno::PERM),
            removed => removed,
        },
        removed => removed,
    }
}

fn empty_and_remove(parent: impl AsFd, name: &OsStr, depth: usize) -> Result<(), Errno> {
    if depth == 0 {
        return Err(Errno::NAMETOOLONG);
    }
    let mut left = ROUNDS;
    loop {
        let directory = open_for_removal(&parent, name)?;
        for (below, kind) in names_in(&directory)? {
            let removed = match kind {
                FileKind::Directory => empty_and_remove(&directory, &below, depth - 1),
                FileKind::File | FileKind::Symlink | FileKind::Special => remove_at(&directory, &below),
            };
            match removed {
                Ok(()) | Err(Errno::NOENT) => {}
                // Its type has changed since it was listed; the next round sees the new one.
                Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::LOOP) if left > 0 => {}
                Err(error) => return Err(error),
            }
        }
        match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if left > 0 => left -= 1,
            removed => return removed,
        }
    }
}

/// Opens a directory to empty it. If its permissions forbid that, changes them first: caches are often read-only.
fn open_for_removal(parent: impl AsFd, name: &OsStr) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = openat(&parent, name, flags | OFlags::PATH, Mode::empty())?;
    let mode = rustix::fs::fstat(&place)?.st_mode;
    if mode & 0o700 != 0o700 {
        let through = format!("/proc/self/fd/{}", place.as_raw_fd());
        chmod(&*through, Mode::from_raw_mode(0o700))?;
    }
    openat(&place, ".", flags | OFlags::RDONLY, Mode::empty())
}
