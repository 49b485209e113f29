//! Where a landing happens: in the workspace, or in the sandbox of a parent.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use eventlog::BlobId;
use protocol::PlanId;

use crate::attributes::Attributes;
use crate::log_contents::Source;
use crate::{
    Bases, ContentSink, Contents, Entry, MergeDriver, Ours, PlanError, RelPath, Sandbox, TEXT_LIMIT_BYTES,
    Tree,
};

#[derive(Clone, Debug)]
pub(super) enum LandingTarget {
    Workspace(PathBuf),
    Parent(PlanId, Arc<dyn Sandbox>),
}

impl LandingTarget {
    /// Calls `work` with the tree. It blocks.
    pub(super) fn with_tree<R>(&self, work: impl FnOnce(&Tree) -> R) -> Result<R, PlanError> {
        match self {
            Self::Parent(_, sandbox) => Ok(work(sandbox.tree())),
            Self::Workspace(root) => {
                let tree = Tree::open(root).map_err(|error| PlanError::Io {
                    what: format!("opening {}", root.display()),
                    source: error.into(),
                })?;
                Ok(work(&tree))
            }
        }
    }
}

impl LandingTarget {
    pub(super) fn parent(&self) -> Option<PlanId> {
        match self {
            Self::Workspace(_) => None,
            Self::Parent(parent, _) => Some(*parent),
        }
    }

    pub(super) fn source(&self, path: RelPath) -> Source {
        let target = self.clone();
        Source::of_tree(path, move |path| target.with_tree(|tree| tree.open_file(path)))
    }
}

/// A tree as a merge sees it: what is at its paths, and the contents of the files it has read, which may not be in the
/// log.
pub(super) struct TreeOurs<'a> {
    pub(super) tree: &'a Tree,
    pub(super) contents: &'a dyn Contents,
    /// Guards the paths of the contents that were seen.
    pub(super) seen: Mutex<HashMap<BlobId, RelPath>>,
    /// Finds where in the workspace a file may have been moved; looks only if asked.
    pub(super) moved: &'a (dyn Fn(BlobId) -> Option<RelPath> + Sync),
    pub(super) attributes: Attributes<'a>,
}

impl Ours for TreeOurs<'_> {
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>> {
        let entry = self.tree.entry(path)?;
        if let Some(content) = entry.as_ref().and_then(Entry::content) {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(content, path.clone());
        }
        Ok(entry)
    }

    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
        let names = match self.tree.list(Some(directory)) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let mut paths = names.iter().map(|(name, _)| directory.join(name));
        // A name that can't be carried still belongs to someone.
        Ok(paths.any(|path| path.map_or(true, |path| !beside(&path))))
    }

    fn find(&self, content: BlobId) -> Option<RelPath> {
        (self.moved)(content)
    }

    fn merge_driver(&self, path: &RelPath) -> MergeDriver {
        self.attributes.merge_driver(path)
    }
}

impl TreeOurs<'_> {
    fn place_of(&self, id: BlobId) -> Option<RelPath> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&id).cloned()
    }
}

impl Contents for TreeOurs<'_> {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        let Some(path) = self.place_of(id) else {
            return self.contents.get(id);
        };
        let content = self.tree.read(&path, TEXT_LIMIT_BYTES)?;
        if BlobId::of(&content) == id {
            Ok(content.into())
        } else {
            // Someone has saved it since, so the merge must be repeated.
            Err(io::ErrorKind::Interrupted.into())
        }
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        self.contents.copy_to(id, to)
    }
}

/// Finds the current paths of a workspace's files. It scans only if asked, which is when a file is missing that a plan
/// has renamed.
pub(super) struct ContentFinder {
    pub(super) bases: Bases,
    pub(super) root: PathBuf,
    pub(super) cache: PathBuf,
    pub(super) scope: kernel::Scope,
    pub(super) found: OnceLock<Option<Arc<crate::manifest::Manifest>>>,
}

impl ContentFinder {
    pub(super) fn of(&self, content: BlobId) -> Option<RelPath> {
        let manifest = self.found.get_or_init(|| {
            let taken = self.bases.take(&self.root, &self.cache, &self.scope).ok()?;
            Some(taken.base.manifest)
        });
        let mut entries = manifest.as_ref()?.iter();
        let found = entries.find(|(_, entry)| entry.content() == Some(content));
        found.map(|(path, _)| path.clone())
    }
}
