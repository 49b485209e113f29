//! The jobs, for services that are made before them.
//!
//! The jobs service gets its handlers when it is opened, and some handlers have to call it. So they hold the slot that it
//! will be put into. They don't keep the service alive: the holder of [`JobsSlot`] does.

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
    /// Puts them there. The first ones stay.
    pub(crate) fn fill(&self, jobs: &Jobs) {
        drop(self.jobs.set(jobs.clone()));
    }

    /// What watches over plans and jobs together, until the scope is cancelled.
    pub(crate) fn watch(&self, plans: &Plans, tasks: &Tasks, scope: Scope) -> Watch {
        Watch {
            plans: plans.clone(),
            jobs: Arc::downgrade(&self.jobs),
            tasks: tasks.clone(),
            scope,
        }
    }
}

/// What watches over plans and jobs together. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(super) plans: Plans,
    jobs: Weak<OnceLock<Jobs>>,
    pub(super) tasks: Tasks,
    pub(super) scope: Scope,
}

impl Watch {
    /// The jobs; `None` before they are open, and when the daemon is gone.
    pub(super) fn jobs(&self) -> Option<Jobs> {
        self.jobs.upgrade()?.get().cloned()
    }
}
