//! Forgetting a plan for good.

use std::collections::BTreeSet;

use eventlog::{BlobId, Entity, EntityRecord};

use super::PlanWorker;
use crate::streams::{KeyRecord, remove_unchanged};
use crate::{Actor, ChangesetRecord, PlanError, state, store};

/// How many streams are removed in one commit, which can hold 1,024 items.
const TOGETHER: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct ForgottenPlan {
    /// The contents that it referred to. Others may refer to them too.
    pub(crate) contents: BTreeSet<BlobId>,
    pub(crate) sandbox_bytes: u64,
}

impl PlanWorker {
    /// Forgets the plan, its changesets, its key and its sandbox. It is discarded first, so that a partially forgotten
    /// plan can't be applied or undone; if the daemon stops in between, it can be forgotten again.
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
            // Another plan may have the key by now.
            let key = Entity::<KeyRecord>::read(log, KeyRecord::id_of(key)).await?;
            let own = key.filter(|key| key.record.0 == self.id);
            last.extend(own.map(|key| key.at()).transpose()?);
        }
        // If someone has changed the plan in the meantime, it is at least discarded, so little can have
        // happened to it.
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
