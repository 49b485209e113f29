//! Verifies that an image matches its manifest.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use eventlog::BlobHasher;

use super::copy::BUFFER_BYTES;
use super::error::BaseError;
use crate::scan::{Work, in_parallel};
use crate::tree::{FilePiece, next_piece};
use crate::{Entry, MODE_MASK, Manifest};

pub(super) fn is_sound(tree: &Path, manifest: &Manifest) -> Result<bool, BaseError> {
    if !tree.is_dir() {
        return Ok(false);
    }
    let state = || (Ok(true), vec![0; BUFFER_BYTES]);
    let parts = in_parallel(
        manifest.iter().collect(),
        state,
        |(verdict, buffer), (path, entry)| {
            *verdict = match holds(&tree.join(path.as_path()), entry, buffer) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    Ok(false)
                }
                found => found,
            };
            if matches!(verdict, Ok(true)) {
                Work::Continue
            } else {
                Work::Stop
            }
        },
    );
    let mut is_sound = true;
    for (verdict, _) in parts {
        is_sound &= verdict.map_err(BaseError::io("reading", tree))?;
    }
    Ok(is_sound)
}

fn holds(path: &Path, entry: &Entry, buffer: &mut [u8]) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    match entry {
        Entry::Directory => Ok(found.is_dir()),
        Entry::Symlink { target } => {
            Ok(found.is_symlink() && fs::read_link(path)?.as_os_str().as_bytes() == &*target.0)
        }
        Entry::File { hash, size, mode } => {
            if !found.is_file() || found.len() != *size || found.mode() & MODE_MASK != *mode {
                return Ok(false);
            }
            let (file, mut hasher, mut at) = (File::open(path)?, BlobHasher::default(), 0);
            while let Some(piece) = next_piece(&mut &file, at, buffer)? {
                match piece {
                    FilePiece::Data(data) => hasher.update(data),
                    FilePiece::Hole(bytes) => hasher.zeros(bytes),
                }
                at += piece.len();
            }
            Ok(hasher.finish() == *hash)
        }
    }
}
