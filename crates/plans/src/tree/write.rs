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

/// The name prefix of an unfinished file. It exists during one write, and after a kill until it is cleaned up; it isn't
/// part of any tree.
const PASSING: &str = ".tidelock-passing-";

impl Tree {
    /// Whether a name is one of ours that only exists during a write. Skip those when walking a tree.
    #[must_use]
    pub fn is_passing(name: &OsStr) -> bool {
        name.as_bytes().starts_with(PASSING.as_bytes())
    }

    /// A path beside another one, for something that only exists during a write.
    pub(crate) fn passing_beside(path: &RelPath) -> Result<RelPath, BadPath> {
        let name = format!("{PASSING}{}", protocol::RequestId::generate());
        match path.parent() {
            Some(parent) => parent.join(OsStr::new(&name)),
            None => RelPath::from_bytes(name.as_bytes()),
        }
    }

    /// Makes a directory and its missing parents.
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

    /// Makes the missing parent directories of a path.
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
        // The daemon's umask is for its own files.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&directory, name, flags, Mode::empty()).map_err(failed)?;
        fchmod(&made, Mode::from_raw_mode(0o755)).map_err(failed)
    }

    /// Writes a file, and returns its new entry. It is written beside the path and renamed into place: a reader sees
    /// the complete old or new file, and hard links of the old one aren't written to. A symlink is replaced, not
    /// followed.
    pub fn write(&self, path: &RelPath, mut content: impl Read, mode: u32) -> Result<Entry, TreeError> {
        self.write_by(path, mode, |to| io::copy(&mut content, to).map(drop))
    }

    /// Writes a file with content that is supplied piece by piece.
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
            // Return the first error; a leftover file is recognized by its name.
            unlinkat(&directory, &*passing, AtFlags::empty()).ok();
        }
        written
    }

    /// Creates a new file in place, and leaves it open. For files that aren't read before they are finished.
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

    /// Sets the mtime of a file, symlink or directory to the current time, so that builds notice that it changed.
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

    /// Sets the permissions of a file or directory. Those of a symlink can't be set.
    pub fn set_mode(&self, path: &RelPath, mode: u32) -> Result<(), TreeError> {
        let (directory, name) = self.parent(path)?;
        // Opened with `O_PATH` and not for reading, so that permissions that forbid reading can be changed
        // back.
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

    /// Renames, unless the new path exists.
    pub fn rename_noreplace(&self, from: &RelPath, to: &RelPath) -> Result<(), TreeError> {
        self.rename_into(from, self, to, RenameFlags::NOREPLACE)
    }

    /// Exchanges two paths: in one step, or in three if the file system can't do that. Both must exist.
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

    /// Renames from one tree into another on the same file system. An error names the path in the other tree. If the
    /// file system can't rename without replacing, a hard link is made instead, which never replaces anything.
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

    /// Waits until everything on the root's file system is on disk.
    pub(crate) fn sync_everything(&self) -> Result<(), TreeError> {
        syncfs(self.directory(None)?).map_err(|error| TreeError::Root {
            path: self.path().display().to_string(),
            source: error.into(),
        })
    }

    /// Waits until the entries of a directory, or of the root, are on disk.
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

/// Renames by a hard link, unless the new name exists. What can't be linked is renamed if nothing is there right
/// before: a directory, which at most replaces an empty one, and anything on a file system without links.
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

/// Some file systems can't sync a directory and return an error; that isn't a failure.
fn sync(open: impl AsFd) -> Result<(), Errno> {
    match fsync(open) {
        Err(Errno::INVAL | Errno::ROFS) => Ok(()),
        synced => synced,
    }
}

/// Writes a content into a new file and sets its permissions.
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

/// Hashes what it writes, and remembers which side failed.
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
