//! Taking an applied plan back, or one changeset of it: the inverse merge, which leaves everybody else's edits alone.

use std::sync::Arc;

use super::apply::{last_effects, moving};
use super::begin::LandingRequest;
use super::{LandingQueue, TRIES};
use crate::{Attempt, Change, LandingOutcome, PlanError, UndoRequest, fold, invert, state, store};

impl LandingQueue {
    pub(crate) async fn undo(&mut self, order: UndoRequest) -> Result<LandingOutcome, PlanError> {
        for _ in 0..TRIES {
            let snapshot = self.snapshot(order.plan).await?;
            let actual = snapshot.plan.version.get();
            if order.seen.is_some_and(|seen| seen != actual) {
                let plan = order.plan;
                return Err(PlanError::Stale { plan, actual });
            }
            state::may_land(order.plan, &snapshot.plan.record, Attempt::Undo)?;
            // Also for one changeset: what the files had that it deleted was seen when the plan was applied.
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
        Err(moving(Some(order.plan)))
    }
}
