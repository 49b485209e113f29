//! Discarding a plan, whatever state it is in.

use std::sync::Arc;
use std::time::Duration;

use eventlog::MaybeConflict;
use kernel::Deadline;
use protocol::PlanId;

use crate::plan_worker::CaptureTokens;
use crate::{Actor, Plan, PlanError, Plans, Unapplied, state};

/// How long a plan that is given up waits for a landing that is being carried out.
const LANDING_WAIT: Duration = Duration::from_secs(30);
/// How often a plan is tried to be given up again because a landing of it began at the same moment.
const DISCARD_TRIES: usize = 3;
/// How long a discard by force waits for the files of the sandbox to be gone.
const FILES_GONE_WITHIN: Duration = Duration::from_secs(2);

impl Plans {
    /// Gives a plan up. If its work is given up too, nothing of it is looked at any more, and a capture that is on its way is
    /// called off.
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
                // A landing may have begun since.
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

    /// Gives up a plan of another daemon, with its work. Whoever calls this has made sure that that daemon is gone; if it comes
    /// back, it removes the sandbox.
    ///
    /// *Cancel safety*: dropped halfway, it may or may not be given up.
    pub async fn discard_of_gone(&self, id: PlanId, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        let discarded = Plan::update(&self.inner.log, id, DISCARD_TRIES, |plan| {
            let plan = plan.ok_or(PlanError::NotFound(id))?;
            let actual = plan.version.get();
            if seen.is_some_and(|seen| seen != actual) {
                return Err(PlanError::Stale { plan: id, actual });
            }
            let mut record = plan.record.clone();
            // They ended with that daemon, and nobody will ask what they changed.
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

    /// Waits a moment for the files of a plan that was given up: most are gone at once, and whoever comes next has their room.
    async fn see_files_go(&self, plan: PlanId) {
        // What was left at the worker comes before this.
        let gone = self.inner.at_plan(plan, |_| Box::pin(async { Ok(()) }));
        let moment = Deadline::after(&self.inner.clock, FILES_GONE_WITHIN);
        tokio::select! {
            _ = gone => {}
            () = moment.passed() => {}
        }
    }

    /// Waits for the landing that a plan takes part in, or brings it to an end if nobody carries it out.
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
