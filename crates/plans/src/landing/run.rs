//! The context that every step of a landing uses.

use crate::landing::area::Area;
use crate::landing::item::Item;
use crate::landing::site::LandingSite;
use crate::landing::steps::{Step, StepKind};
use crate::{Conflict, ConflictKind, Entry, FileKind, FileStat, RelPath, Tree, TreeError};

/// The tree and the staging directory of one landing.
#[derive(Clone, Copy)]
pub(super) struct LandingRun<'a> {
    pub(super) site: &'a LandingSite<'a>,
    pub(super) area: &'a Area,
}

#[derive(Debug)]
pub(super) struct PathState {
    /// What it is; `None` for a directory that isn't empty, and for anything that isn't a file, symlink or directory.
    /// Those are never ours.
    pub(super) entry: Option<Entry>,
    pub(super) stat: FileStat,
}

#[derive(Debug)]
pub(super) enum Stop {
    Conflict(Box<Conflict>),
    Failed(TreeError),
}

impl From<TreeError> for Stop {
    fn from(error: TreeError) -> Self {
        Self::Failed(error)
    }
}

impl LandingRun<'_> {
    pub(super) fn reached(&self, kind: StepKind, path: Option<&RelPath>) {
        self.site.steps.reached(Step { kind, path });
    }

    /// The entry with this name in the staging directory.
    pub(super) fn in_area(&self, name: &RelPath) -> Result<Option<PathState>, TreeError> {
        held(&self.area.tree, name)
    }

    pub(super) fn in_tree(&self, path: &RelPath) -> Result<Option<PathState>, TreeError> {
        held(self.site.tree, path)
    }
}

impl PathState {
    pub(super) fn is(&self, entry: Option<&Entry>) -> bool {
        self.entry.is_some() && self.entry.as_ref() == entry
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.stat.device, self.stat.inode) == (other.stat.device, other.stat.inode)
    }
}

fn held(tree: &Tree, path: &RelPath) -> Result<Option<PathState>, TreeError> {
    match tree.look(path) {
        Ok(None) => Ok(None),
        Ok(Some((Entry::Directory, stat))) => match tree.list(Some(path)) {
            Ok(names) => Ok(Some(PathState {
                entry: names.is_empty().then_some(Entry::Directory),
                stat,
            })),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        },
        Ok(Some((entry, stat))) => Ok(Some(PathState {
            entry: Some(entry),
            stat,
        })),
        Err(TreeError::NotAFile { .. } | TreeError::IsADirectory { .. }) => {
            Ok(tree.stat(path)?.map(|stat| PathState { entry: None, stat }))
        }
        Err(error) => Err(error),
    }
}

pub(super) fn in_the_way(item: &Item, kind: ConflictKind, ours: Option<&PathState>) -> Stop {
    let (base, theirs) = match item.earlier.first() {
        Some(first) => first.clone(),
        None => (item.before.clone(), item.after.clone()),
    };
    let ours = ours.and_then(|held| match held.stat.kind {
        FileKind::Directory => Some(Entry::Directory),
        FileKind::File | FileKind::Symlink | FileKind::Special => held.entry.clone(),
    });
    Stop::Conflict(Box::new(Conflict {
        path: item.path.clone(),
        kind,
        base,
        ours,
        theirs,
        other: None,
        hunks: Vec::new(),
    }))
}
