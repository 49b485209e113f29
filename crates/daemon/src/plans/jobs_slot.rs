//! Access to the jobs service for services that are created before it.
//!
//! The jobs service gets its handlers when it is opened, and some handlers have to call it. So they hold a slot for it,
//! which is filled later. They don't keep the service alive: the holder of [`JobsSlot`] does.

use std::sync::{Arc, OnceLock, Weak};

use jobs::Jobs;
use kernel::Scope;
use plans::Plans;
use process::Tasks;

#[derive(Clone, Debug, Default)]
pub(crate) struct JobsSlot {
    jobs: Arc<OnceLock<Jobs>>,
}

impl JobsSlot {
    /// Fills the slot. Later calls change nothing.
    pub(crate) fn fill(&self, jobs: &Jobs) {
        drop(self.jobs.set(jobs.clone()));
    }

    /// A handle to plans and jobs for background tasks, until the scope is cancelled.
    pub(crate) fn watch(&self, plans: &Plans, tasks: &Tasks, scope: Scope) -> Watch {
        Watch {
            plans: plans.clone(),
            jobs: Arc::downgrade(&self.jobs),
            tasks: tasks.clone(),
            scope,
        }
    }
}

/// A handle to plans and jobs for background tasks. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(super) plans: Plans,
    jobs: Weak<OnceLock<Jobs>>,
    pub(super) tasks: Tasks,
    pub(super) scope: Scope,
}

impl Watch {
    /// The jobs; `None` before they are open, and after the daemon has ended.
    pub(super) fn jobs(&self) -> Option<Jobs> {
        self.jobs.upgrade()?.get().cloned()
    }
}
