//! Changing a tree.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

use eventlog::BlobHasher;
use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_NOW, chmod, fchmod, fstat, fsync, linkat,
    mkdirat, openat, renameat, renameat_with, statat, symlinkat, syncfs, unlinkat, utimensat,
};
use rustix::io::Errno;

use super::error::TreeError;
use super::resolve::{Renames, Tree};
use super::sparse::{ContentSink, SparseFile};
use super::stat::{FileKind, FileStat};
use crate::{BadPath, Entry, LinkTarget, MODE_MASK, RelPath};

/// How the name of a file begins that is not finished yet. It is there for the time of one write, and after a kill until
/// somebody clears it away; it is no part of any tree.
const PASSING: &str = ".tidelock-passing-";

impl Tree {
    /// Whether a name is one of ours that is there for the time of one write. Whoever walks a tree leaves those out.
    #[must_use]
    pub fn is_passing(name: &OsStr) -> bool {
        name.as_bytes().starts_with(PASSING.as_bytes())
    }

    /// A path beside another one, for something that is there for the time of one write.
    pub(crate) fn passing_beside(path: &RelPath) -> Result<RelPath, BadPath> {
        let name = format!("{PASSING}{}", protocol::RequestId::generate());
        match path.parent() {
            Some(parent) => parent.join(OsStr::new(&name)),
            None => RelPath::from_bytes(name.as_bytes()),
        }
    }

    /// Makes a directory and those that it is in, as far as they are missing.
    pub fn make_directories(&self, directory: &RelPath) -> Result<(), TreeError> {
        for path in directory.ancestors().chain([directory.clone()]) {
            let (parent, name) = self.parent(&path)?;
            match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(TreeError::of("make the directory", &path, error)),
            }
        }
        match self.stat(directory)? {
            Some(stat) if stat.kind == FileKind::Directory => Ok(()),
            _ => Err(TreeError::NotADirectory {
                path: directory.to_string(),
            }),
        }
    }

    /// Makes the directories that a path is in, as far as they are missing.
    ///
    /// # Errors
    /// As for [`make_directories`](Self::make_directories).
    pub fn make_parents(&self, path: &RelPath) -> Result<(), TreeError> {
        path.parent()
            .map_or(Ok(()), |parent| self.make_directories(&parent))
    }

    /// Makes one directory.
    pub fn make_directory(&self, path: &RelPath) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        let failed = |error| TreeError::of("make the directory", path, error);
        mkdirat(&directory, name, Mode::from_raw_mode(0o700)).map_err(failed)?;
        // The daemon's own mask is for its own files.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&directory, name, flags, Mode::empty()).map_err(failed)?;
        fchmod(&made, Mode::from_raw_mode(0o755)).map_err(failed)
    }

    /// Writes a file, and says what it is now. It is written beside and renamed into place: a reader sees the old one or
    /// the new one, whole, and hard links of the old one are not written. A symlink is replaced, not followed.
    pub fn write(&self, path: &RelPath, mut content: impl Read, mode: u32) -> Result<Entry, TreeError> {
        self.write_by(path, mode, |to| io::copy(&mut content, to).map(drop))
    }

    /// The same with a content that is given piece by piece.
    pub(crate) fn write_by(
        &self,
        path: &RelPath,
        mode: u32,
        give: impl FnOnce(&mut dyn ContentSink) -> io::Result<()>,
    ) -> Result<Entry, TreeError> {
        let (directory, name) = self.parent(path)?;
        let passing = format!("{PASSING}{}", protocol::RequestId::generate());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, &*passing, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| TreeError::of("write", path, error))?;
        let written = fill(path, &file.into(), mode, give).and_then(|entry| {
            renameat(&directory, &*passing, &directory, name)
                .map(|()| entry)
                .map_err(|error| TreeError::of("write", path, error))
        });
        if written.is_err() {
            // The error that is shown is the first one; a file that stays behind is recognised by its name.
            unlinkat(&directory, &*passing, AtFlags::empty()).ok();
        }
        written
    }

    /// Makes a new file, in place, and leaves it open. For those that nobody looks at before they are finished.
    pub(crate) fn write_new(
        &self,
        path: &RelPath,
        mode: u32,
        give: impl FnOnce(&mut dyn ContentSink) -> io::Result<()>,
    ) -> Result<(File, Entry), TreeError> {
        let (directory, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| TreeError::of("write", path, error))?;
        let file = File::from(file);
        let entry = fill(path, &file, mode, give)?;
        Ok((file, entry))
    }

    /// Gives a file, a symlink or a directory the present time, so that builds see that it is another one.
    pub(crate) fn touch(&self, path: &RelPath) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        utimensat(&directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| TreeError::of("set the times of", path, error))
    }

    /// Makes a symlink.
    pub fn symlink(&self, path: &RelPath, target: &LinkTarget) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        symlinkat(OsStr::from_bytes(&target.0), &directory, name)
            .map_err(|error| TreeError::of("make the symlink", path, error))
    }

    /// Sets the permissions of a file or directory. Those of a symlink cannot be set.
    pub fn set_mode(&self, path: &RelPath, mode: u32) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        // Opened as a place and not for reading, so that permissions that forbid reading can be taken back.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = openat(&directory, name, flags, Mode::empty())
            .map_err(|error| TreeError::of("open", path, error))?;
        let stat = fstat(&place).map_err(|error| TreeError::of("look at", path, error))?;
        if matches!(FileStat::from(stat).kind, FileKind::Symlink | FileKind::Special) {
            return Err(TreeError::NotAFile {
                path: path.to_string(),
            });
        }
        let through = format!("/proc/self/fd/{}", place.as_raw_fd());
        chmod(&*through, Mode::from_raw_mode(mode & MODE_MASK))
            .map_err(|error| TreeError::of("set the permissions of", path, error))
    }

    /// Renames, unless something is at the new path.
    pub fn rename_noreplace(&self, from: &RelPath, to: &RelPath) -> Result<(), TreeError> {
        self.rename_into(from, self, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges two paths: in one step, or in three where the file system cannot do that. Both must be there.
    pub fn exchange(&self, one: &RelPath, other: &RelPath) -> Result<(), TreeError> {
        match self.rename_into(one, self, other, RenameFlags::EXCHANGE) {
            Err(TreeError::CannotExchange { .. }) => {}
            exchanged => return exchanged,
        }
        let aside = Self::passing_beside(one).map_err(|bad| TreeError::Io {
            what: "exchange",
            path: one.to_string(),
            source: io::Error::other(bad),
        })?;
        self.rename_noreplace(other, &aside)?;
        self.rename_noreplace(one, other)?;
        self.rename_noreplace(&aside, one)
    }

    /// Renames from one tree into another of the same file system. An error names the path in the other one. Where the file
    /// system does not know how to leave alone what is at the new path, a link is made, which it does leave alone.
    pub(crate) fn rename_into(
        &self,
        from: &RelPath,
        into: &Self,
        to: &RelPath,
        how: RenameFlags,
    ) -> Result<(), TreeError> {
        let (source, source_name) = self.parent(from)?;
        let (target, target_name) = into.parent(to)?;
        let renamed = match (self.renames(), into.renames()) {
            (Renames::Any, Renames::Any) => renameat_with(&source, source_name, &target, target_name, how),
            _ => Err(Errno::INVAL),
        };
        let renamed = match renamed {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if how == RenameFlags::EXCHANGE => {
                return Err(TreeError::CannotExchange { path: to.to_string() });
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                rename_plainly((&source, source_name), (&target, target_name))
            }
            renamed => renamed,
        };
        renamed.map_err(|error| TreeError::of("rename to", to, error))
    }

    /// Waits until everything on the file system of the root is on the disk.
    pub(crate) fn sync_everything(&self) -> Result<(), TreeError> {
        syncfs(self.directory(None)?).map_err(|error| TreeError::Root {
            path: self.path().display().to_string(),
            source: error.into(),
        })
    }

    /// Waits until the names in a directory, or in the root, are on the disk.
    pub fn sync_directory(&self, directory: Option<&RelPath>) -> Result<(), TreeError> {
        let open = self.directory(directory)?;
        sync(&open).map_err(|error| match directory {
            Some(path) => TreeError::of("sync", path, error),
            None => TreeError::Root {
                path: self.path().display().to_string(),
                source: error.into(),
            },
        })
    }
}

/// Renames, unless something is at the new name, by a link. What cannot be linked is renamed if nothing is there right before:
/// a directory, which takes the place of an empty one at most, and anything on a file system without links.
fn rename_plainly(
    (source, name): (impl AsFd, &OsStr),
    (target, new_name): (impl AsFd, &OsStr),
) -> Result<(), Errno> {
    match linkat(&source, name, &target, new_name, AtFlags::empty()) {
        Ok(()) => return unlinkat(&source, name, AtFlags::empty()),
        Err(Errno::PERM | Errno::NOTSUP | Errno::MLINK | Errno::NOSYS) => {}
        Err(error) => return Err(error),
    }
    match statat(&target, new_name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(&source, name, &target, new_name),
        Err(error) => Err(error),
    }
}

/// Some file systems have nothing to sync in a directory and say so; that is no failure.
fn sync(open: impl AsFd) -> Result<(), Errno> {
    match fsync(open) {
        Err(Errno::INVAL | Errno::ROFS) => Ok(()),
        synced => synced,
    }
}

/// Writes a content into a new file and gives it its permissions.
fn fill(
    path: &RelPath,
    file: &File,
    mode: u32,
    give: impl FnOnce(&mut dyn ContentSink) -> io::Result<()>,
) -> Result<Entry, TreeError> {
    let mut hashing = Hashing {
        file: SparseFile::new(file),
        hasher: BlobHasher::default(),
        size: 0,
        failed: None,
    };
    if let Err(source) = give(&mut hashing) {
        return Err(match hashing.failed.take() {
            Some(error) => TreeError::of("write", path, error),
            None => TreeError::Source {
                path: path.to_string(),
                source,
            },
        });
    }
    let (hash, size) = (hashing.hasher.finish(), hashing.size);
    hashing
        .file
        .finish()
        .map_err(|error| TreeError::of("write", path, error))?;
    let mode = mode & MODE_MASK;
    fchmod(file, Mode::from_raw_mode(mode))
        .map_err(|error| TreeError::of("set the permissions of", path, error))?;
    Ok(Entry::File { hash, size, mode })
}

/// Hashes what it writes, and remembers whose failure it was if there was one.
struct Hashing<'file> {
    file: SparseFile<'file>,
    hasher: BlobHasher,
    size: u64,
    failed: Option<io::Error>,
}

impl Hashing<'_> {
    fn told<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.failed = Some(error);
            }
            kind.into()
        })
    }
}

impl Write for Hashing<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer);
        let written = self.told(written)?;
        self.hasher.update(&buffer[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl ContentSink for Hashing<'_> {
    fn hole(&mut self, bytes: u64) -> io::Result<()> {
        let made = self.file.hole(bytes);
        self.told(made)?;
        self.hasher.zeros(bytes);
        self.size += bytes;
        Ok(())
    }
}
