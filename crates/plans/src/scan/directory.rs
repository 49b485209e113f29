//! The scan of one directory.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use eventlog::BlobId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;

use super::walk::{Walk, WalkResult};
use crate::base::uncarried;
use crate::ignores::{IgnoreMatch, Level, bounded_rules};
use crate::stat_cache::{Cached, FileTime, StatKey};
use crate::{RelPath, WhyLeftOut};

/// How much of a directory listing is read at once.
const LISTING_BYTES: usize = 32 * 1024;
/// The name prefix of our own files while they are written into a tree.
const PASSING_PREFIX: &[u8] = b".tidelock-passing-";

#[derive(Debug)]
pub(super) struct ToScan {
    /// `None` is the root.
    pub(super) path: Option<RelPath>,
    /// The rules of its parent directory; `None` for the root.
    pub(super) above: Option<Arc<Level>>,
    pub(super) ignore_match: IgnoreMatch,
}

#[derive(Debug)]
pub(crate) struct ScannedDirectory {
    /// `None` is the root.
    pub(crate) path: Option<RelPath>,
    pub(crate) mode: u32,
    pub(crate) modified: FileTime,
    /// It is ignored, and only included for what may be in it.
    pub(super) is_tentative: bool,
    pub(crate) files: Vec<FoundFile>,
    pub(crate) links: Vec<FoundLink>,
}

#[derive(Debug)]
pub(crate) struct FoundFile {
    pub(crate) path: RelPath,
    pub(crate) key: StatKey,
    /// Its content, if it has not changed since the last scan.
    pub(crate) known: Option<BlobId>,
}

/// A symlink that is part of the tree.
#[derive(Debug)]
pub(crate) struct FoundLink {
    pub(crate) path: RelPath,
    pub(crate) target: Box<[u8]>,
}

/// Opens a directory of a tree without following any symlinks.
pub(crate) fn open_below(root: BorrowedFd<'_>, path: Option<&RelPath>) -> Result<OwnedFd, Errno> {
    let name = path.map_or(OsStr::new("."), |path| path.as_path().as_os_str());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, name, flags, Mode::empty(), resolve)
}

/// Scans one directory. Entries that vanish in the meantime are skipped.
pub(super) fn scan_directory(walk: &Walk<'_>, to_scan: ToScan, found: &mut WalkResult) -> io::Result<()> {
    let directory = match open_below(walk.root.as_fd(), to_scan.path.as_ref()) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(error) => return unreadable(to_scan.path, error, found),
    };
    let stat = rustix::fs::fstat(&directory)?;
    if to_scan.path.is_some() && walk.is_own(&stat) {
        return Ok(());
    }
    if !found.is_uncovered
        && let Some(Err(error)) = walk.tripwire.map(|tripwire| tripwire.cover(directory.as_fd()))
    {
        tracing::debug!(directory = ?to_scan.path, %error, "a directory is not covered");
        found.is_uncovered = true;
    }
    let names = match list(&directory) {
        Ok(names) => names,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return unreadable(to_scan.path, error, found),
    };
    if let Some(path) = &to_scan.path
        && names.contains(b".git")
    {
        found.leave_out(path.clone(), WhyLeftOut::Repository);
        found.ignored_directories.push(path.clone());
        return Ok(());
    }
    let rules = if to_scan.ignore_match == IgnoreMatch::Part && names.contains(b".gitignore") {
        read_rules(&directory)?
    } else {
        None
    };
    let level = match (&to_scan.path, &to_scan.above) {
        (Some(path), Some(above)) => {
            Level::below(above, path, to_scan.ignore_match, rules.as_deref(), walk.sources)
        }
        _ => Level::root(rules.as_deref(), walk.sources),
    };
    let mut scanned = ScannedDirectory {
        mode: stat.st_mode,
        modified: FileTime::modified(&stat),
        is_tentative: to_scan.ignore_match == IgnoreMatch::Entered,
        files: Vec::new(),
        links: Vec::new(),
        path: to_scan.path,
    };
    found.note_directory(walk, &scanned);
    for (name, kind) in names.iter() {
        let is_in_root = scanned.path.is_none();
        if is_in_root && matches!(name.to_bytes(), b".git" | b".tidelock")
            || name.to_bytes().starts_with(PASSING_PREFIX)
        {
            continue;
        }
        let one = One {
            walk,
            directory: directory.as_fd(),
            level: &level,
            name,
        };
        one.scan(kind, &mut scanned, found)?;
    }
    found.directories.push(scanned);
    Ok(())
}

/// Leaves out a directory that can't be read; if it is the root, the scan fails.
fn unreadable(path: Option<RelPath>, error: Errno, found: &mut WalkResult) -> io::Result<()> {
    let path = path.ok_or(error)?;
    found.leave_out(path, WhyLeftOut::Unreadable);
    Ok(())
}

struct One<'a> {
    walk: &'a Walk<'a>,
    directory: BorrowedFd<'a>,
    level: &'a Arc<Level>,
    name: &'a CStr,
}

impl One<'_> {
    fn scan(&self, kind: FileType, scanned: &mut ScannedDirectory, found: &mut WalkResult) -> io::Result<()> {
        let name = OsStr::from_bytes(self.name.to_bytes());
        let path = match &scanned.path {
            Some(directory) => directory.join(name),
            None => RelPath::from_bytes(name.as_bytes()),
        };
        let Ok(path) = path else {
            tracing::warn!(?name, directory = ?scanned.path, "a name that cannot be carried is left out");
            found.left_out.push(uncarried(scanned.path.as_ref(), name));
            return Ok(());
        };
        if kind == FileType::Directory {
            let ignore_match = self.level.judge(self.walk.sources, &path, true)?;
            if ignore_match == IgnoreMatch::Ignored {
                found.ignored_directories.push(path);
            } else {
                found.next.push(ToScan {
                    path: Some(path),
                    above: Some(Arc::clone(self.level)),
                    ignore_match,
                });
            }
            return Ok(());
        }
        let is_ignored = self.level.judge(self.walk.sources, &path, false)? == IgnoreMatch::Ignored;
        let stat = match rustix::fs::statat(self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(()),
            Err(_) => {
                found.leave_out(path, WhyLeftOut::Unreadable);
                return Ok(());
            }
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink if is_ignored => {
                found.ignored_files.push((path, StatKey::of(&stat).size));
            }
            FileType::RegularFile => self.file(path, &stat, scanned, found),
            FileType::Symlink => self.link(path, scanned, found)?,
            // It wasn't a directory when it was listed, or the file system doesn't report types there.
            FileType::Directory => return self.scan(FileType::Directory, scanned, found),
            _ if is_ignored => {}
            _ => found.leave_out(path, WhyLeftOut::Special),
        }
        Ok(())
    }

    fn file(&self, path: RelPath, stat: &Stat, scanned: &mut ScannedDirectory, found: &mut WalkResult) {
        let key = StatKey::of(stat);
        let known = match self.walk.cache.entries.get(path.as_bytes()) {
            Some(Cached::File { key: cached, hash }) if *cached == key => Some(*hash),
            _ => None,
        };
        found.count(known.is_some());
        if stat.st_nlink > 1 {
            found.linked.push((path.clone(), key));
        }
        scanned.files.push(FoundFile { path, key, known });
    }

    fn link(&self, path: RelPath, scanned: &mut ScannedDirectory, found: &mut WalkResult) -> io::Result<()> {
        let target = match rustix::fs::readlinkat(self.directory, self.name, Vec::new()) {
            Ok(target) => target.into_bytes().into_boxed_slice(),
            // It was removed, or is no longer a symlink.
            Err(Errno::NOENT | Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let cached = self.walk.cache.entries.get(path.as_bytes());
        let is_known = matches!(cached, Some(Cached::Symlink { target: cached }) if *cached == target);
        found.count(is_known);
        scanned.links.push(FoundLink { path, target });
        Ok(())
    }
}

/// The names in a directory, one after the other in one buffer, with the types from the listing.
struct Names {
    bytes: Vec<u8>,
    ends: Vec<(usize, FileType)>,
}

impl Names {
    fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).filter_map(|(start, (end, kind))| {
            let name = CStr::from_bytes_with_nul(&self.bytes[start..*end]).ok()?;
            Some((name, *kind))
        })
    }

    fn contains(&self, wanted: &[u8]) -> bool {
        self.iter().any(|(name, _)| name.to_bytes() == wanted)
    }
}

fn list(directory: &OwnedFd) -> Result<Names, Errno> {
    let mut buffer = [const { MaybeUninit::uninit() }; LISTING_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    let mut names = Names {
        bytes: Vec::new(),
        ends: Vec::new(),
    };
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes_with_nul();
        if matches!(name, b".\0" | b"..\0") {
            continue;
        }
        names.bytes.extend_from_slice(name);
        names.ends.push((names.bytes.len(), entry.file_type()));
    }
    Ok(names)
}

/// Reads the `.gitignore` of a directory. Git doesn't follow symlinks here, and ignores a file that it may not read.
fn read_rules(directory: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, c".gitignore", flags, Mode::empty()) {
        Ok(file) => bounded_rules(File::from(file)),
        Err(Errno::NOENT | Errno::LOOP | Errno::ACCESS | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
