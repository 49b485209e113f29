//! How an overlay differs from its base. All differences are in the upper layer, so nothing else is walked.
//!
//! In the upper layer, a deleted name is a whiteout: a character device with the number 0:0. A directory that hides the
//! base's directory at its path is opaque, marked by an attribute. Every other directory is merged with the base's.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fgetxattr, fstat, openat2};
use rustix::io::Errno;

use super::compare::{FoundEntries, leave_out_too_long};
use super::contract::Known;
use super::memory::{Memory, Moment};
use crate::base::uncarried;
use crate::{Entry, FileKind, LeftOut, Manifest, ReadBounds, RelPath, Tree, TreeError, WhyLeftOut};

/// The attribute of an opaque directory, for overlays that were mounted without privileges.
const OPAQUE: &str = "user.overlay.opaque";

/// Decides whether an unknown path is skipped; takes the path, and whether it is a directory.
pub(super) type IsIgnored<'a> = dyn FnMut(&RelPath, bool) -> io::Result<bool> + 'a;

pub(super) struct Walk<'a> {
    pub(super) upper: &'a Tree,
    pub(super) base: &'a Arc<Manifest>,
    /// What is known. It should have the same base; with another one, every path has to be checked.
    pub(super) known: &'a Known,
    /// Paths where something else is mounted. They aren't entered.
    pub(super) covered: &'a [RelPath],
    pub(super) memory: &'a Memory,
    pub(super) bounds: &'a ReadBounds,
    pub(super) is_ignored: &'a mut IsIgnored<'a>,
}

#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) found: FoundEntries,
    pub(super) left_out: Vec<LeftOut>,
    /// What was read, and what was known already and still exists.
    pub(super) memory: Memory,
    blind: Vec<RelPath>,
    /// Directories that contain paths that are too long.
    too_long: Vec<RelPath>,
}

/// A directory of the upper layer that still has to be walked.
struct Pending {
    /// `None` is the root.
    directory: Option<RelPath>,
    layer: Layer,
}

/// What is below a directory of the upper layer.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Layer {
    Base,
    Nothing,
}

pub(super) fn walk(mut walk: Walk<'_>) -> io::Result<Walked> {
    let mut walked = Walked::default();
    let mut pending = vec![Pending {
        directory: None,
        layer: Layer::Base,
    }];
    while let Some(next) = pending.pop() {
        let names = match walk.upper.list(next.directory.as_ref()) {
            Ok(names) => names,
            Err(error) => match &next.directory {
                Some(directory) => {
                    walked.not_readable(directory, error)?;
                    continue;
                }
                None => return Err(error.into()),
            },
        };
        for (name, kind) in names {
            walk.bounds.check()?;
            if is_own(&name, next.directory.is_none()) {
                if let Some(directory) = next.directory.as_ref().filter(|_| is_history(&name, kind)) {
                    walked
                        .left_out
                        .push(LeftOut::named(Some(directory), &name, WhyLeftOut::History));
                }
                continue;
            }
            let joined = match &next.directory {
                Some(directory) => directory.join(&name),
                None => RelPath::from_path(name.as_ref()),
            };
            match joined {
                Ok(path) if walk.covered.contains(&path) => {}
                Ok(path) => pending.extend(walk.visit(path, kind, next.layer, &mut walked)?),
                Err(_) => match (uncarried(next.directory.as_ref(), &name), &next.directory) {
                    (left, Some(directory)) if left.why == WhyLeftOut::TooLong => {
                        walked.too_long.push(directory.clone());
                    }
                    (left, _) => walked.left_out.push(left),
                },
            }
        }
    }
    walk.look_at_known(&mut walked);
    let too_long = std::mem::take(&mut walked.too_long);
    walked
        .left_out
        .extend(leave_out_too_long(&mut walked.found, walk.known, too_long));
    walked.left_out.sort_by(|one, other| one.path.cmp(&other.path));
    walked.left_out.dedup();
    Ok(walked)
}

/// Whether it belongs to git or to tidelock, and is never part of a capture.
pub(crate) fn is_own(name: &std::ffi::OsStr, is_in_root: bool) -> bool {
    name == ".git" || Tree::is_passing(name) || (is_in_root && name == ".tidelock")
}

/// Whether it is the git directory of a repository, or points to it.
pub(super) fn is_history(name: &std::ffi::OsStr, kind: FileKind) -> bool {
    name == ".git" && kind != FileKind::Special
}

pub(super) fn knows_below(known: &Known, path: &RelPath) -> bool {
    let first = [path.as_bytes(), b"/"].concat();
    let since = known.since.range(path..);
    let mut since = since
        .skip_while(|(one, _)| one.as_bytes() < first.as_slice())
        .take_while(|(one, _)| one.is_below(path));
    known.base.below(path).next().is_some() || since.any(|(_, entry)| entry.is_some())
}

/// Whether a directory is the work tree of a repository elsewhere: a submodule, or a linked work tree. Its files mean
/// nothing without that repository.
pub(super) fn is_linked_repository(tree: &Tree, path: &RelPath) -> bool {
    let is_link = |(name, kind): &(std::ffi::OsString, FileKind)| {
        name == ".git" && matches!(kind, FileKind::File | FileKind::Symlink)
    };
    tree.list(Some(path)).is_ok_and(|names| names.iter().any(is_link))
}

impl Walk<'_> {
    /// Checks one path. A directory is queued to be walked.
    fn visit(
        &mut self,
        path: RelPath,
        kind: FileKind,
        below: Layer,
        walked: &mut Walked,
    ) -> io::Result<Option<Pending>> {
        match kind {
            FileKind::Directory => return self.visit_directory(path, below, walked),
            FileKind::Special => match self.open(&path, OFlags::PATH).and_then(fstat_of) {
                Ok(stat) if is_whiteout(&stat) => self.nothing_at(&path, walked),
                Ok(_) => walked.leave_out(path, WhyLeftOut::Special),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
            FileKind::File | FileKind::Symlink => {
                if !self.is_passed_over(&path, false)? {
                    match self.look(&path, walked) {
                        Ok(Some(entry)) => {
                            self.nothing_below(&path, walked);
                            walked.found.insert(path, Some(entry));
                        }
                        // It was removed between the listing and the check. The next capture sees the result.
                        Ok(None) => walked.blind.push(path),
                        Err(error) => walked.not_readable(&path, error)?,
                    }
                }
            }
        }
        Ok(None)
    }

    fn visit_directory(
        &mut self,
        path: RelPath,
        below: Layer,
        walked: &mut Walked,
    ) -> io::Result<Option<Pending>> {
        if self.is_passed_over(&path, true)? && !knows_below(self.known, &path) {
            return Ok(None);
        }
        let directory = match self.open(&path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(directory) => directory,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                walked.blind.push(path);
                return Ok(None);
            }
            Err(Errno::ACCESS | Errno::PERM) => {
                walked.leave_out(path, WhyLeftOut::Unreadable);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        if self.known.get(&path).is_none() && is_linked_repository(self.upper, &path) {
            walked.leave_out(path, WhyLeftOut::ChangedRepository);
            return Ok(None);
        }
        let is_merged = below == Layer::Base
            && self.base.get(&path) == Some(&Entry::Directory)
            && !is_opaque(&directory)?;
        if !is_merged {
            self.nothing_below(&path, walked);
        }
        walked.found.insert(path.clone(), Some(Entry::Directory));
        Ok(Some(Pending {
            directory: Some(path),
            layer: if is_merged { Layer::Base } else { Layer::Nothing },
        }))
    }

    /// Whether it is ignored and unknown.
    fn is_passed_over(&mut self, path: &RelPath, is_directory: bool) -> io::Result<bool> {
        Ok(self.known.get(path).is_none() && (self.is_ignored)(path, is_directory)?)
    }

    fn look(&self, path: &RelPath, walked: &mut Walked) -> Result<Option<Entry>, TreeError> {
        let moment = Moment::now();
        let Some(stat) = self.upper.stat(path)? else {
            return Ok(None);
        };
        let (entry, stat) = match self.memory.recall(path, &stat) {
            Some(entry) => (entry.clone(), stat),
            None => match self.upper.look_within(path, self.bounds)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        if stat.kind == FileKind::File {
            walked.memory.learn(path, stat, &entry, moment);
        }
        Ok(Some(entry))
    }

    fn open(&self, path: &RelPath, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
        openat2(
            self.upper.root(),
            path.as_path(),
            flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )
    }

    fn nothing_at(&self, path: &RelPath, walked: &mut Walked) {
        walked.found.insert(path.clone(), None);
        self.nothing_below(path, walked);
    }

    /// Marks everything that the base has below a path as hidden.
    fn nothing_below(&self, path: &RelPath, walked: &mut Walked) {
        for (hidden, _) in self.base.below(path) {
            walked.found.insert(hidden.clone(), None);
        }
    }

    /// What is known and not in the upper layer matches the base.
    fn look_at_known(&self, walked: &mut Walked) {
        for path in self.known.since.keys() {
            self.look_below(path, walked);
        }
        if !Arc::ptr_eq(self.base, &self.known.base) {
            let both = [self.base, &self.known.base];
            for (path, _) in both.into_iter().flat_map(|manifest| manifest.iter()) {
                self.look_below(path, walked);
            }
        }
    }

    fn look_below(&self, path: &RelPath, walked: &mut Walked) {
        let is_blind = |blind: &RelPath| blind == path || path.is_below(blind);
        if !walked.found.contains_key(path) && !walked.blind.iter().any(is_blind) {
            walked.found.insert(path.clone(), self.base.get(path).cloned());
        }
    }
}

impl Walked {
    fn leave_out(&mut self, path: RelPath, why: WhyLeftOut) {
        self.left_out.push(LeftOut::at(&path, why));
        self.blind.push(path);
    }

    /// Something exists but can't be read: report it, and continue with the rest.
    fn not_readable(&mut self, path: &RelPath, error: TreeError) -> io::Result<()> {
        match error.kind() {
            io::ErrorKind::PermissionDenied => self.leave_out(path.clone(), WhyLeftOut::Unreadable),
            io::ErrorKind::FileTooLarge => self.leave_out(path.clone(), WhyLeftOut::TooLarge),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.blind.push(path.clone()),
            _ => return Err(error.into()),
        }
        Ok(())
    }
}

fn fstat_of(descriptor: std::os::fd::OwnedFd) -> Result<Stat, Errno> {
    fstat(descriptor)
}

fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn is_opaque(directory: impl AsFd) -> io::Result<bool> {
    let mut value = [0; 1];
    match fgetxattr(directory, OPAQUE, &mut value) {
        Ok(length) => Ok(length == 1 && value == *b"y"),
        // There is no such attribute, or it has a longer, different value.
        Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
