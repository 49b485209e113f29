//! Commands in a sandbox: each is recorded before it runs, and its changes are captured when it has ended.

use std::sync::Arc;

use eventlog::{CommitError, LogError};
use protocol::{ChangesetId, PlanState};

use super::PlanWorker;
use crate::inner::with_causes;
use crate::{Actor, Attribution, Changeset, CommandRun, Plan, PlanError, Running, Unapplied, state, store};

impl PlanWorker {
    pub(crate) async fn begin_command(&mut self, new: Attribution) -> Result<CommandRun, PlanError> {
        self.end_finished_commands().await?;
        self.close_if_outdated().await?;
        let sandbox = self.sandbox().await?;
        let id = new_run_id();
        let running = Running {
            id: id.clone(),
            job: new.job,
            actor: new.actor,
            tool: new.tool,
            reason: new.reason,
            since: self.inner.time.now(),
        };
        // Put it on the list first, so that no one who sees it in the log thinks it has ended.
        self.inner.command_runs.begin(&id);
        let entered = self
            .change(None, |plan, record, now| {
                state::command_started(plan, record, running.clone(), now)
            })
            .await;
        if let Err(error) = entered {
            self.inner.command_runs.end(&id);
            return Err(error);
        }
        Ok(CommandRun {
            id,
            plan: self.id,
            entrance: sandbox.entrance(),
        })
    }

    /// Called when none of a command's processes are running. If its changes can't be recorded, that is an error, and
    /// the plan says so; the command has ended anyway.
    pub(crate) async fn end_command(&mut self, run_id: &str) -> Result<Option<Changeset>, PlanError> {
        let left = self.write_end(run_id).await;
        match &left {
            Ok(Left::Recorded(_) | Left::NotRecorded(_)) => self.inner.command_runs.end(run_id),
            Err(error) => self.inner.command_runs.end_unwritten(run_id, with_causes(error)),
        }
        match left? {
            Left::Recorded(changeset) => self.changeset_of(changeset).await,
            Left::NotRecorded(error) => Err(error),
        }
    }

    /// Captures a command's changes, and records that it has ended. If that can't be recorded, the log still lists it
    /// as running, and the next request tries again.
    async fn write_end(&mut self, run_id: &str) -> Result<Left, PlanError> {
        let plan = self.plan().await?;
        let running = plan.record.running.iter().find(|running| running.id == run_id);
        let Some(running) = running.cloned() else {
            return Ok(Left::Recorded(None));
        };
        let captured = if plan.record.has_sandbox {
            self.capture_of(&running).await
        } else {
            Ok(None)
        };
        let captured = match captured {
            // The next daemon records it, or the next request when the log is back.
            Err(error) if matches!(error, PlanError::Closing) || error.is_outage() => return Err(error),
            captured => captured,
        };
        let why = captured.as_ref().map(drop).map_err(|error| with_causes(error));
        self.change(None, |_, record, now| {
            Ok(state::command_ended(record, run_id, why.clone(), now))
        })
        .await?;
        Ok(match captured {
            Ok(changeset) => Left::Recorded(changeset),
            Err(error) => {
                tracing::warn!(plan = %self.id, error = with_causes(&error), "what a command changed is not recorded");
                Left::NotRecorded(error)
            }
        })
    }

    async fn capture_of(&mut self, running: &Running) -> Result<Option<ChangesetId>, PlanError> {
        self.sandbox().await?;
        Ok(self.capture(&running.into()).await?.map(|(id, _)| id))
    }

    /// Closes out commands that have ended but that the log lists as running: from an earlier daemon, or because the
    /// log was unavailable when they ended. Returns how many there were.
    pub(crate) async fn end_finished_commands(&mut self) -> Result<usize, PlanError> {
        let plan = self.plan().await?;
        if plan.record.landing.is_some() {
            return Ok(0);
        }
        let command_runs = plan.record.running.into_iter().map(|running| running.id);
        let over: Vec<String> = command_runs
            .filter(|run_id| !self.inner.command_runs.is_inside(run_id))
            .collect();
        for run_id in &over {
            self.write_end(run_id).await?;
            self.inner.command_runs.end(run_id);
        }
        Ok(over.len())
    }

    async fn changeset_of(&self, id: Option<ChangesetId>) -> Result<Option<Changeset>, PlanError> {
        match id {
            None => Ok(None),
            Some(id) => store::changeset(&self.inner.log, self.id, id).await.map(Some),
        }
    }

    /// Records everything in the sandbox that isn't recorded yet, even if we don't know who did it, so that the plan
    /// is complete before it is sealed or applied.
    pub(crate) async fn catch_up(&mut self) -> Result<(), PlanError> {
        self.end_finished_commands().await?;
        let plan = self.plan().await?;
        let record = plan.record.clone();
        if record.has_sandbox && record.running.is_empty() && record.landing.is_none() {
            // A sealed plan's changes are recorded. If its sandbox is gone, there is nothing to add.
            if record.state == PlanState::Sealed && !self.sandbox_is_there(&plan).await? {
                return Ok(());
            }
            self.sandbox().await?;
            let by = match record.unrecorded {
                Some(failed) => failed.into(),
                None => {
                    let reason = "found in the sandbox; no command of the plan was running";
                    Attribution::unknown("outside", reason)
                }
            };
            self.capture(&by).await?;
            self.change(None, |_, record, now| Ok(state::looked_at(record, Ok(()), now)))
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn seal(&mut self, by: Actor, seen: Option<u64>) -> Result<Plan, PlanError> {
        let plan = self.plan().await?;
        if plan.record.state == PlanState::Open {
            self.catch_up().await?;
        }
        self.change(seen, |plan, record, now| state::seal(plan, record, &by, now))
            .await
    }

    pub(crate) async fn discard(
        &mut self,
        by: Actor,
        seen: Option<u64>,
        work: Unapplied,
    ) -> Result<Plan, PlanError> {
        if work == Unapplied::Keep && self.plan().await?.record.state == PlanState::Open {
            self.catch_up().await?;
        }
        let has_sandbox = self.plan().await?.record.has_sandbox;
        let plan = match self.give_up(&by, seen, work).await {
            // This very sandbox may be what fills the disk.
            Err(PlanError::Commit(CommitError::Log(LogError::DiskFull))) if work == Unapplied::GiveUp => {
                self.empty_sandbox().await?;
                self.give_up(&by, seen, work).await?
            }
            given_up => given_up?,
        };
        if has_sandbox && !plan.record.has_sandbox {
            match work {
                Unapplied::Keep => self.free_place(&plan).await,
                // It may have any number of files, so don't wait until they are removed.
                Unapplied::GiveUp => {
                    let given_up = plan.clone();
                    self.inner.enqueue_at_plan(self.id, |worker| {
                        Box::pin(async move { worker.free_place(&given_up).await })
                    });
                }
            }
        }
        Ok(plan)
    }

    /// Removes the files of a sandbox that the log no longer refers to.
    async fn free_place(&mut self, plan: &Plan) {
        if let Err(error) = self.remove_sandbox(plan).await {
            tracing::warn!(%error, plan = %self.id, "the sandbox of a discarded plan stays for now");
        }
    }

    async fn give_up(&mut self, by: &Actor, seen: Option<u64>, work: Unapplied) -> Result<Plan, PlanError> {
        let inner = Arc::clone(&self.inner);
        self.change(seen, |plan, record, now| {
            let mut record = record.clone();
            if work == Unapplied::GiveUp {
                // Their changes are no longer needed.
                record
                    .running
                    .retain(|running| inner.command_runs.is_inside(&running.id));
            }
            let (mut next, events) = state::discard(plan, &record, by, work, now)?;
            // Nothing is lost with the sandbox of a plan without changes, so it is removed at once. That is
            // recorded first: a partially removed sandbox is never opened.
            if next.files == 0 && next.left_out.is_empty() && next.uncarried.is_empty() {
                next.has_sandbox = false;
            }
            Ok((next, events))
        })
        .await
    }
}

enum Left {
    Recorded(Option<ChangesetId>),
    NotRecorded(PlanError),
}

pub(crate) fn new_run_id() -> String {
    protocol::RequestId::generate().to_string()
}
