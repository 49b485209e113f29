//! Forgetting a plan for good.

use std::collections::BTreeSet;

use eventlog::{BlobId, Entity, EntityRecord};

use super::PlanWorker;
use crate::streams::{KeyRecord, remove_unchanged};
use crate::{Actor, ChangesetRecord, PlanError, state, store};

/// How many streams are removed in one commit, which has room for 1,024 things.
const TOGETHER: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct ForgottenPlan {
    /// The contents that it named. Others may name them too.
    pub(crate) contents: BTreeSet<BlobId>,
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
        for stored in log
            .all_heads(ChangesetRecord::KIND, Some(&self.id.to_string()))
            .await?
        {
            if let Some(id) = Entity::<ChangesetRecord>::id_of(&stored.stream) {
                for recorded in store::recorded(log, id).await? {
                    contents.extend(recorded.change.contents());
                }
            }
            changesets.push((stored.stream, stored.version));
        }
        for some in changesets.chunks(TOGETHER) {
            log.remove(some.to_vec()).await?;
        }
        let mut last = vec![plan.at()?];
        if let Some(key) = &plan.record.facts.idempotency_key {
            // Another plan may have it by now.
            let key = Entity::<KeyRecord>::read(log, KeyRecord::id_of(key)).await?;
            let own = key.filter(|key| key.record.0 == self.id);
            last.extend(own.map(|key| key.at()).transpose()?);
        }
        // If somebody has changed the plan meanwhile, it is only discarded, so little can have happened to it.
        if !remove_unchanged(log, last).await? {
            return Err(PlanError::moving(self.id));
        }
        self.forget();
        Ok(ForgottenPlan {
            contents,
            sandbox_bytes,
        })
    }
}
