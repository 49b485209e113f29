//! What the start of an agent's process needs to know about its turn, and what it leaves for the turn.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lifecycle::ServerKey;
use plans::{Changeset, PlanError, Plans};
use protocol::{PlanId, TurnError};

use crate::session::Actor;

/// The turns that want a process, by key.
#[derive(Debug, Default)]
pub(super) struct Sites {
    /// Guards the map; held for lookups, inserts and removals.
    sites: Mutex<HashMap<ServerKey, Arc<Site>>>,
}

/// A turn that wants a process.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) plans: Plans,
    pub(super) plan: PlanId,
    pub(super) actor: Actor,
    /// The directory it starts in, relative to the root of the workspace.
    below: PathBuf,
    /// What it's for, in one line.
    pub(super) reason: String,
    /// Guards what a process left; held to update it and to take it.
    left: Mutex<Left>,
}

/// What a process left for its turn.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Whether a start was attempted for this turn.
    pub(super) tried: bool,
    /// Why it did not start.
    pub(super) trouble: Option<TurnError>,
    /// Its changes, recorded when it left the sandbox.
    pub(super) changes: Vec<Changeset>,
    /// Why its changes could not be recorded.
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

    /// The directory it starts in, below a root of the workspace.
    pub(super) fn directory(&self, root: &Path) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => root.to_owned(),
            false => root.join(&self.below),
        }
    }

    /// Updates what a process leaves for its turn.
    pub(super) fn note(&self, note: impl FnOnce(&mut Left)) {
        note(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether a start was attempted for this turn.
    pub(super) fn was_tried(&self) -> bool {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).tried
    }

    pub(super) fn take_left(&self) -> Left {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
