//! Reads changed files into an image and its manifest.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use kernel::Scope;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::copy::{BUFFER_BYTES, Copied, NotCopied, copy_file};
use super::error::BaseError;
use super::left_out::{LeftOut, WhyLeftOut};
use super::making::Making;
use super::place::Incoming;
use super::store::check;
use crate::RelPath;
use crate::scan::{FoundFile, Scan, Work, in_parallel, open_below};

/// How many files one piece of work has. A larger directory is split into several pieces, so that threads can
/// share it.
const PIECE_FILES: usize = 128;

#[derive(Default)]
pub(super) struct Read {
    pub(super) copied: HashMap<RelPath, Copied>,
    pub(super) incoming: Incoming,
    pub(super) left_out: Vec<LeftOut>,
    failure: Option<BaseError>,
}

/// Some files of one directory that have to be read, with the number of the first one among the incoming files.
struct Piece<'a> {
    directory: Option<&'a RelPath>,
    files: Vec<&'a FoundFile>,
    first: usize,
}

/// The destination of files that are read.
#[derive(Clone, Copy)]
pub(super) enum To {
    /// Directly in the tree: everything is read, so nothing can be the same as before.
    Place,
    /// Aside, until we know whether the tree is a new one.
    Incoming,
}

pub(super) fn read_files(found: &Scan, making: &Making, to: To, scope: &Scope) -> Result<Read, BaseError> {
    let reading = Reading {
        found,
        making,
        to,
        scope,
    };
    let (mut pieces, mut first) = (Vec::new(), 0);
    for directory in &found.directories {
        let unknown: Vec<&FoundFile> = directory
            .files
            .iter()
            .filter(|file| file.known.is_none())
            .collect();
        for files in unknown.chunks(PIECE_FILES) {
            pieces.push(Piece {
                directory: directory.path.as_ref(),
                files: files.to_vec(),
                first,
            });
            first += files.len();
        }
    }
    let state = || (Read::default(), vec![0; BUFFER_BYTES]);
    let parts = in_parallel(pieces, state, |(read, buffer), piece| {
        match reading.piece(&piece, buffer, read) {
            Ok(()) => Work::Continue,
            Err(error) => {
                read.failure = Some(error);
                Work::Stop
            }
        }
    });
    let mut whole = Read::default();
    for (part, _) in parts {
        if let Some(error) = part.failure {
            return Err(error);
        }
        whole.copied.extend(part.copied);
        whole.incoming.extend(part.incoming);
        whole.left_out.extend(part.left_out);
    }
    Ok(whole)
}

#[derive(Clone, Copy)]
struct Reading<'a> {
    found: &'a Scan,
    making: &'a Making,
    to: To,
    scope: &'a Scope,
}

impl Reading<'_> {
    fn piece(&self, piece: &Piece<'_>, buffer: &mut [u8], read: &mut Read) -> Result<(), BaseError> {
        let from = match open_below(self.found.root.as_fd(), piece.directory) {
            Ok(from) => from,
            // The directory was removed since the scan, and its files with it.
            Err(_) => return Ok(()),
        };
        let place = match self.to {
            To::Place => Some(
                open_below(self.making.tree(), piece.directory)
                    .map_err(|error| self.making.failed("filling")(error.into()))?,
            ),
            To::Incoming => None,
        };
        for (file, number) in piece.files.iter().zip(piece.first..) {
            check(self.scope)?;
            let path = &file.path;
            let copied = open(from.as_fd(), path).and_then(|opened| match &place {
                Some(place) => copy_file(&opened, place.as_fd(), path.name(), buffer, self.scope),
                None => {
                    let name = number.to_string();
                    let copied =
                        copy_file(&opened, self.making.incoming(), name.as_str(), buffer, self.scope)?;
                    read.incoming.insert(path.clone(), name);
                    Ok(copied)
                }
            });
            match copied {
                Ok(copied) => {
                    read.copied.insert(path.clone(), copied);
                }
                Err(NotCopied::Vanished) => {}
                Err(NotCopied::Unreadable) => {
                    read.left_out.push(LeftOut::at(path, WhyLeftOut::Unreadable));
                }
                Err(NotCopied::Cancelled) => return Err(BaseError::Cancelled),
                Err(NotCopied::Failed(error)) => return Err(self.making.failed("filling")(error)),
            }
        }
        Ok(())
    }
}

/// Opens a regular file for reading, and nothing else: opening a pipe would wait for a writer.
fn open(directory: BorrowedFd<'_>, path: &RelPath) -> Result<File, NotCopied> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = match rustix::fs::openat(directory, path.name(), flags, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Err(NotCopied::Vanished),
        Err(_) => return Err(NotCopied::Unreadable),
    };
    match rustix::fs::fstat(&opened) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(File::from(opened)),
        _ => Err(NotCopied::Vanished),
    }
}
