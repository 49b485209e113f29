//! Copies one file into an image. The file is read once, and the same bytes are hashed and written: the manifest
//! matches the image, whatever happens to the file in the meantime.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use eventlog::{BlobHasher, BlobId};
use kernel::Scope;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::path::Arg;

use super::times::timestamps;
use crate::stat_cache::StatKey;
use crate::tree::{FilePiece, SparseFile, next_piece};
use crate::{ContentSink, Entry, MODE_MASK};

/// How much each thread reads at once.
pub(super) const BUFFER_BYTES: usize = 128 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Copied {
    pub(super) entry: Entry,
    /// The file's stat data. `None` if it changed while it was read.
    pub(super) key: Option<StatKey>,
}

#[derive(Debug)]
pub(super) enum NotCopied {
    Vanished,
    Unreadable,
    Cancelled,
    /// The image can't be written.
    Failed(io::Error),
}

/// Copies an open file to a new one. A file that grows in the meantime is copied up to its original size; a file that
/// is truncated is copied as far as it goes.
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
    let to = File::from(to);
    let copied = copy_content(from, before.size, &to, buffer, scope);
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
    to: &File,
    buffer: &mut [u8],
    scope: &Scope,
) -> Result<(BlobId, u64), NotCopied> {
    let mut hasher = BlobHasher::default();
    let mut sparse = SparseFile::new(to);
    let mut copied = 0_u64;
    while copied < size {
        if scope.is_cancelled() {
            return Err(NotCopied::Cancelled);
        }
        let left = size - copied;
        let wanted = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let piece =
            next_piece(&mut from, copied, &mut buffer[..wanted]).map_err(|_| NotCopied::Unreadable)?;
        copied += match piece {
            None => break,
            Some(FilePiece::Data(data)) => {
                hasher.update(data);
                sparse.write_all(data).map_err(NotCopied::Failed)?;
                data.len() as u64
            }
            // The hole may extend past the size that the file had.
            Some(FilePiece::Hole(bytes)) => {
                let bytes = bytes.min(left);
                hasher.zeros(bytes);
                sparse.hole(bytes).map_err(NotCopied::Failed)?;
                bytes
            }
        };
    }
    sparse.finish().map_err(NotCopied::Failed)?;
    Ok((hasher.finish(), copied))
}
