//! The walk over all directories of a workspace.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use kernel::Scope;
use rustix::fs::{Mode, OFlags, Stat};
use watch::Tripwire;

use super::directory::{ScannedDirectory, ToScan, scan_directory};
use super::finish;
use super::parallel::{Work, in_parallel};
use crate::ignores::IgnoreMatch;
use crate::stat_cache::{Cached, StatCache, StatKey};
use crate::{IgnoreSources, Ignored, LeftOut, RelPath, WhyLeftOut};

#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) root: OwnedFd,
    pub(super) sources: &'a IgnoreSources,
    pub(super) cache: &'a StatCache,
    /// Covers each directory before it is read.
    pub(super) tripwire: Option<&'a Tripwire>,
    /// Our own directories, by device and inode. If a workspace contains them, it must not contain copies of itself.
    own: &'a [(u64, u64)],
}

#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) directories: Vec<ScannedDirectory>,
    pub(super) next: Vec<ToScan>,
    pub(super) ignored_directories: Vec<RelPath>,
    pub(super) ignored_files: Vec<(RelPath, u64)>,
    pub(super) left_out: Vec<LeftOut>,
    /// How many entries match the cache.
    known: u64,
    /// How many don't, or aren't in the cache.
    unknown: u64,
    /// A directory that the tripwire does not cover was scanned.
    pub(super) is_uncovered: bool,
    pub(super) linked: Vec<(RelPath, StatKey)>,
    failure: Option<io::Error>,
}

#[derive(Debug)]
pub(crate) struct Scan {
    /// All directories that are part of the tree, in no particular order.
    pub(crate) directories: Vec<ScannedDirectory>,
    pub(crate) ignored: Ignored,
    pub(crate) left_out: Vec<LeftOut>,
    /// Whether everything matches the image that the cache refers to, with nothing added or missing.
    pub(crate) is_as_cached: bool,
    /// Whether the tripwire covers all directories that were scanned.
    pub(crate) is_covered: bool,
    /// Files with more than one name. They may be changed where there is no tripwire.
    pub(crate) linked: Vec<(RelPath, StatKey)>,
    /// The root. Everything in the workspace is read through it.
    pub(crate) root: OwnedFd,
}

#[derive(Debug)]
pub(crate) enum ScanError {
    Cancelled,
    /// The workspace doesn't exist, isn't a directory, or was removed in the meantime.
    Gone,
    Io(io::Error),
}

pub(crate) fn scan(
    workspace: &Path,
    sources: &IgnoreSources,
    cache: &StatCache,
    own: &[(u64, u64)],
    tripwire: Option<&Tripwire>,
    scope: &Scope,
) -> Result<Scan, ScanError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(workspace, flags, Mode::empty()).map_err(|error| gone_or(error.into()))?;
    let walk = Walk {
        root,
        sources,
        cache,
        tripwire,
        own,
    };
    let mut whole = WalkResult::default();
    let mut level = vec![ToScan {
        path: None,
        above: None,
        ignore_match: IgnoreMatch::Part,
    }];
    while !level.is_empty() {
        let parts = in_parallel(level, WalkResult::default, |found, to_scan| {
            if scope.is_cancelled() {
                return Work::Stop;
            }
            match scan_directory(&walk, to_scan, found) {
                Ok(()) => Work::Continue,
                Err(error) => {
                    found.failure = Some(error);
                    Work::Stop
                }
            }
        });
        if scope.is_cancelled() {
            return Err(ScanError::Cancelled);
        }
        for part in parts {
            whole.add(part).map_err(gone_or)?;
        }
        level = std::mem::take(&mut whole.next);
    }
    if whole.directories.is_empty() || !is_still_there(workspace, &walk.root) {
        return Err(ScanError::Gone);
    }
    let is_as_cached = whole.unknown == 0 && whole.known == cache.image_entries;
    let is_covered = tripwire.is_some() && !whole.is_uncovered;
    let linked = std::mem::take(&mut whole.linked);
    let (directories, ignored, left_out, is_whole) = finish::finish(whole);
    Ok(Scan {
        directories,
        ignored,
        left_out,
        is_as_cached: is_as_cached && is_whole,
        is_covered,
        linked,
        root: walk.root,
    })
}

impl Walk<'_> {
    pub(super) fn is_own(&self, stat: &Stat) -> bool {
        self.own.contains(&(stat.st_dev, stat.st_ino))
    }
}

impl WalkResult {
    pub(super) fn leave_out(&mut self, path: RelPath, why: WhyLeftOut) {
        self.left_out.push(LeftOut::at(&path, why));
    }

    pub(super) fn count(&mut self, is_known: bool) {
        if is_known {
            self.known += 1;
        } else {
            self.unknown += 1;
        }
    }

    /// Counts a directory. The root has no entry of its own.
    pub(super) fn note_directory(&mut self, walk: &Walk<'_>, scanned: &ScannedDirectory) {
        let Some(path) = &scanned.path else {
            return;
        };
        let cached = walk.cache.entries.get(path.as_bytes());
        self.count(
            cached
                == Some(&Cached::Directory {
                    mode: scanned.mode,
                    modified: scanned.modified,
                }),
        );
    }

    fn add(&mut self, part: Self) -> io::Result<()> {
        if let Some(error) = part.failure {
            return Err(error);
        }
        self.directories.extend(part.directories);
        self.next.extend(part.next);
        self.ignored_directories.extend(part.ignored_directories);
        self.ignored_files.extend(part.ignored_files);
        self.left_out.extend(part.left_out);
        self.known += part.known;
        self.unknown += part.unknown;
        self.is_uncovered |= part.is_uncovered;
        self.linked.extend(part.linked);
        Ok(())
    }
}

fn gone_or(error: io::Error) -> ScanError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ScanError::Gone,
        _ => ScanError::Io(error),
    }
}

fn is_still_there(workspace: &Path, root: &OwnedFd) -> bool {
    let same = |at: Stat, opened: Stat| (at.st_dev, at.st_ino) == (opened.st_dev, opened.st_ino);
    let opened = rustix::fs::fstat(root);
    rustix::fs::stat(workspace).is_ok_and(|at| opened.is_ok_and(|opened| same(at, opened)))
}
