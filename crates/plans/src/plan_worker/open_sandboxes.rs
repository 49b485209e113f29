//! The open sandboxes, so that reading a file doesn't have to wait for the plan's worker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::PlanId;

use crate::Sandbox;

#[derive(Debug, Default)]
pub(crate) struct OpenSandboxes {
    /// Guards which are open; only looked up and replaced under it.
    open: Mutex<HashMap<PlanId, Arc<dyn Sandbox>>>,
}

/// Keeps a sandbox on the list until it is dropped.
#[derive(Debug)]
pub(super) struct Listed {
    list: Arc<OpenSandboxes>,
    plan: PlanId,
    sandbox: Arc<dyn Sandbox>,
}

impl OpenSandboxes {
    /// The sandbox of a plan, if it is open. It stays open as long as someone holds it.
    pub(crate) fn get(&self, plan: PlanId) -> Option<Arc<dyn Sandbox>> {
        self.open().get(&plan).map(Arc::clone)
    }

    pub(super) fn list(list: &Arc<Self>, plan: PlanId, sandbox: &Arc<dyn Sandbox>) -> Listed {
        list.open().insert(plan, Arc::clone(sandbox));
        Listed {
            list: Arc::clone(list),
            plan,
            sandbox: Arc::clone(sandbox),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<PlanId, Arc<dyn Sandbox>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut open = self.list.open();
        // The plan's next worker may have opened it already.
        let is_this = open
            .get(&self.plan)
            .is_some_and(|listed| Arc::ptr_eq(listed, &self.sandbox));
        if is_this {
            open.remove(&self.plan);
        }
    }
}
