//! What an earlier daemon left unfinished and is being recovered, for `doctor` and the lists.
//!
//! Requests for such a plan or workspace wait for its worker, which does the recovery first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{PlanId, WorkspaceId};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recovery {
    pub of: RecoveryOf,
    pub what: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecoveryOf {
    /// What an earlier daemon's commands did in the sandbox of a plan.
    Plan(PlanId),
    /// An apply or undo that an earlier daemon left unfinished.
    Workspace(WorkspaceId),
}

/// The list. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovering {
    /// Guards the list; held for one lookup or change.
    listed: Arc<Mutex<Vec<Recovery>>>,
}

impl Recovering {
    /// Lists something until the returned value is dropped.
    pub(crate) fn begin(&self, recovery: Recovery) -> UnderWay {
        self.lock().push(recovery.clone());
        UnderWay {
            all: self.clone(),
            recovery,
        }
    }

    pub(crate) fn list(&self) -> Vec<Recovery> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Recovery>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps something on the list until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    all: Recovering,
    recovery: Recovery,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.all.lock().retain(|listed| *listed != self.recovery);
    }
}
