//! What an earlier daemon left unfinished and is being recovered, for `doctor` and the lists.
//!
//! Requests for such a plan or workspace wait for its worker, where the recovery is the first piece of work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::{PlanId, WorkspaceId};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Recovery {
    pub of: RecoveryOf,
    pub what: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RecoveryOf {
    /// What commands of an earlier daemon did in the sandbox of a plan.
    Plan(PlanId),
    /// An apply or undo that an earlier daemon left halfway.
    Workspace(WorkspaceId),
}

/// The list. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovering {
    /// Guards the list; held for a look or a change.
    listed: Arc<Mutex<Vec<Recovery>>>,
}

impl Recovering {
    /// Lists something until the answer is dropped.
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

/// Something that is on the list as long as this is there.
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
