//! Commands in a sandbox: they are written down before they run, and what they changed is captured when they are gone.

use std::sync::Arc;

use kernel::ChangesetId;

use super::Desk;
use super::capture::Doing;
use crate::answers::Unapplied;
use crate::answers::{NewStay, Stay};
use crate::changeset::Changeset;
use crate::error::PlanError;
use crate::plan::{Actor, Plan, Running};
use crate::state;
use crate::store;

impl Desk {
    /// A command may run in the sandbox from now on.
    pub(crate) async fn enter(&mut self, new: NewStay) -> Result<Stay, PlanError> {
        let sandbox = self.sandbox().await?;
        let id = new_stay_id();
        let running = Running {
            stay: id.clone(),
            job: new.job,
            actor: new.actor,
            tool: new.tool,
            reason: new.reason,
            since: self.shared.time.now(),
        };
        self.change(None, |plan, record, now| {
            state::enter(plan, record, running.clone(), now)
        })
        .await?;
        Ok(Stay {
            id,
            plan: self.id,
            entrance: sandbox.entrance(),
        })
    }

    /// Nothing of a command runs any more.
    pub(crate) async fn leave(&mut self, stay: &str) -> Result<Option<Changeset>, PlanError> {
        let plan = self.plan().await?;
        let running = plan.record.running.iter().find(|running| running.stay == stay);
        let Some(running) = running.cloned() else {
            return Ok(None);
        };
        let captured = if plan.record.has_sandbox {
            self.sandbox().await?;
            let doing = Doing {
                actor: Arc::clone(&running.actor),
                tool: running.tool.clone(),
                reason: running.reason.clone(),
                job: running.job.clone(),
            };
            self.capture(&doing).await?
        } else {
            None
        };
        self.change(None, |_, record, now| Ok(state::leave(record, stay, now)))
            .await?;
        self.changeset_of(captured.map(|(id, _)| id)).await
    }

    async fn changeset_of(&self, id: Option<ChangesetId>) -> Result<Option<Changeset>, PlanError> {
        match id {
            None => Ok(None),
            Some(id) => store::changeset(&self.shared.log, self.id, id).await.map(Some),
        }
    }

    /// Everything that a command of an earlier life left running is over: the keeper of each has seen to that.
    pub(crate) async fn leave_all(&mut self) -> Result<usize, PlanError> {
        let plan = self.plan().await?;
        for running in &plan.record.running {
            self.leave(&running.stay).await?;
        }
        Ok(plan.record.running.len())
    }

    /// What is in the sandbox and was not recorded is somebody's who is not known; so the plan is whole before it is
    /// sealed or applied.
    pub(crate) async fn catch_up(&mut self) -> Result<(), PlanError> {
        let plan = self.plan().await?;
        if plan.record.has_sandbox && plan.record.running.is_empty() && plan.record.landing.is_none() {
            self.sandbox().await?;
            let doing = Doing {
                actor: Arc::from("unknown"),
                tool: "outside".to_owned(),
                reason: "found in the sandbox; no command of the plan was running".to_owned(),
                job: None,
            };
            self.capture(&doing).await?;
        }
        Ok(())
    }

    /// The work is done.
    pub(crate) async fn seal(&mut self, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        let plan = self.plan().await?;
        if plan.record.state == crate::plan::State::Open {
            self.catch_up().await?;
        }
        self.change(seen, |plan, record, now| state::seal(plan, record, &by, now))
            .await
    }

    /// The plan is given up.
    pub(crate) async fn discard(
        &mut self,
        by: Actor,
        seen: Option<u64>,
        work: Unapplied,
    ) -> Result<Plan, PlanError> {
        if work == Unapplied::Keep && self.plan().await?.record.state == crate::plan::State::Open {
            self.catch_up().await?;
        }
        let plan = self
            .change(seen, |plan, record, now| {
                state::discard(plan, record, &by, work, now)
            })
            .await?;
        // Nothing is lost with the sandbox of a plan that changed nothing, so its place is free at once.
        if plan.record.files == 0 && plan.record.left_out.is_empty() {
            if let Err(error) = self.take_sandbox_away().await {
                tracing::warn!(%error, plan = %self.id, "the sandbox of an empty plan stays for now");
            }
            return self.plan().await;
        }
        Ok(plan)
    }
}

/// Names a stay.
pub(crate) fn new_stay_id() -> String {
    kernel::RequestId::generate().to_string()
}
