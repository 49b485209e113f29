//! Cancellation of captures: by discarding a plan with its work, and when the daemon stops.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{CancellationToken, Cause, Scope};
use protocol::PlanId;

#[derive(Debug)]
pub(crate) struct CaptureTokens {
    all: CancellationToken,
    /// Guards one token for each plan that is being captured or discarded; only looked up and replaced under it.
    plans: Mutex<HashMap<PlanId, CancellationToken>>,
}

/// While this is held, no capture of the plan continues or begins.
#[derive(Debug)]
#[must_use]
pub struct CaptureHold {
    captures: Arc<CaptureTokens>,
    plan: PlanId,
}

impl CaptureTokens {
    pub(crate) fn below(token: &CancellationToken) -> Self {
        Self {
            all: token.child(),
            plans: Mutex::default(), // Guarded as described above.
        }
    }

    /// The scope of a capture that is about to begin.
    pub(super) fn begin(&self, plan: PlanId) -> Scope {
        let mut plans = self.plans();
        plans.entry(plan).or_insert_with(|| self.all.child()).scope()
    }

    pub(super) fn end(&self, plan: PlanId) {
        let mut plans = self.plans();
        if plans.get(&plan).is_some_and(|token| !token.is_cancelled()) {
            plans.remove(&plan);
        }
    }

    pub(crate) fn hold(this: &Arc<Self>, plan: PlanId) -> CaptureHold {
        let token = this
            .plans()
            .entry(plan)
            .or_insert_with(|| this.all.child())
            .clone();
        token.cancel(Cause::new("a user", "the plan is being discarded"));
        CaptureHold {
            captures: Arc::clone(this),
            plan,
        }
    }

    /// Cancels all of them, for good.
    pub(crate) fn cancel_all(&self, cause: Cause) {
        self.all.cancel(cause);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.all.is_cancelled()
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<PlanId, CancellationToken>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CaptureHold {
    fn drop(&mut self) {
        self.captures.plans().remove(&self.plan);
    }
}
