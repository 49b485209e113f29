//! Writes to a sandbox through the service: carried out and recorded as they happen.

mod perform;

use std::sync::Arc;

use super::{Desk, RecordTo};
use crate::answers::{ChangeFiles, FilesChanged};
use crate::changeset::NewChangeset;
use crate::error::PlanError;
use crate::plan::Recorded;
use crate::shared::blocking;
use crate::state;

impl Desk {
    /// Carries writes out, one after the other, and records each before the next.
    pub(crate) async fn change_files(&mut self, order: ChangeFiles) -> Result<FilesChanged, PlanError> {
        let sandbox = self.sandbox().await?;
        let record = self.plan().await?.record;
        // Nothing is written that could not be recorded.
        state::may_work(self.id, &record)?;
        let changeset = match order
            .changeset
            .or_else(|| state::current_changeset(&record, &order.by))
        {
            Some(id) => id,
            None => {
                let new = NewChangeset {
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
            // What was done before it failed is recorded like everything else.
            let (done, failed) = (performed.changes, performed.failed);
            let mut failed = failed;
            if !done.is_empty() {
                match self.keep_contents(done).await {
                    Ok(done) => {
                        let (_, recorded) = self.record(RecordTo::Changeset(changeset), done).await?;
                        changes.extend(recorded);
                    }
                    // A command in the sandbox was faster. What is there now is recorded when that command ends.
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
}
