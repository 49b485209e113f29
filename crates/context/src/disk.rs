//! Files on disk, below a root: opened without leaving it, read within limits, and walked as git would.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use ignore::{DirEntry, WalkBuilder, WalkState};
use kernel::Scope;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, open, openat, openat2};
use rustix::io::Errno;

use crate::path::TreePath;
use crate::view::{FILE_LIMIT_BYTES, NotText};

/// How much of a file is searched for a NUL.
const BINARY_LOOK_BYTES: usize = 8 * 1024;
/// How many times a path is resolved again if somebody renames directories on it in the meantime.
const MOST_TRIES: usize = 16;
/// How many threads walk. More of them would wait for each other.
const MOST_WALKERS: usize = 8;

#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?))
    }

    /// Opens a regular file. It doesn't block, whatever the file is, and links don't lead out of the tree.
    fn open_file(&self, path: &str) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut left = MOST_TRIES;
        loop {
            match openat2(&self.0, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if left > 0 => left -= 1,
                // The system is too old, or a policy forbids it.
                Err(Errno::NOSYS | Errno::PERM) => return self.open_by_names(path, flags),
                opened => return opened,
            }
        }
    }

    /// The same, name by name. No link is followed at all.
    fn open_by_names(&self, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", path));
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at: Option<OwnedFd> = None;
        for directory in directories.split('/').filter(|name| !name.is_empty()) {
            let from = at.as_ref().unwrap_or(&self.0);
            at = Some(openat(from, directory, through, Mode::empty())?);
        }
        openat(at.as_ref().unwrap_or(&self.0), name, flags, Mode::empty())
    }

    /// The metadata of a file of any type; `None` if it doesn't exist.
    pub(crate) fn stat(&self, path: &TreePath) -> Option<Stat> {
        rustix::fs::statat(&self.0, path.as_str(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Reads a file into a buffer and replaces its content. The metadata is from before the read.
    pub(crate) fn read(&self, path: &TreePath, buffer: &mut Vec<u8>) -> Result<Stat, NotText> {
        buffer.clear();
        let opened = self.open_file(path.as_str()).map_err(not_opened)?;
        let stat = rustix::fs::fstat(opened.as_fd()).map_err(|error| NotText::Unreadable(error.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(NotText::Missing);
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if size > FILE_LIMIT_BYTES {
            return Err(NotText::TooLarge);
        }
        // It may grow while it is read.
        let mut file = File::from(opened).take(FILE_LIMIT_BYTES + 1);
        buffer.reserve(usize::try_from(size).unwrap_or(0) + 1);
        file.read_to_end(buffer).map_err(NotText::Unreadable)?;
        if buffer.len() as u64 > FILE_LIMIT_BYTES {
            return Err(NotText::TooLarge);
        }
        let beginning = &buffer[..buffer.len().min(BINARY_LOOK_BYTES)];
        if memchr::memchr(0, beginning).is_some() {
            return Err(NotText::Binary);
        }
        Ok(stat)
    }
}

fn not_opened(error: Errno) -> NotText {
    match error {
        // A link at the end, one that leads out of the tree, a path component that isn't a directory, or a
        // socket.
        Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::NOTDIR | Errno::NXIO | Errno::NAMETOOLONG => {
            NotText::Missing
        }
        error => NotText::Unreadable(error.into()),
    }
}

pub(crate) struct Visited<'entry> {
    pub(crate) path: TreePath,
    pub(crate) entry: &'entry DirEntry,
}

/// Walks a directory and everything below it in parallel, with git's rules, including those of the directories above
/// it. Links aren't followed. `visit` gets each regular file, `directory` each directory. Stops when the scope is
/// cancelled, or when `visit` asks for it.
pub(crate) fn walk(
    root: &Path,
    start: &Path,
    scope: &Scope,
    visit: &(dyn Fn(Visited<'_>) -> bool + Sync),
    directory: &(dyn Fn(&Path) + Sync),
) -> io::Result<()> {
    // The walker doesn't report an unreadable start directory.
    std::fs::read_dir(start)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let walker = rules(start).threads(threads.min(MOST_WALKERS)).build_parallel();
    walker.run(|| {
        Box::new(|entry| {
            if scope.is_cancelled() {
                return WalkState::Quit;
            }
            // Skip entries that can't be read.
            let Ok(entry) = entry else {
                return WalkState::Continue;
            };
            match entry.file_type() {
                Some(kind) if kind.is_dir() => directory(entry.path()),
                Some(kind) if kind.is_file() => {
                    if let Some(path) = below(root, entry.path())
                        && !visit(Visited { path, entry: &entry })
                    {
                        return WalkState::Quit;
                    }
                }
                _ => {}
            }
            WalkState::Continue
        })
    });
    Ok(())
}

/// Which of some names in a directory git doesn't ignore. It walks down from the root, so that nothing is found in or
/// below an ignored directory.
pub(crate) fn among(
    root: &Path,
    directory: &Path,
    is_asked: impl Fn(&OsStr) -> bool + Send + Sync + 'static,
    mut found: impl FnMut(&DirEntry),
) {
    let Ok(below) = directory.strip_prefix(root) else {
        return;
    };
    let depth = below.components().count() + 1;
    let directory = directory.to_owned();
    let mut rules = rules(root);
    rules.max_depth(Some(depth)).filter_entry(move |entry| {
        let is_on_the_way = entry.depth() < depth && directory.starts_with(entry.path());
        let is_inside = || entry.depth() == depth && is_asked(entry.file_name());
        entry.depth() == 0 || (entry.file_name() != ".git" && (is_on_the_way || is_inside()))
    });
    for entry in rules.build().flatten() {
        if entry.depth() == depth {
            found(&entry);
        }
    }
}

/// A walk with git's rules, from a directory on. Hidden files count; git's own directory doesn't.
fn rules(start: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder
        .hidden(false)
        .ignore(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    builder
}

/// A path on disk as a path of the tree; `None` if it isn't below the root, or isn't UTF-8.
pub(crate) fn below(root: &Path, path: &Path) -> Option<TreePath> {
    TreePath::new(path.strip_prefix(root).ok()?.to_str()?).ok()
}
