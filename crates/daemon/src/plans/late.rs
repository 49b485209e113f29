//! Jobs, for those that are made before them.
//!
//! The service of jobs is given its handlers when it is opened, and some of them have to ask it for something. So they
//! hold the place where it will be. They do not keep it alive: who holds [`LateJobs`] does.

use std::sync::{Arc, OnceLock, Weak};

use jobs::Jobs;
use kernel::Scope;
use plans::Plans;
use process::Tasks;

/// The jobs, once they are there.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateJobs {
    place: Arc<OnceLock<Jobs>>,
}

impl LateJobs {
    /// Puts them there. The first ones stay.
    pub(crate) fn fill(&self, jobs: &Jobs) {
        drop(self.place.set(jobs.clone()));
    }

    /// What watches over plans and jobs together, until the scope is cancelled.
    pub(crate) fn watch(&self, plans: &Plans, tasks: &Tasks, scope: Scope) -> Watch {
        Watch {
            plans: plans.clone(),
            jobs: Arc::downgrade(&self.place),
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
