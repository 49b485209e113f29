//! Writes to a sandbox through the service: carried out and recorded as they happen.

mod perform;

use std::sync::Arc;

use eventlog::CommitError;
use protocol::ChangesetId;

use super::{PlanWorker, RecordTo};
use crate::inner::blocking;
use crate::{Attribution, Change, ChangeFiles, FilesChanged, Known, PlanError, Recorded, state};

impl PlanWorker {
    /// Performs writes one after the other, and records each before the next.
    pub(crate) async fn change_files(&mut self, order: ChangeFiles) -> Result<FilesChanged, PlanError> {
        let sandbox = self.sandbox().await?;
        let record = self.plan().await?.record;
        // Nothing is written that couldn't be recorded.
        state::may_work(self.id, &record)?;
        let changeset = match order
            .changeset
            .or_else(|| state::current_changeset(&record, &order.by))
        {
            Some(id) => id,
            None => {
                let new = Attribution {
                    actor: Arc::clone(&order.by),
                    tool: order.tool.clone(),
                    reason: order.reason.clone(),
                    job: None,
                };
                self.start_changeset(new).await?
            }
        };
        self.must_be_open(changeset).await?;
        let mut changes: Vec<Recorded> = Vec::new();
        for operation in order.operations {
            let sandbox = Arc::clone(&sandbox);
            let performed = blocking(move || perform::perform(sandbox.tree(), operation)).await?;
            // What was done before the failure is recorded like everything else.
            let (done, failed) = (performed.changes, performed.failed);
            let mut failed = failed;
            if !done.is_empty() {
                match self.keep_contents(done).await {
                    Ok(done) => changes.extend(self.record_done(changeset, done).await?),
                    // A command in the sandbox was faster. The current content is recorded when that command
                    // ends.
                    Err(error @ PlanError::FileRefused { .. }) => failed = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = failed {
                return Ok(FilesChanged {
                    changeset,
                    changes,
                    stopped_by: Some(error),
                });
            }
        }
        Ok(FilesChanged {
            changeset,
            changes,
            stopped_by: None,
        })
    }

    /// Records what was done. What was there before may come from a command that is still running: that content isn't
    /// stored yet, and doesn't have to be. The change then starts from what was recorded last.
    async fn record_done(
        &mut self,
        changeset: ChangesetId,
        done: Vec<Change>,
    ) -> Result<Vec<Recorded>, PlanError> {
        match self.record(RecordTo::Changeset(changeset), done.clone()).await {
            Err(PlanError::Commit(CommitError::BlobMissing(_))) => {}
            recorded => return Ok(recorded?.1),
        }
        let known = self.known().await?;
        let done = self.keep_contents(since_known(done, &known)).await?;
        if done.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.record(RecordTo::Changeset(changeset), done).await?.1)
    }
}

fn since_known(mut changes: Vec<Change>, known: &Known) -> Vec<Change> {
    for change in &mut changes {
        change.before = known.get(change.from.as_ref().unwrap_or(&change.path)).cloned();
        if change.before.is_none() {
            change.from = None;
        }
    }
    changes.retain(|change| change.before != change.after || change.from.is_some());
    changes
}
