//! Which servers a file gets, cached briefly, because finding out takes many disk accesses.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kernel::Clock;

use super::workspace::{Placed, place};
use crate::{
    languages::error::AskError,
    servers::{Chosen, ConfigNote, Environment, Fingerprint, MissingServer, Registry},
};

/// How long a choice is used without checking again.
const FRESH: Duration = Duration::from_secs(1);
/// How long a choice is used while the configuration stays the same. Root markers and programs rarely change.
const KEPT: Duration = Duration::from_secs(15);
/// How many files are cached. Beyond that, the cache is cleared.
const MOST: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) path: Arc<Path>,
    pub(super) workspace: Arc<Path>,
    pub(super) primary: Option<Arc<Chosen>>,
    pub(super) supplements: Vec<Arc<Chosen>>,
    pub(super) missing: Vec<MissingServer>,
    pub(super) notes: Vec<ConfigNote>,
}

impl Choice {
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Chosen>> {
        self.primary.iter().chain(&self.supplements)
    }
}

#[derive(Debug)]
pub(super) struct Choices {
    registry: Registry,
    clock: Arc<dyn Clock>,
    /// Guards the cache, keyed by the request.
    remembered: Mutex<BTreeMap<Asked, Remembered>>,
}

/// The requested file and workspace, and the caller's variables.
type Asked = (PathBuf, Option<PathBuf>, Environment);

#[derive(Debug)]
struct Remembered {
    choice: Arc<Choice>,
    fingerprint: Fingerprint,
    chosen_at: Instant,
    looked_at: Instant,
}

impl Choices {
    pub(super) fn new(registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self {
            registry,
            clock,
            remembered: Mutex::default(),
        }
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The servers of a file, if they were chosen a moment ago. Does not block.
    pub(super) fn fresh(
        &self,
        path: &Path,
        workspace: Option<&Path>,
        caller: &Environment,
    ) -> Option<Arc<Choice>> {
        let key = (path.to_owned(), workspace.map(Path::to_owned), caller.clone());
        let now = self.clock.now();
        let remembered = self.remembered();
        let known = remembered.get(&key)?;
        let is_fresh = now.saturating_duration_since(known.looked_at) < FRESH;
        is_fresh.then(|| Arc::clone(&known.choice))
    }

    /// The servers of a file. Blocks.
    pub(super) fn choose(
        &self,
        path: &Path,
        workspace: Option<&Path>,
        caller: &Environment,
    ) -> Result<Arc<Choice>, AskError> {
        let key = (path.to_owned(), workspace.map(Path::to_owned), caller.clone());
        let now = self.clock.now();
        let placed = place(path, workspace, self.registry.home().as_deref())?;
        let fingerprint = self.registry.fingerprint(&placed.workspace)?;
        if let Some(known) = self.remembered().get_mut(&key)
            && known.fingerprint == fingerprint
            && now.saturating_duration_since(known.chosen_at) < KEPT
            && *known.choice.path == *placed.path
        {
            known.looked_at = now;
            return Ok(Arc::clone(&known.choice));
        }
        let choice = Arc::new(self.look(&placed, caller)?);
        let mut remembered = self.remembered();
        if choice.primary.is_some() {
            if remembered.len() >= MOST {
                remembered.clear();
            }
            let known = Remembered {
                choice: Arc::clone(&choice),
                fingerprint,
                chosen_at: now,
                looked_at: now,
            };
            remembered.insert(key, known);
        } else {
            // A missing server may be installed at any moment.
            remembered.remove(&key);
        }
        Ok(choice)
    }

    /// The servers of a file in a workspace that may not exist yet. Blocks.
    pub(super) fn choose_unwritten(
        &self,
        path: &Path,
        beside: &Choice,
        caller: &Environment,
    ) -> Result<Arc<Choice>, AskError> {
        let placed = Placed {
            path: path.to_owned(),
            workspace: beside.workspace.to_path_buf(),
        };
        self.look(&placed, caller).map(Arc::new)
    }

    pub(super) fn forget(&self) {
        self.remembered().clear();
    }

    fn look(&self, placed: &Placed, caller: &Environment) -> Result<Choice, AskError> {
        let registry = self.registry.seen_from(caller);
        let selection = registry.servers_for(&placed.path, &placed.workspace)?;
        Ok(Choice {
            path: placed.path.as_path().into(),
            workspace: placed.workspace.as_path().into(),
            primary: selection.primary.map(Arc::new),
            supplements: selection.supplements.into_iter().map(Arc::new).collect(),
            missing: selection.missing,
            notes: selection.notes,
        })
    }

    fn remembered(&self) -> MutexGuard<'_, BTreeMap<Asked, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
