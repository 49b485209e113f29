//! Resolving a path to the directory that contains its last name.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, fstat, open, openat, openat2};
use rustix::io::Errno;

use super::error::TreeError;
use super::stat::FileStat;
use crate::RelPath;

/// How often a walk that the kernel gave up is retried. The kernel gives up when a concurrent rename interferes, which
/// can't go on for long; after this many attempts, the error is returned.
const WALKS: u32 = 64;

#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
    /// Its path, for people.
    path: PathBuf,
    renames: Renames,
}

/// Which renames the file system supports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Renames {
    Any,
    /// Only those that every file system supports; see [`Tree::with_plain_renames`].
    Plain,
}

/// A directory of the tree: the root, or one that was opened for an operation.
#[derive(Debug)]
pub(super) enum Directory<'tree> {
    Root(BorrowedFd<'tree>),
    Below(OwnedFd),
}

impl AsFd for Directory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(root) => root.as_fd(),
            Self::Below(directory) => directory.as_fd(),
        }
    }
}

impl Tree {
    /// Opens the tree at a system path. Symlinks on the way to it are followed as usual; only the root itself matters.
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty()).map_err(|error| TreeError::Root {
            path: path.display().to_string(),
            source: error.into(),
        })?;
        Ok(Self::of(root, path.to_owned()))
    }

    /// The tree below an open directory. The path is for people; it is never used to find anything.
    #[must_use]
    pub fn of(root: OwnedFd, path_for_people: PathBuf) -> Self {
        Self {
            root,
            path: path_for_people,
            renames: Renames::Any,
        }
    }

    /// The same tree, treated as if its file system could neither exchange two files nor rename without replacing. Some
    /// network file systems, and most FUSE file systems, are like that.
    #[must_use]
    pub fn with_plain_renames(self) -> Self {
        Self {
            renames: Renames::Plain,
            ..self
        }
    }

    pub(super) fn renames(&self) -> Renames {
        self.renames
    }

    /// Its path, for people.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// A system path to a name in the root that is valid while the tree is open, even if the root is in a mount
    /// namespace that others don't have.
    pub(crate) fn through(&self, name: &RelPath) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.root.as_raw_fd())).join(name.as_path())
    }

    /// The stat data of the root.
    pub fn root_stat(&self) -> Result<FileStat, TreeError> {
        fstat(&self.root)
            .map(FileStat::from)
            .map_err(|error| TreeError::Root {
                path: self.path.display().to_string(),
                source: error.into(),
            })
    }

    /// The tree below one of its directories.
    pub fn below(&self, directory: &RelPath) -> Result<Self, TreeError> {
        let root = self
            .walk(directory, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|error| TreeError::on_the_way(directory, error))?;
        Ok(Self {
            renames: self.renames,
            ..Self::of(root, self.path.join(directory.as_path()))
        })
    }

    /// The directory that contains the last name of a path, and that name.
    pub(super) fn parent<'path>(
        &self,
        path: &'path RelPath,
    ) -> Result<(Directory<'_>, &'path OsStr), TreeError> {
        let directory = match path.parent() {
            None => Directory::Root(self.root.as_fd()),
            Some(parent) => Directory::Below(
                self.walk(&parent, OFlags::PATH | OFlags::DIRECTORY)
                    .map_err(|error| TreeError::on_the_way(path, error))?,
            ),
        };
        Ok((directory, path.name()))
    }

    /// A directory, open for reading; the root for `None`.
    pub(super) fn directory(&self, directory: Option<&RelPath>) -> Result<OwnedFd, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match directory {
            None => openat(&self.root, ".", flags, Mode::empty()).map_err(|error| TreeError::Root {
                path: self.path.display().to_string(),
                source: error.into(),
            }),
            Some(path) => self
                .walk(path, flags)
                .map_err(|error| TreeError::on_the_way(path, error)),
        }
    }

    /// Opens a file if that doesn't have to wait: its path is cached, and on the root's file system.
    pub(super) fn open_at_hand(&self, path: &RelPath) -> Option<OwnedFd> {
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV
            | ResolveFlags::CACHED;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        openat2(&self.root, path.as_path(), flags, Mode::empty(), resolve).ok()
    }

    /// Walks a whole path, including the last name, and follows no symlinks.
    fn walk(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // With `O_NOFOLLOW`, a symlink at the end would no longer be a separate error.
        let flags = flags | OFlags::CLOEXEC;
        let mut left = WALKS;
        loop {
            match openat2(&self.root, path.as_path(), flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if left > 0 => left -= 1,
                walked => return walked,
            }
        }
    }
}
