//! Discarding a plan, whatever state it is in.

use std::sync::Arc;
use std::time::Duration;

use eventlog::MaybeConflict;
use kernel::Deadline;
use protocol::PlanId;

use crate::plan_worker::CaptureTokens;
use crate::{Actor, Plan, PlanError, Plans, Unapplied, state};

/// How long a discard waits for a landing in progress.
const LANDING_WAIT: Duration = Duration::from_secs(30);
/// How often a discard is retried because a landing of the plan began at the same moment.
const DISCARD_TRIES: usize = 3;
/// How long a forced discard waits for the sandbox's files to be removed.
const FILES_GONE_WITHIN: Duration = Duration::from_secs(2);

impl Plans {
    /// Discards a plan. If its work is given up too, the sandbox is no longer scanned, and a running capture is
    /// cancelled.
    pub async fn discard(
        &self,
        plan: PlanId,
        by: Actor,
        seen: Option<u64>,
        work: Unapplied,
    ) -> Result<Plan, PlanError> {
        let hold = (work == Unapplied::GiveUp).then(|| CaptureTokens::hold(&self.inner.captures, plan));
        let mut tries = 0..DISCARD_TRIES;
        loop {
            let found = self.get(plan).await?;
            if found.record.landing.is_some() {
                self.release(&found, work).await?;
            }
            let by = Arc::clone(&by);
            let discarded = self
                .inner
                .at_plan(plan, move |worker| Box::pin(worker.discard(by, seen, work)))
                .await;
            match discarded {
                // A landing may have begun in the meantime.
                Err(PlanError::Busy { .. }) if work == Unapplied::GiveUp && tries.next().is_some() => {}
                discarded => {
                    drop(hold);
                    if discarded.is_ok() && work == Unapplied::GiveUp {
                        self.see_files_go(plan).await;
                    }
                    return discarded;
                }
            }
        }
    }

    /// Discards a plan of another daemon, with its work. The caller must have made sure that the other daemon is gone;
    /// if it comes back, it removes the sandbox.
    ///
    /// *Cancel safety*: dropped halfway, it may or may not be discarded.
    pub async fn discard_of_gone(&self, id: PlanId, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        let discarded = Plan::update(&self.inner.log, id, DISCARD_TRIES, |plan| {
            let plan = plan.ok_or(PlanError::NotFound(id))?;
            let actual = plan.version.get();
            if seen.is_some_and(|seen| seen != actual) {
                return Err(PlanError::Stale { plan: id, actual });
            }
            let mut record = plan.record.clone();
            // They ended with that daemon, and their changes are no longer needed.
            record.running.clear();
            let now = self.inner.time.now();
            let (record, events) = state::discard(id, &record, &by, Unapplied::GiveUp, now)?;
            Ok(Some(eventlog::Change {
                record,
                events,
                also: Vec::new(),
            }))
        });
        match discarded.await {
            Err(error) if error.is_conflict() => Err(PlanError::moving(id)),
            discarded => discarded?.entity().ok_or(PlanError::NotFound(id)),
        }
    }

    /// Waits a moment for the files of a discarded plan to be removed: most are removed at once, and the next plan can
    /// use the space.
    async fn see_files_go(&self, plan: PlanId) {
        // The worker finishes its queued work before this.
        let gone = self.inner.at_plan(plan, |_| Box::pin(async { Ok(()) }));
        let moment = Deadline::after(&self.inner.clock, FILES_GONE_WITHIN);
        tokio::select! {
            _ = gone => {}
            () = moment.passed() => {}
        }
    }

    /// Waits for the landing that a plan takes part in, or finishes it if nothing is carrying it out.
    async fn release(&self, plan: &Plan, work: Unapplied) -> Result<(), PlanError> {
        let workspace = plan.record.facts.workspace;
        let released = self
            .inner
            .at_workspace(workspace, move |queue| Box::pin(queue.release(work)));
        let deadline = Deadline::after(&self.inner.clock, LANDING_WAIT);
        tokio::select! {
            released = released => released,
            () = deadline.passed() => Err(PlanError::Busy {
                plan: plan.id,
                by: format!("it has been applied or undone for more than {} s", LANDING_WAIT.as_secs()),
            }),
        }
    }
}
