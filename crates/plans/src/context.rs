//! A plan from the view of one actor.
//!
//! Starting a changeset and making it current is one step of the plan's worker, and so is finding the changeset of a change
//! and recording it. A handle names its changeset, so starting another one doesn't interfere.

use std::sync::Arc;

use protocol::{ChangesetId, PlanId};

use crate::inner::PlansInner;
use crate::plan_worker::RecordTo;
use crate::{Actor, Attribution, Change, PlanError, Recorded};

/// A plan from the view of one actor. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct PlanExecutionContext {
    pub(crate) inner: Arc<PlansInner>,
    pub(crate) plan: PlanId,
    pub(crate) actor: Actor,
}

/// An open changeset that changes are recorded in. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct ChangesetHandle {
    inner: Arc<PlansInner>,
    plan: PlanId,
    id: ChangesetId,
}

impl PlanExecutionContext {
    #[must_use]
    pub fn plan(&self) -> PlanId {
        self.plan
    }

    /// Starts a changeset and makes it the actor's current one. *Cancel safety*: dropped halfway, it may or may not
    /// be started.
    pub async fn start_changeset(&self, tool: &str, reason: &str) -> Result<ChangesetHandle, PlanError> {
        let new = Attribution {
            actor: Arc::clone(&self.actor),
            tool: tool.to_owned(),
            reason: reason.to_owned(),
            job: None,
        };
        let started = self
            .inner
            .at_plan(self.plan, move |worker| Box::pin(worker.start_changeset(new)));
        Ok(ChangesetHandle {
            id: started.await?,
            inner: Arc::clone(&self.inner),
            plan: self.plan,
        })
    }

    /// Records a change that was made in the actor's current changeset. Its contents must already be in the log.
    /// *Cancel safety*: dropped halfway, it may or may not be recorded.
    ///
    /// # Errors
    /// [`PlanError::NoActiveChangeset`] if the actor doesn't have one.
    pub async fn record_change(&self, change: Change) -> Result<Recorded, PlanError> {
        let to = RecordTo::Current(Arc::clone(&self.actor));
        record(&self.inner, self.plan, to, change).await
    }
}

impl ChangesetHandle {
    #[must_use]
    pub fn id(&self) -> ChangesetId {
        self.id
    }

    /// Records a change that was made. Its contents must already be in the log. *Cancel safety*: dropped halfway, it
    /// may or may not be recorded.
    ///
    /// # Errors
    /// [`PlanError::ChangesetClosed`] if the changeset is closed.
    pub async fn record(&self, change: Change) -> Result<Recorded, PlanError> {
        record(&self.inner, self.plan, RecordTo::Changeset(self.id), change).await
    }

    /// Closes the changeset: it accepts no more changes. *Cancel safety*: dropped halfway, it may or may not
    /// be closed.
    pub async fn close(&self) -> Result<(), PlanError> {
        let id = self.id;
        self.inner
            .at_plan(self.plan, move |worker| Box::pin(worker.close_changeset(id)))
            .await
    }
}

async fn record(
    inner: &Arc<PlansInner>,
    plan: PlanId,
    to: RecordTo,
    change: Change,
) -> Result<Recorded, PlanError> {
    let recorded = inner.at_plan(plan, move |worker| {
        Box::pin(async move {
            let (_, recorded) = worker.record(to, vec![change]).await?;
            recorded.into_iter().next().ok_or(PlanError::Closing)
        })
    });
    recorded.await
}
