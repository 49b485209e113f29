//! Whether an image holds what its manifest says.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::copy::BUFFER_BYTES;
use super::error::BaseError;
use crate::entry::{Entry, MODE_MASK};
use crate::manifest::Manifest;
use crate::scan::{Work, in_parallel};

/// Reads a tree through.
///
/// # Errors
/// It cannot be read, for another reason than that something is missing.
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
            let (mut file, mut hasher) = (File::open(path)?, blake3::Hasher::new());
            loop {
                match file.read(buffer)? {
                    0 => return Ok(hasher.finalize().as_bytes() == hash.as_bytes()),
                    read => hasher.update(&buffer[..read]),
                };
            }
        }
    }
}
