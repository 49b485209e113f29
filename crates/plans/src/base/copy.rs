//! The copy of one file into an image. It is read once, and what is read is what is hashed and what is written: the
//! manifest says what the image holds, whatever happens to the file meanwhile.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};

use eventlog::BlobId;
use kernel::Scope;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::path::Arg;

use super::times::timestamps;
use crate::entry::{Entry, MODE_MASK};
use crate::stat_cache::StatKey;

/// How much is read at once, by each thread.
pub(super) const BUFFER_BYTES: usize = 128 * 1024;
/// From this size on, pieces that are all zero are left as holes.
const HOLES_FROM_BYTES: u64 = 1024 * 1024;

/// A file that was copied.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    pub(super) entry: Entry,
    /// What the file system said about it. `None` if it changed while it was read.
    pub(super) key: Option<StatKey>,
}

/// Why a file was not copied.
#[derive(Debug)]
pub(super) enum NotCopied {
    /// It is gone, or no file any more.
    Vanished,
    Unreadable,
    Cancelled,
    /// The image cannot be written.
    Failed(io::Error),
}

/// Copies a file that is open to a new one. A file that grows meanwhile is copied up to the size it had, one that is cut
/// off as far as it goes.
pub(super) fn copy_file(
    from: &File,
    to_directory: BorrowedFd<'_>,
    to_name: impl Arg + Copy,
    buffer: &mut [u8],
    scope: &Scope,
) -> Result<Copied, NotCopied> {
    let before = stat(from)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let to = rustix::fs::openat(to_directory, to_name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|error| NotCopied::Failed(error.into()))?;
    let mut to = File::from(to);
    let copied = copy_content(from, before.size, &mut to, buffer, scope);
    let (hash, size) = copied.inspect_err(|_| {
        rustix::fs::unlinkat(to_directory, to_name, AtFlags::empty()).ok();
    })?;
    let mode = before.mode & MODE_MASK;
    let dressed = rustix::fs::fchmod(&to, Mode::from_raw_mode(mode))
        .and_then(|()| rustix::fs::futimens(&to, &timestamps(before.modified)));
    dressed.map_err(|error| NotCopied::Failed(error.into()))?;
    let after = stat(from)?;
    Ok(Copied {
        entry: Entry::File { hash, size, mode },
        key: (before == after && size == before.size).then_some(before),
    })
}

fn stat(file: &File) -> Result<StatKey, NotCopied> {
    let stat = rustix::fs::fstat(file.as_fd()).map_err(|_| NotCopied::Unreadable)?;
    Ok(StatKey::of(&stat))
}

fn copy_content(
    mut from: &File,
    size: u64,
    to: &mut File,
    buffer: &mut [u8],
    scope: &Scope,
) -> Result<(BlobId, u64), NotCopied> {
    let mut hasher = blake3::Hasher::new();
    let (mut copied, mut has_hole) = (0_u64, false);
    while copied < size {
        if scope.is_cancelled() {
            return Err(NotCopied::Cancelled);
        }
        let wanted = usize::try_from(size - copied).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = match from.read(&mut buffer[..wanted]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Err(NotCopied::Unreadable),
        };
        let piece = &buffer[..read];
        hasher.update(piece);
        let is_hole = size >= HOLES_FROM_BYTES && piece.iter().all(|byte| *byte == 0);
        if is_hole {
            let step = i64::try_from(read).unwrap_or(i64::MAX);
            to.seek(SeekFrom::Current(step)).map_err(NotCopied::Failed)?;
        } else {
            to.write_all(piece).map_err(NotCopied::Failed)?;
        }
        has_hole |= is_hole;
        copied += read as u64;
    }
    if has_hole {
        to.set_len(copied).map_err(NotCopied::Failed)?;
    }
    Ok((BlobId::from_bytes(*hasher.finalize().as_bytes()), copied))
}
