//! Applying and undoing plans: merging their changes, or the inverse, into the workspace or their parent.

use std::sync::Arc;

use protocol::{OutcomeKind, PlanId, PlanState};

use super::begin::LandingRequest;
use super::stored::{self, KnownAttributes};
use super::{LandingQueue, TRIES};
use crate::inner::PlansInner;
use crate::plan_worker::Snapshot;
use crate::{
    ApplyRequest, Attempt, Change, LandingOutcome, PlanError, UndoRequest, fold, invert, state, store,
};

impl LandingQueue {
    pub(crate) async fn apply(&mut self, order: ApplyRequest) -> Result<LandingOutcome, PlanError> {
        for _ in 0..TRIES {
            let mut snapshots = Vec::new();
            for plan in &order.plans {
                snapshots.push(self.snapshot(*plan).await?);
            }
            for (index, Snapshot { plan, .. }) in snapshots.iter().enumerate() {
                state::may_land(plan.id, &plan.record, Attempt::Apply)?;
                // A caller that reviewed a diff approved that diff, and nothing that came later.
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
                .flat_map(|snapshot| snapshot.plan.record.uncarried_notes(snapshot.plan.id))
                .collect();
            if let Some(mut outcome) = self.land(wanted).await? {
                if outcome.kind != OutcomeKind::Conflicted {
                    outcome.notes.extend(notes);
                }
                return Ok(outcome);
            }
        }
        Err(order
            .plans
            .first()
            .map_or(PlanError::NotTogether, |plan| PlanError::moving(*plan)))
    }

    /// Undoes an applied plan, or one of its changesets, by an inverse merge that keeps other people's edits.
    pub(crate) async fn undo(&mut self, order: UndoRequest) -> Result<LandingOutcome, PlanError> {
        for _ in 0..TRIES {
            let snapshot = self.snapshot(order.plan).await?;
            let actual = snapshot.plan.version.get();
            if order.seen.is_some_and(|seen| seen != actual) {
                let plan = order.plan;
                return Err(PlanError::Stale { plan, actual });
            }
            state::may_land(order.plan, &snapshot.plan.record, Attempt::Undo)?;
            // Also for a single changeset: the metadata of the files it deleted was recorded when the plan
            // was applied.
            let (all, attributes) = last_effects(&self.inner, &snapshot).await?;
            let done: Vec<Change> = match order.changeset {
                None => all,
                Some(id) => {
                    let changeset = store::changeset(&self.inner.log, order.plan, id).await?;
                    changeset
                        .changes
                        .into_iter()
                        .map(|recorded| recorded.change)
                        .collect()
                }
            };
            let wanted = LandingRequest {
                what: Attempt::Undo,
                by: Arc::clone(&order.by),
                run: order.run,
                commit: None,
                lists: vec![fold(&invert(&done))],
                snapshots: vec![snapshot],
                changeset: order.changeset,
                attributes,
            };
            if let Some(outcome) = self.land(wanted).await? {
                return Ok(outcome);
            }
        }
        Err(PlanError::moving(order.plan))
    }

    /// A plan with everything in its sandbox recorded. First finishes a landing that was interrupted because the log
    /// was unavailable: nothing else carries one out on this workspace.
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

    /// The changes that a plan wants. An undone plan wants what the undo removed, with all its metadata.
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

/// The effects of a plan's last landing as changes, and the metadata of the files it removed.
pub(super) async fn last_effects(
    inner: &PlansInner,
    snapshot: &Snapshot,
) -> Result<(Vec<Change>, KnownAttributes), PlanError> {
    let plan = &snapshot.plan;
    let landed = plan.record.landed.as_ref().ok_or(PlanError::WrongState {
        plan: plan.id,
        state: plan.record.state,
    })?;
    let landing = stored::read(&inner.log, &landed.landing).await?;
    let done = stored::effects(&inner.log, &landing).await?;
    let number = landed.number as usize;
    if number >= done.each.len() {
        return Ok((Vec::new(), KnownAttributes::new()));
    }
    Ok((done.each[number].iter().map(Change::from).collect(), done.had))
}
