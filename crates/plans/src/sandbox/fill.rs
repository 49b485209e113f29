//! Filling a tree with the files of a base, as separate files. Shares blocks if the file system can.
//!
//! Never uses hard links: a write to such a file would change the base as well.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZero;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use rustix::fs::{Timespec, Timestamps, futimens, ioctl_ficlone};

use super::memory::{Memory, Moment};
use crate::tree::{SparseFile, copy_all};
use crate::{Base, Entry, FileStat, MODE_MASK, RelPath, Tree};

/// How many threads copy. More than a few would only wait for the disk together.
const MAX_THREADS: usize = 8;
/// The minimum number of files per thread; fewer aren't worth a thread.
const FILES_PER_THREAD: usize = 256;

/// Fills an empty directory with the files of a base, and returns their stat data.
pub(super) fn fill(base: &Base, to: &Path) -> io::Result<Memory> {
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for (path, entry) in base.manifest.iter() {
        let place = to.join(path.as_path());
        match entry {
            // A directory comes before its contents. It is writable while it is filled.
            Entry::Directory => {
                fs::DirBuilder::new().mode(0o700).create(&place)?;
                directories.push(path);
            }
            Entry::Symlink { target } => {
                use std::os::unix::ffi::OsStrExt;
                symlink(std::ffi::OsStr::from_bytes(&target.0), &place)?;
            }
            Entry::File { .. } => files.push((path, entry)),
        }
    }
    copy_files(base, to, &files)?;
    // Deepest first: a read-only directory must be complete by then.
    for path in directories.into_iter().rev() {
        let mode = fs::symlink_metadata(base.tree.join(path.as_path()))?.mode();
        fs::set_permissions(
            to.join(path.as_path()),
            fs::Permissions::from_mode(mode & MODE_MASK),
        )?;
    }
    remember(to, &files)
}

fn copy_files(base: &Base, to: &Path, files: &[(&RelPath, &Entry)]) -> io::Result<()> {
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS);
    let share = files.len().div_ceil(threads).max(FILES_PER_THREAD);
    thread::scope(|scope| {
        let copying: Vec<_> = files
            .chunks(share)
            .map(|files| {
                scope.spawn(move || {
                    files.iter().try_for_each(|(path, _)| {
                        copy_file(&base.tree.join(path.as_path()), &to.join(path.as_path())).map(drop)
                    })
                })
            })
            .collect();
        for thread in copying {
            thread
                .join()
                .map_err(|_| io::Error::other("a thread that copied files panicked"))??;
        }
        Ok(())
    })
}

/// The stat data of files that were just copied. No one else has seen them yet, so they match the manifest.
fn remember(to: &Path, files: &[(&RelPath, &Entry)]) -> io::Result<Memory> {
    let tree = Tree::open(to)?;
    let moment = Moment::now();
    let mut memory = Memory::default();
    for (path, entry) in files {
        if let Some(stat) = tree.stat(path)? {
            memory.learn(path, stat, entry, moment);
        }
    }
    Ok(memory)
}

/// Copies one file, with its permissions and mtime. Doesn't follow symlinks.
pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<FileStat> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits() | rustix::fs::OFlags::NONBLOCK.bits())
        .map_err(io::Error::other)?;
    let source = OpenOptions::new().read(true).custom_flags(no_follow).open(from)?;
    let stat = source.metadata()?;
    if stat.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !stat.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mode = stat.mode() & MODE_MASK;
    let target = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode | 0o200)
        .custom_flags(no_follow)
        .open(to)?;
    if ioctl_ficlone(&target, &source).is_err() {
        let mut sparse = SparseFile::new(&target);
        copy_all(&source, &mut sparse)?;
        sparse.finish()?;
    }
    finish(&target, &stat, mode)?;
    let stat = rustix::fs::fstat(&target)?;
    Ok(stat.into())
}

fn finish(target: &File, stat: &fs::Metadata, mode: u32) -> io::Result<()> {
    target.set_permissions(fs::Permissions::from_mode(mode))?;
    let time = |seconds: i64, nanoseconds: i64| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    futimens(
        target,
        &Timestamps {
            last_access: time(stat.atime(), stat.atime_nsec()),
            last_modification: time(stat.mtime(), stat.mtime_nsec()),
        },
    )?;
    Ok(())
}
