//! The directory that a landing is staged in.

use std::io;
use std::path::Path;

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::landing::error::LandError;
use crate::landing::item::plain_name;
use crate::landing::journal::LandingId;
use crate::{RelPath, Tree, TreeError};

/// The staging path inside the tree, used if the given directory is on another file system.
pub(crate) const INSIDE: &str = ".tidelock/staging";
const COMPLETE: &str = "complete";
const BACK: &str = "back";
const NOTE_BYTES: u64 = 64 * 1024;

/// The directory that a landing is staged in.
#[derive(Debug)]
pub(super) struct Area {
    pub(super) tree: Tree,
    above: Above,
    name: RelPath,
}

#[derive(Debug)]
enum Above {
    Given(Tree),
    /// Inside the tree that is written, see [`INSIDE`].
    Inside,
}

impl Area {
    /// Makes an empty area: in the given directory if files can be renamed from there into the tree, otherwise inside
    /// the tree.
    pub(super) fn make(tree: &Tree, given: &Path, id: &LandingId) -> Result<Self, LandError> {
        if let Some(found) = Self::find(tree, given, id)? {
            if found.has(COMPLETE)? {
                return Err(LandError::StagedAlready);
            }
            found.remove(tree)?;
        }
        let name = plain_name(id.as_str());
        let above = match std::fs::create_dir_all(given) {
            Ok(()) => Some(Tree::open(given).map_err(|error| staging(given, error))?),
            Err(_) => None,
        };
        let area = match above {
            Some(above) if reaches(&above, tree) => {
                // Best effort: without it, staging is only slower.
                above.spread_directories().ok();
                above
                    .make_directory(&name)
                    .map_err(|error| staging(given, error))?;
                Self::open(above, name)?
            }
            _ => Self::make_inside(tree, name)?,
        };
        Ok(area)
    }

    fn make_inside(tree: &Tree, name: RelPath) -> Result<Self, LandError> {
        let failed = |error| staging(tree.path(), error);
        let inside = plain_path(INSIDE);
        tree.make_directories(&inside).map_err(failed)?;
        // So that it isn't committed by accident; the file hides itself as well.
        let ignore = plain_path(&format!("{INSIDE}/.gitignore"));
        tree.write(&ignore, &b"*\n"[..], 0o644).map_err(failed)?;
        // As above.
        tree.below(&inside).map_err(failed)?.spread_directories().ok();
        tree.make_directory(&within(&name)).map_err(failed)?;
        Self::open_inside(tree, name)
    }

    pub(super) fn find(tree: &Tree, given: &Path, id: &LandingId) -> Result<Option<Self>, LandError> {
        let name = plain_name(id.as_str());
        match Tree::open(given) {
            Ok(above) => {
                if above
                    .stat(&name)
                    .map_err(|error| staging(given, error))?
                    .is_some()
                {
                    return Self::open(above, name).map(Some);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(staging(given, error)),
        }
        let inside = tree
            .stat(&within(&name))
            .map_err(|error| staging(tree.path(), error))?;
        inside.map(|_| Self::open_inside(tree, name)).transpose()
    }

    fn open(above: Tree, name: RelPath) -> Result<Self, LandError> {
        let path = above.path().join(name.as_path());
        let tree = above.below(&name).map_err(|error| staging(&path, error))?;
        Ok(Self {
            tree,
            above: Above::Given(above),
            name,
        })
    }

    fn open_inside(tree: &Tree, name: RelPath) -> Result<Self, LandError> {
        let below = tree
            .below(&within(&name))
            .map_err(|error| staging(tree.path(), error))?;
        Ok(Self {
            tree: below,
            above: Above::Inside,
            name,
        })
    }

    /// Removes the area with everything in it. The directories inside the tree are removed too if nothing else uses
    /// them.
    pub(super) fn remove(&self, tree: &Tree) -> Result<(), LandError> {
        match &self.above {
            Above::Given(above) => above
                .remove_all(&self.name)
                .map_err(|error| staging(above.path(), error)),
            Above::Inside => {
                let failed = |error| staging(tree.path(), error);
                tree.remove_all(&within(&self.name)).map_err(failed)?;
                let inside = plain_path(INSIDE);
                let ignore = plain_path(&format!("{INSIDE}/.gitignore"));
                if matches!(tree.list(Some(&inside)), Ok(names) if names.len() <= 1) {
                    for path in [&ignore, &inside, &plain_path(".tidelock")] {
                        // Another landing may be starting, or someone may have put a file there.
                        tree.remove(path).ok();
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn mark_complete(&self) -> Result<(), TreeError> {
        self.note(&plain_name(COMPLETE), b"")
    }

    pub(super) fn mark_back(&self) -> Result<(), TreeError> {
        match self.note(&plain_name(BACK), b"") {
            Err(TreeError::Exists { .. }) => Ok(()),
            marked => marked,
        }
    }

    pub(super) fn is_complete(&self) -> Result<bool, LandError> {
        self.has(COMPLETE)
    }

    pub(super) fn is_back(&self) -> Result<bool, LandError> {
        self.has(BACK)
    }

    fn has(&self, name: &str) -> Result<bool, LandError> {
        let found = self.tree.stat(&plain_name(name));
        found
            .map(|stat| stat.is_some())
            .map_err(|error| staging(self.tree.path(), error))
    }

    /// Writes a note atomically: it is complete and on disk, or not there at all.
    pub(super) fn note(&self, name: &RelPath, content: &[u8]) -> Result<(), TreeError> {
        let part = plain_name(&format!("{name}.part"));
        match self.tree.remove(&part) {
            Ok(()) | Err(TreeError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let (file, _) = self.tree.write_new(&part, 0o600, |to| to.write_all(content))?;
        file.sync_all().map_err(|source| TreeError::Io {
            what: "sync",
            path: part.to_string(),
            source,
        })?;
        self.tree.rename_noreplace(&part, name)?;
        self.tree.sync_directory(None)
    }

    pub(super) fn read_note(&self, name: &RelPath) -> Result<Option<Vec<u8>>, TreeError> {
        match self.tree.read(name, NOTE_BYTES) {
            Ok(content) => Ok(Some(content)),
            Err(TreeError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the file system can exchange two files atomically.
    pub(super) fn can_exchange(&self) -> Result<Exchange, TreeError> {
        let (one, other) = (plain_name("probe.1"), plain_name("probe.2"));
        let tried = self
            .tree
            .make_directory(&one)
            .and_then(|()| self.tree.write(&other, &b""[..], 0o600))
            .and_then(|_| {
                self.tree
                    .rename_into(&one, &self.tree, &other, RenameFlags::EXCHANGE)
            });
        match tried {
            Ok(()) => Ok(Exchange::OneStep),
            Err(TreeError::CannotExchange { .. }) => Ok(Exchange::ThreeSteps),
            Err(error) => Err(error),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Exchange {
    /// In one kernel operation: the path always has a file.
    OneStep,
    /// In three operations: the path is empty for an instant.
    ThreeSteps,
}

pub(super) fn staging(place: &Path, source: TreeError) -> LandError {
    LandError::Staging {
        place: place.display().to_string(),
        source,
    }
}

fn plain_path(path: &str) -> RelPath {
    plain_name(path)
}

fn within(name: &RelPath) -> RelPath {
    plain_path(&format!("{INSIDE}/{name}"))
}

/// Whether a file can be renamed from one into the other. The kernel compares the mounts before it looks up the file,
/// so trying it with a missing file gives the answer and touches nothing.
fn reaches(from: &Tree, to: &Tree) -> bool {
    let (Ok(one), Ok(other)) = (from.root_stat(), to.root_stat()) else {
        return false;
    };
    let absent = format!(".tidelock-absent-{}", protocol::RequestId::generate());
    let asked = renameat_with(from.root(), &*absent, to.root(), &*absent, RenameFlags::NOREPLACE);
    one.device == other.device && asked == Err(Errno::NOENT)
}
