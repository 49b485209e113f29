//! What the start of an agent's process needs to know of its turn, and what it leaves for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lifecycle::ServerKey;
use plans::{Changeset, PlanError, Plans};
use protocol::{PlanId, TurnError};

use crate::session::Actor;

/// The turns that want a process, by its key.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// Guards the map; held to look, to put in and to take out.
    sites: Mutex<HashMap<ServerKey, Arc<Site>>>,
}

/// A turn that wants a process.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) plans: Plans,
    pub(super) plan: PlanId,
    pub(super) actor: Actor,
    /// Where it starts, below the root of the workspace.
    below: PathBuf,
    /// What it is for, in one line.
    pub(super) reason: String,
    /// Guards what a process left; held to write it down and to take it.
    left: Mutex<Left>,
}

/// What a process left for its turn.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Whether a start was tried for this turn.
    pub(super) tried: bool,
    /// Why it did not come up.
    pub(super) trouble: Option<TurnError>,
    /// What it changed, recorded when it left the sandbox.
    pub(super) changes: Vec<Changeset>,
    /// Why what it changed could not be recorded.
    pub(super) not_recorded: Option<PlanError>,
}

impl Sites {
    pub(super) fn find(&self, key: &ServerKey) -> Option<Arc<Site>> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.get(key).cloned()
    }

    pub(super) fn put(&self, key: &ServerKey, site: &Arc<Site>) {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.insert(key.clone(), Arc::clone(site));
    }

    pub(super) fn take(&self, key: &ServerKey) {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.remove(key);
    }
}

impl Site {
    pub(super) fn new(plans: Plans, plan: PlanId, actor: Actor, below: PathBuf, reason: String) -> Self {
        Self {
            plans,
            plan,
            actor,
            below,
            reason,
            left: Mutex::default(),
        }
    }

    /// Where it starts, below a root of the workspace.
    pub(super) fn directory(&self, root: &Path) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => root.to_owned(),
            false => root.join(&self.below),
        }
    }

    /// Writes down what a process leaves.
    pub(super) fn note(&self, note: impl FnOnce(&mut Left)) {
        note(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether a start was tried for this turn.
    pub(super) fn was_tried(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).tried
    }

    pub(super) fn take_left(&self) -> Left {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
