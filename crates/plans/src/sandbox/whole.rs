//! A sandbox with all its files in its own directory: a copy, or a git worktree.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::commits::made_inside;
use super::compare::changes;
use super::contract::{Captured, Entrance, Known, Sandbox, SandboxError};
use super::ignoring::Ignoring;
use super::layout::Layout;
use super::memory::Memory;
use super::scan::scan;
use crate::{Base, IgnoreRules, ReadBounds, Tree};

#[derive(Debug)]
pub(super) struct Whole {
    /// Held so that the image stays: a later sandbox on the same base needs it.
    _base: Base,
    tree: Tree,
    entrance: Entrance,
    ignoring: Ignoring,
    /// Guards the cache of what was read. It is held to read the pointer and to add to the cache, never during a
    /// capture.
    memory: Mutex<Arc<Memory>>,
    remarks: Vec<String>,
}

impl Whole {
    pub(super) fn open(
        base: &Base,
        directory: &Path,
        workspace: &Path,
        entrance: Entrance,
        remarks: Vec<String>,
    ) -> Result<Self, SandboxError> {
        let layout = Layout { directory };
        let tree = layout.tree();
        Ok(Self {
            _base: base.clone(),
            tree: Tree::open(&tree).map_err(|error| SandboxError::io("opening", &tree)(error.into()))?,
            entrance,
            ignoring: Ignoring::of(workspace),
            memory: Mutex::new(Arc::new(Memory::load(&layout.memory()))),
            remarks,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sandbox for Whole {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn entrance(&self) -> Entrance {
        self.entrance.clone()
    }

    fn capture(&self, known: &Known, bounds: &ReadBounds) -> io::Result<Captured> {
        let memory = Arc::clone(&self.lock());
        let scanned = self.ignoring.during(&self.tree, |rules| {
            scan(&self.tree, known, &memory, bounds, &mut |path, is_directory| {
                rules.is_ignored(path, is_directory)
            })
        })?;
        // Drop our reference first, so that an unshared cache is extended in place.
        drop(memory);
        let gone = scanned.found.iter().filter(|(_, entry)| entry.is_none());
        let gone: Vec<_> = gone.map(|(path, _)| path.clone()).collect();
        {
            let mut memory = self.lock();
            let memory = Arc::make_mut(&mut memory);
            gone.iter().for_each(|path| memory.forget(path));
            memory.merge(scanned.learned);
        }
        Ok(Captured {
            changes: changes(scanned.found, known),
            left_out: scanned.left_out,
            branches: made_inside(&self.tree),
        })
    }

    fn with_ignore_rules(
        &self,
        work: &mut dyn FnMut(&mut IgnoreRules<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.ignoring.during(&self.tree, work)
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }
}
