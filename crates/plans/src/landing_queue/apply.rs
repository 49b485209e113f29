//! Applying plans: what they changed, merged into the workspace or into their parent.

use std::sync::Arc;

use protocol::{OutcomeKind, PlanId, PlanState};

use super::begin::LandingRequest;
use super::stored::{self, KnownAttributes};
use super::{LandingQueue, TRIES};
use crate::inner::PlansInner;
use crate::plan_worker::Snapshot;
use crate::{ApplyRequest, Attempt, Change, Effect, LandingOutcome, PlanError, fold, invert, state};

impl LandingQueue {
    /// Applies plans, all of them or none.
    pub(crate) async fn apply(&mut self, order: ApplyRequest) -> Result<LandingOutcome, PlanError> {
        for _ in 0..TRIES {
            let mut snapshots = Vec::new();
            for plan in &order.plans {
                snapshots.push(self.snapshot(*plan).await?);
            }
            for (index, Snapshot { plan, .. }) in snapshots.iter().enumerate() {
                state::may_land(plan.id, &plan.record, Attempt::Apply)?;
                // Whoever has looked at a diff decided on that, and on nothing that came later.
                if order
                    .seen
                    .get(index)
                    .is_some_and(|seen| *seen != plan.record.fingerprint)
                {
                    return Err(PlanError::Stale {
                        plan: plan.id,
                        actual: plan.version.get(),
                    });
                }
            }
            let (mut lists, mut attributes) = (Vec::new(), Vec::new());
            for snapshot in &snapshots {
                let (wanted, known) = self.wanted_by(snapshot).await?;
                lists.push(wanted);
                attributes.extend(known);
            }
            let wanted = LandingRequest {
                what: Attempt::Apply,
                by: Arc::clone(&order.by),
                run: order.run,
                commit: order.commit.clone(),
                snapshots,
                lists,
                changeset: None,
                attributes,
            };
            let notes: Vec<String> = wanted
                .snapshots
                .iter()
                .flat_map(|snapshot| snapshot.plan.uncarried_notes())
                .collect();
            if let Some(mut outcome) = self.land(wanted).await? {
                if outcome.kind != OutcomeKind::Conflicted {
                    outcome.notes.extend(notes);
                }
                return Ok(outcome);
            }
        }
        Err(moving(order.plans.first().copied()))
    }

    /// A plan with everything recorded that is in its sandbox. A landing that was left half-way, because the log was away, is
    /// brought to its end first: nobody else carries one out on this workspace.
    pub(super) async fn snapshot(&self, plan: PlanId) -> Result<Snapshot, PlanError> {
        let snapshot = self.snapshot_as_it_is(plan).await?;
        if snapshot.plan.record.landing.is_none() {
            return Ok(snapshot);
        }
        let workspace = self.workspace().await?;
        self.settle(&workspace).await?;
        self.snapshot_as_it_is(plan).await
    }

    async fn snapshot_as_it_is(&self, plan: PlanId) -> Result<Snapshot, PlanError> {
        let snapshot = self.inner.at_plan(plan, |worker| {
            Box::pin(async move {
                if matches!(
                    worker.plan().await?.record.state,
                    PlanState::Open | PlanState::Sealed
                ) {
                    worker.catch_up().await?;
                }
                worker.snapshot().await
            })
        });
        snapshot.await
    }

    /// What a plan wants to be changed. One that was taken back wants what that took, with all that it had.
    async fn wanted_by(&self, snapshot: &Snapshot) -> Result<(Vec<Change>, KnownAttributes), PlanError> {
        let plan = &snapshot.plan;
        match plan.record.state {
            PlanState::Undone => {
                let (done, had) = last_effects(&self.inner, snapshot).await?;
                Ok((fold(&invert(&done)), had))
            }
            _ => Ok((snapshot.changes.to_vec(), KnownAttributes::new())),
        }
    }
}

/// What the last landing of a plan did, as changes, and what files that went had beside their content.
pub(super) async fn last_effects(
    inner: &PlansInner,
    snapshot: &Snapshot,
) -> Result<(Vec<Change>, KnownAttributes), PlanError> {
    let plan = &snapshot.plan;
    let landed = plan.record.landed.as_ref().ok_or(PlanError::WrongState {
        plan: plan.id,
        state: plan.record.state,
    })?;
    let plans = stored::record(&inner.log, &landed.landing).await?.plans.len();
    let mut done = stored::done(&inner.log, &landed.landing, plans).await?;
    let number = landed.number as usize;
    if number >= done.each.len() {
        return Ok((Vec::new(), KnownAttributes::new()));
    }
    Ok((as_changes(done.each.swap_remove(number)), done.had))
}

fn as_changes(effects: Vec<Effect>) -> Vec<Change> {
    let change = |effect: Effect| Change {
        path: effect.path,
        before: effect.before,
        after: effect.after,
        from: None,
    };
    effects.into_iter().map(change).collect()
}

/// Somebody is always a step ahead.
pub(super) fn moving(plan: Option<PlanId>) -> PlanError {
    let by = "it is being changed by somebody else all the time".to_owned();
    match plan {
        Some(plan) => PlanError::Busy { plan, by },
        None => PlanError::NotTogether,
    }
}
