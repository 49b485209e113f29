//! Assembles a tree: files that another image has are linked from there, the rest is moved from the incoming files.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use kernel::Scope;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::copy::{BUFFER_BYTES, NotCopied, copy_file};
use super::error::BaseError;
use super::making::Making;
use super::store::check;
use crate::scan::{Work, in_parallel, open_below};
use crate::{Entry, Manifest, RelPath};

/// How many files one piece of work has. A larger directory is split into several pieces, so that threads can
/// share it.
const PIECE_FILES: usize = 512;

/// The names of incoming files, by the path they belong to.
pub(super) type Incoming = HashMap<RelPath, String>;

/// The unit of work of a thread: some files of one directory.
struct Piece<'a> {
    directory: Option<RelPath>,
    entries: Vec<(&'a RelPath, &'a Entry)>,
}

/// Puts the files and symlinks of a manifest into a tree that already has its directories.
pub(super) fn place(
    making: &Making,
    manifest: &Manifest,
    from: &Path,
    incoming: &Incoming,
    scope: &Scope,
) -> Result<(), BaseError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let from_root = rustix::fs::open(from, flags, Mode::empty())
        .map_err(|error| BaseError::io("opening", from)(error.into()))?;
    let placing = Placing {
        making,
        from: from_root,
        incoming,
        scope,
    };
    let failures = in_parallel(
        pieces(manifest),
        || None,
        |failure, piece| {
            if scope.is_cancelled() {
                return Work::Stop;
            }
            match placing.place(&piece) {
                Ok(()) => Work::Continue,
                Err(error) => {
                    *failure = Some(error);
                    Work::Stop
                }
            }
        },
    );
    check(scope)?;
    match failures.into_iter().flatten().next() {
        Some(error) => Err(making.failed("filling")(error.into())),
        None => Ok(()),
    }
}

struct Placing<'a> {
    making: &'a Making,
    from: OwnedFd,
    incoming: &'a Incoming,
    scope: &'a Scope,
}

impl Placing<'_> {
    fn place(&self, piece: &Piece<'_>) -> Result<(), Errno> {
        let to = open_below(self.making.tree(), piece.directory.as_ref())?;
        // If the other image doesn't have the directory, there is nothing to link from it.
        let from = open_below(self.from.as_fd(), piece.directory.as_ref());
        for (path, entry) in &piece.entries {
            match (entry, self.incoming.get(*path)) {
                (Entry::Symlink { target }, _) => rustix::fs::symlinkat(&*target.0, &to, path.name())?,
                (_, Some(name)) => rustix::fs::renameat(self.making.incoming(), name, &to, path.name())?,
                (_, None) => self.link(from.as_ref().map_err(|error| *error)?.as_fd(), to.as_fd(), path)?,
            }
        }
        Ok(())
    }

    fn link(&self, from: BorrowedFd<'_>, to: BorrowedFd<'_>, path: &RelPath) -> Result<(), Errno> {
        match rustix::fs::linkat(from, path.name(), to, path.name(), AtFlags::empty()) {
            // The file system limits the number of names of a file. Past that, this image starts its own
            // copy.
            Err(Errno::MLINK) => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::openat(from, path.name(), flags, Mode::empty())?);
                let mut buffer = vec![0; BUFFER_BYTES];
                match copy_file(&file, to, path.name(), &mut buffer, self.scope) {
                    Ok(_) | Err(NotCopied::Cancelled) => Ok(()),
                    Err(NotCopied::Failed(error)) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
                    Err(NotCopied::Vanished | NotCopied::Unreadable) => Err(Errno::IO),
                }
            }
            linked => linked,
        }
    }
}

fn pieces(manifest: &Manifest) -> Vec<Piece<'_>> {
    let mut by_directory: BTreeMap<&[u8], Vec<(&RelPath, &Entry)>> = BTreeMap::new();
    for (path, entry) in manifest.iter().filter(|(_, entry)| !entry.is_directory()) {
        let name = path.name().len();
        let directory = &path.as_bytes()[..(path.as_bytes().len() - name).saturating_sub(1)];
        by_directory.entry(directory).or_default().push((path, entry));
    }
    let mut pieces = Vec::new();
    for entries in by_directory.into_values() {
        pieces.extend(entries.chunks(PIECE_FILES).map(|entries| Piece {
            directory: entries[0].0.parent(),
            entries: entries.to_vec(),
        }));
    }
    pieces
}
