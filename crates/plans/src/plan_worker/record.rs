//! Changesets of a plan: starting, writing, closing.

use std::sync::Arc;

use eventlog::Entity;
use protocol::{ChangesetId, ChangesetState};

use super::{PlanWorker, TRIES, extent};
use crate::overlaps::Tell;
use crate::{Actor, Attribution, Change, ChangesetRecord, PlanError, Recorded, state, store};

/// How many changes go into one commit. Each refers to up to two contents, and a commit can hold 1,024 items.
const TOGETHER: usize = 256;

#[derive(Clone, Debug)]
pub(crate) enum RecordTo {
    /// To a given changeset, whatever others start.
    Changeset(ChangesetId),
    Current(Actor),
}

impl PlanWorker {
    /// Starts a changeset and makes it its actor's current one, in one step.
    pub(crate) async fn start_changeset(&mut self, new: Attribution) -> Result<ChangesetId, PlanError> {
        let id = ChangesetId::generate();
        for _ in 0..TRIES {
            let now = self.inner.time.now();
            let (plan, _) = self.loaded().await?;
            let (next, events) =
                state::start_changeset(plan.id, &plan.record, id, &new.actor, &new.reason, now)?;
            let record = ChangesetRecord {
                plan: plan.id,
                number: next.changesets,
                actor: Arc::clone(&new.actor),
                tool: new.tool.clone(),
                reason: new.reason.clone(),
                job: new.job.clone(),
                started_at: now,
                state: ChangesetState::Open,
                entries: 0,
            };
            let made = Entity::new(id, record).write(&[])?;
            if self.commit(next, &events, vec![made]).await? {
                return Ok(id);
            }
        }
        Err(PlanError::moving(self.id))
    }

    /// Records changes as one changeset, which is then closed.
    pub(super) async fn record_all(
        &mut self,
        new: Attribution,
        changes: Vec<Change>,
    ) -> Result<(ChangesetId, Vec<Recorded>), PlanError> {
        let id = self.start_changeset(new).await?;
        let recorded = self.record(RecordTo::Changeset(id), changes).await;
        self.close_changeset(id).await?;
        recorded
    }

    /// Records changes in one changeset, in this order. Their contents must be in the log.
    pub(crate) async fn record(
        &mut self,
        mut to: RecordTo,
        changes: Vec<Change>,
    ) -> Result<(ChangesetId, Vec<Recorded>), PlanError> {
        let mut recorded = Vec::with_capacity(changes.len());
        for some in changes.chunks(TOGETHER) {
            let (id, some) = self.record_some(&to, some).await?;
            recorded.extend(some);
            // Changes recorded together stay together, whatever is started in the meantime.
            to = RecordTo::Changeset(id);
        }
        self.publish(Tell::Both);
        Ok((self.changeset_for(&to).await?, recorded))
    }

    async fn changeset_for(&mut self, to: &RecordTo) -> Result<ChangesetId, PlanError> {
        let actor = match to {
            RecordTo::Changeset(id) => return Ok(*id),
            RecordTo::Current(actor) => actor,
        };
        if let Some(id) = state::current_changeset(&self.loaded().await?.0.record, actor) {
            return Ok(id);
        }
        // The worker's copy may be outdated.
        self.forget();
        let (plan, _) = self.loaded().await?;
        state::current_changeset(&plan.record, actor).ok_or(PlanError::NoActiveChangeset)
    }

    /// Records some changes. Their changeset is looked up again whenever the plan has changed, so that the lookup and
    /// the commit see the same version.
    async fn record_some(
        &mut self,
        to: &RecordTo,
        changes: &[Change],
    ) -> Result<(ChangesetId, Vec<Recorded>), PlanError> {
        for _ in 0..TRIES {
            let now = self.inner.time.now();
            let id = self.changeset_for(to).await?;
            let mut changeset = self.changeset(id).await?;
            if changeset.record.state == ChangesetState::Closed {
                match to {
                    RecordTo::Changeset(_) => return Err(PlanError::ChangesetClosed(id)),
                    // The worker's copy is outdated: it is no longer the current one.
                    RecordTo::Current(_) => {
                        self.forget();
                        continue;
                    }
                }
            }
            let (plan, net) = self.loaded().await?;
            let mut net = net.clone();
            net.extend(changes);
            let (count, actor) = (changes.len() as u64, Arc::clone(&changeset.record.actor));
            let (next, events) = state::record(plan.id, &plan.record, &actor, count, extent(&net)?, now)?;
            let others = plan.record.running.iter().map(|running| &running.actor);
            let mut also_running: Vec<Actor> = others.filter(|other| **other != actor).cloned().collect();
            also_running.dedup();
            let first = plan.record.entries + 1;
            let recorded: Vec<Recorded> = (first..)
                .zip(changes)
                .map(|(entry, change)| Recorded {
                    entry,
                    at: now,
                    change: change.clone(),
                    also_running: also_running.clone(),
                })
                .collect();
            changeset.record.entries += count;
            let write = changeset.write(&recorded)?;
            if self.commit(next, &events, vec![write]).await? {
                self.loaded().await?.1 = net;
                return Ok((id, recorded));
            }
        }
        Err(PlanError::moving(self.id))
    }

    pub(crate) async fn close_changeset(&mut self, id: ChangesetId) -> Result<(), PlanError> {
        for _ in 0..TRIES {
            let now = self.inner.time.now();
            let mut changeset = self.changeset(id).await?;
            if changeset.record.state == ChangesetState::Closed {
                return Ok(());
            }
            let (next, events) = state::close_changeset(&self.loaded().await?.0.record, id, now);
            changeset.record.state = ChangesetState::Closed;
            let write = changeset.write(&[])?;
            if self.commit(next, &events, vec![write]).await? {
                return Ok(());
            }
        }
        Err(PlanError::moving(self.id))
    }

    pub(super) async fn must_be_open(&mut self, id: ChangesetId) -> Result<(), PlanError> {
        match self.changeset(id).await?.record.state {
            ChangesetState::Open => Ok(()),
            ChangesetState::Closed => Err(PlanError::ChangesetClosed(id)),
        }
    }

    /// A changeset of this plan. If the plan no longer lists it as open, it is closed, whatever its head says:
    /// sealing and applying close all of them in one step.
    async fn changeset(&mut self, id: ChangesetId) -> Result<Entity<ChangesetRecord>, PlanError> {
        let mut changeset = store::changeset_head(&self.inner.log, self.id, id).await?;
        let (plan, _) = self.loaded().await?;
        if !plan.record.open_changesets.iter().any(|open| open.id == id) {
            changeset.record.state = ChangesetState::Closed;
        }
        Ok(changeset)
    }
}
