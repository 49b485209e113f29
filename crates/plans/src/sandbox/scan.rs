//! Finding what isn't known in a whole tree: walks all of it, by stat data. Only files with changed stat data are
//! read.
//!
//! The tree is walked level by level. The directories of a level are split among a few threads; new entries are
//! judged by one thread between two levels, since that reads ignore rules.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::thread;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

use super::compare::{FoundEntries, leave_out_too_long};
use super::contract::Known;
use super::memory::{Memory, Moment};
use super::upper::{IsIgnored, is_history, is_linked_repository, is_own};
use crate::base::uncarried;
use crate::{Entry, FileKind, FileStat, LeftOut, ReadBounds, RelPath, Tree, TreeError, WhyLeftOut};

/// How many threads walk. The kernel does the work; more than a few threads get in each other's way.
const MAX_THREADS: usize = 4;
/// The minimum number of directories per thread; fewer aren't worth a thread.
const DIRECTORIES_PER_THREAD: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Every path with a state that isn't known yet.
    pub(super) found: FoundEntries,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) learned: Memory,
    matched: Vec<RelPath>,
    blind: Vec<RelPath>,
    /// Directories that contain paths that are too long.
    too_long: Vec<RelPath>,
}

/// What one thread found in its directories.
#[derive(Default)]
struct Part {
    scanned: Scanned,
    directories: Vec<RelPath>,
    new: Vec<(RelPath, FileKind)>,
}

pub(super) fn scan(
    tree: &Tree,
    known: &Known,
    memory: &Memory,
    bounds: &ReadBounds,
    is_ignored: &mut IsIgnored<'_>,
) -> io::Result<Scanned> {
    let scanner = Scanner {
        tree,
        known,
        memory,
        bounds,
    };
    let mut scanned = Scanned::default();
    let mut level = vec![None];
    while !level.is_empty() {
        let mut next = Vec::new();
        for part in scanner.read_level(&level)? {
            scanned.take_in(part.scanned);
            next.extend(part.directories.into_iter().map(Some));
            for (path, kind) in part.new {
                if is_ignored(&path, kind == FileKind::Directory)? {
                    if kind == FileKind::Directory && scanner.knows_below(&path) {
                        next.push(Some(path));
                    }
                } else if kind == FileKind::Directory && is_linked_repository(tree, &path) {
                    scanned.leave_out(path, WhyLeftOut::ChangedRepository);
                } else if kind == FileKind::Directory {
                    scanned.found.insert(path.clone(), Some(Entry::Directory));
                    next.push(Some(path));
                } else {
                    scanner.look(path, None, None, &mut scanned)?;
                }
            }
        }
        level = next;
    }
    scanner.find_missing(&mut scanned);
    let too_long = std::mem::take(&mut scanned.too_long);
    scanned
        .left_out
        .extend(leave_out_too_long(&mut scanned.found, known, too_long));
    scanned.left_out.sort_by(|one, other| one.path.cmp(&other.path));
    scanned.left_out.dedup();
    Ok(scanned)
}

struct Scanner<'a> {
    tree: &'a Tree,
    known: &'a Known,
    memory: &'a Memory,
    bounds: &'a ReadBounds,
}

impl Scanner<'_> {
    fn read_level(&self, level: &[Option<RelPath>]) -> io::Result<Vec<Part>> {
        let threads = thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MAX_THREADS);
        let share = level.len().div_ceil(threads).max(DIRECTORIES_PER_THREAD);
        if level.len() <= share {
            return Ok(vec![self.read_share(level)?]);
        }
        thread::scope(|scope| {
            let reading: Vec<_> = level
                .chunks(share)
                .map(|share| scope.spawn(|| self.read_share(share)))
                .collect();
            reading
                .into_iter()
                .map(|thread| {
                    let panicked = |_| Err(io::Error::other("a thread that scanned a sandbox panicked"));
                    thread.join().unwrap_or_else(panicked)
                })
                .collect()
        })
    }

    fn read_share(&self, directories: &[Option<RelPath>]) -> io::Result<Part> {
        let mut part = Part::default();
        for directory in directories {
            let read = self.open(directory.as_ref()).and_then(|open| {
                self.read_directory(directory.as_ref(), &open, &mut part)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            });
            match (read, directory) {
                (Ok(()), _) => {}
                (Err(error), Some(path)) => part.scanned.not_readable(path, error)?,
                (Err(error), None) => return Err(error.into()),
            }
        }
        Ok(part)
    }

    fn open(&self, directory: Option<&RelPath>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match directory {
            None => openat(self.tree.root(), ".", flags, Mode::empty()),
            Some(path) => openat2(
                self.tree.root(),
                path.as_path(),
                flags,
                Mode::empty(),
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
            ),
        }
    }

    fn read_directory(&self, directory: Option<&RelPath>, open: &OwnedFd, part: &mut Part) -> io::Result<()> {
        for item in Dir::read_from(open)? {
            self.bounds.check()?;
            let item = item?;
            let name = OsString::from_vec(item.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            if is_own(&name, directory.is_none()) {
                if directory.is_some() && is_history(&name, item.file_type().into()) {
                    let left = LeftOut::named(directory, &name, WhyLeftOut::History);
                    part.scanned.left_out.push(left);
                }
                continue;
            }
            let joined = match directory {
                Some(directory) => directory.join(&name),
                None => RelPath::from_path(name.as_ref()),
            };
            let Ok(path) = joined else {
                match (uncarried(directory, &name), directory) {
                    (left, Some(directory)) if left.why == WhyLeftOut::TooLong => {
                        part.scanned.too_long.push(directory.clone());
                    }
                    (left, _) => part.scanned.left_out.push(left),
                }
                continue;
            };
            let stat = match item.file_type() {
                FileType::Directory => None,
                _ => match statat(open, &name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Some(FileStat::from(stat)),
                    Err(Errno::NOENT) => {
                        part.scanned.blind.push(path);
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            self.visit(path, stat, part)?;
        }
        Ok(())
    }

    /// Checks one path; without stat data, it is a directory.
    fn visit(&self, path: RelPath, stat: Option<FileStat>, part: &mut Part) -> io::Result<()> {
        let kind = stat.map_or(FileKind::Directory, |stat| stat.kind);
        match (kind, self.known.get(&path)) {
            (FileKind::Special, _) => part.scanned.leave_out(path, WhyLeftOut::Special),
            (kind, None) => part.new.push((path, kind)),
            (FileKind::Directory, Some(known)) => {
                if *known != Entry::Directory {
                    part.scanned.found.insert(path.clone(), Some(Entry::Directory));
                }
                part.scanned.matched.push(path.clone());
                part.directories.push(path);
            }
            (_, known) => self.look(path, stat, known, &mut part.scanned)?,
        }
        Ok(())
    }

    fn look(
        &self,
        path: RelPath,
        stat: Option<FileStat>,
        known: Option<&Entry>,
        scanned: &mut Scanned,
    ) -> io::Result<()> {
        let recalled = stat.and_then(|stat| self.memory.recall(&path, &stat));
        if recalled.is_some() && recalled == known {
            scanned.matched.push(path);
            return Ok(());
        }
        let moment = Moment::now();
        let entry = match recalled {
            Some(entry) => entry.clone(),
            None => match self.tree.look_within(&path, self.bounds) {
                Ok(Some((entry, stat))) => {
                    if stat.kind == FileKind::File {
                        scanned.learned.learn(&path, stat, &entry, moment);
                    }
                    entry
                }
                // It was removed between the listing and the check. The next capture sees the result.
                Ok(None) => {
                    scanned.blind.push(path);
                    return Ok(());
                }
                Err(error) => return scanned.cannot_look(&path, error),
            },
        };
        match known {
            Some(known) => {
                if *known != entry {
                    scanned.found.insert(path.clone(), Some(entry));
                }
                scanned.matched.push(path);
            }
            None => drop(scanned.found.insert(path, Some(entry))),
        }
        Ok(())
    }

    /// Finds what is known but wasn't found. There is nearly always nothing, which counting shows.
    fn find_missing(&self, scanned: &mut Scanned) {
        let base = &self.known.base;
        let (added, removed) =
            self.known
                .since
                .iter()
                .fold((0, 0), |(added, removed), (path, entry)| {
                    match (entry.is_some(), base.get(path).is_some()) {
                        (true, false) => (added + 1, removed),
                        (false, true) => (added, removed + 1),
                        _ => (added, removed),
                    }
                });
        if scanned.matched.len() == base.len() + added - removed {
            return;
        }
        let met: HashSet<&RelPath> = scanned.matched.iter().collect();
        let blind = std::mem::take(&mut scanned.blind);
        let all = base.iter().map(|(path, _)| path).chain(self.known.since.keys());
        for path in all {
            let is_blind = |blind: &RelPath| blind == path || path.is_below(blind);
            if !met.contains(path) && self.known.get(path).is_some() && !blind.iter().any(is_blind) {
                scanned.found.insert(path.clone(), None);
            }
        }
        scanned.blind = blind;
    }

    fn knows_below(&self, path: &RelPath) -> bool {
        super::upper::knows_below(self.known, path)
    }
}

impl Scanned {
    fn take_in(&mut self, other: Self) {
        self.found.extend(other.found);
        self.left_out.extend(other.left_out);
        self.learned.merge(other.learned);
        self.matched.extend(other.matched);
        self.blind.extend(other.blind);
        self.too_long.extend(other.too_long);
    }

    fn leave_out(&mut self, path: RelPath, why: WhyLeftOut) {
        self.left_out.push(LeftOut::at(&path, why));
        self.blind.push(path);
    }

    fn not_readable(&mut self, path: &RelPath, error: Errno) -> io::Result<()> {
        match error {
            Errno::ACCESS | Errno::PERM => self.leave_out(path.clone(), WhyLeftOut::Unreadable),
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => self.blind.push(path.clone()),
            error => return Err(error.into()),
        }
        Ok(())
    }

    fn cannot_look(&mut self, path: &RelPath, error: TreeError) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::PermissionDenied => self.leave_out(path.clone(), WhyLeftOut::Unreadable),
            io::ErrorKind::FileTooLarge => self.leave_out(path.clone(), WhyLeftOut::TooLarge),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.blind.push(path.clone()),
            _ => return Err(error.into()),
        }
        Ok(())
    }
}
