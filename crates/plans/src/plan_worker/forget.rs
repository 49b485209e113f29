//! Forgetting a plan for good.

use std::collections::BTreeSet;

use eventlog::{BlobId, CommitError, StreamId, Version};

use super::PlanWorker;
use crate::streams::{self, CHANGESET_KIND};
use crate::{Actor, PlanError, state, store};

/// How many streams are removed in one commit, which has room for 1,024 things.
const TOGETHER: usize = 512;

/// What a plan that is forgotten leaves behind for others to look at.
#[derive(Debug, Default)]
pub(crate) struct ForgottenPlan {
    /// The contents that it named. Others may name them too.
    pub(crate) contents: BTreeSet<BlobId>,
    /// How many bytes its sandbox took.
    pub(crate) sandbox_bytes: u64,
}

impl PlanWorker {
    /// Forgets the plan, its changesets, its key and its sandbox. First of all it is discarded, so that nobody applies or
    /// undoes what is there in part; if the daemon ends in between, it can be forgotten again.
    pub(crate) async fn forget_plan(
        &mut self,
        by: Actor,
        seen: Option<u64>,
    ) -> Result<ForgottenPlan, PlanError> {
        self.forget();
        self.change(seen, |plan, record, now| state::forget(plan, record, &by, now))
            .await?;
        let sandbox_bytes = self.take_sandbox_away().await?;
        let plan = self.plan().await?;
        let log = &self.inner.log;
        let (mut contents, mut changesets) = (BTreeSet::new(), Vec::new());
        for stored in store::heads(log, CHANGESET_KIND, Some(&self.id.to_string())).await? {
            for recorded in store::recorded(log, &stored.stream).await? {
                contents.extend(recorded.change.contents());
            }
            changesets.push((stored.stream, stored.version));
        }
        for some in changesets.chunks(TOGETHER) {
            log.remove(some.to_vec()).await?;
        }
        let mut last = vec![(self.stream()?, plan.version)];
        if let Some(key) = &plan.record.facts.idempotency_key {
            last.extend(self.own_key(key).await?);
        }
        match log.remove(last).await {
            // Somebody has changed the plan meanwhile; it is discarded, so there is little that can have happened to it.
            Err(CommitError::Conflict { .. }) => Err(self.moving()),
            done => Ok(done?),
        }?;
        self.forget();
        Ok(ForgottenPlan {
            contents,
            sandbox_bytes,
        })
    }

    /// The stream of the key that the plan was opened with, unless another plan has it by now.
    async fn own_key(&self, key: &str) -> Result<Option<(StreamId, Version)>, PlanError> {
        let stream = streams::key_stream(key)?;
        let Some(stored) = self.inner.log.head(&stream).await? else {
            return Ok(None);
        };
        let named: String = streams::parse(&stream, &stored.head.body)?;
        Ok((named == self.id.to_string()).then_some((stream, stored.version)))
    }
}
