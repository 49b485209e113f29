//! Changesets of a plan: started, written, closed.

use std::sync::Arc;

use eventlog::{CommitError, Version, Write};
use protocol::{ChangesetId, ChangesetState};

use super::{PlanWorker, TRIES, extent};
use crate::{Actor, Change, ChangesetRecord, NewChangeset, PlanError, Recorded, state, streams};

/// How many changes go into one commit. Each refers to up to two contents, and a commit has room for 1,024 things.
const TOGETHER: usize = 256;

/// Where a change goes.
#[derive(Clone, Debug)]
pub(crate) enum RecordTo {
    Changeset(ChangesetId),
    Current(Actor),
}

impl PlanWorker {
    /// Starts a changeset: it is published and its actor's current one in one step.
    pub(crate) async fn start_changeset(&mut self, new: NewChangeset) -> Result<ChangesetId, PlanError> {
        let id = ChangesetId::generate();
        let stream = streams::changeset_stream(id)?;
        for _ in 0..TRIES {
            let (plan, now) = (self.id, self.inner.time.now());
            let loaded = self.loaded().await?;
            let (next, events) =
                state::start_changeset(plan, &loaded.record, id, (&new.actor, &new.reason), now)?;
            let record = ChangesetRecord {
                plan,
                number: next.changesets,
                actor: Arc::clone(&new.actor),
                tool: new.tool.clone(),
                reason: new.reason.clone(),
                job: new.job.clone(),
                started_at: now,
                state: ChangesetState::Open,
                entries: 0,
            };
            let made = Write {
                stream: stream.clone(),
                expected: Version::NONE,
                head: Some(streams::changeset_head(&record)?),
                events: Vec::new(),
            };
            match self.commit(next, events, vec![made]).await {
                Ok(()) => return Ok(id),
                Err(PlanError::Commit(CommitError::Conflict { .. })) => self.forget(),
                Err(error) => return Err(error),
            }
        }
        Err(self.moving())
    }

    /// Records changes, whose contents the log has. They go to one changeset, in this order.
    pub(crate) async fn record(
        &mut self,
        to: RecordTo,
        changes: Vec<Change>,
    ) -> Result<(ChangesetId, Vec<Recorded>), PlanError> {
        let mut to = to;
        let mut recorded = Vec::with_capacity(changes.len());
        for some in changes.chunks(TOGETHER) {
            let (id, some) = self.record_some(&to, some).await?;
            recorded.extend(some);
            // What is recorded together stays together, whatever is started meanwhile.
            to = RecordTo::Changeset(id);
        }
        self.publish();
        Ok((self.goes_to(&to).await?, recorded))
    }

    /// The changeset that a change goes to, as the worker knows it.
    async fn goes_to(&mut self, to: &RecordTo) -> Result<ChangesetId, PlanError> {
        let actor = match to {
            RecordTo::Changeset(id) => return Ok(*id),
            RecordTo::Current(actor) => actor,
        };
        if let Some(id) = state::current_changeset(&self.loaded().await?.record, actor) {
            return Ok(id);
        }
        // It may be the worker that is behind.
        self.forget();
        let loaded = self.loaded().await?;
        state::current_changeset(&loaded.record, actor).ok_or(PlanError::NoActiveChangeset)
    }

    /// Records some changes. Their changeset is looked up again whenever the plan has moved, so that the commit that
    /// records them is the one that finds it.
    async fn record_some(
        &mut self,
        to: &RecordTo,
        changes: &[Change],
    ) -> Result<(ChangesetId, Vec<Recorded>), PlanError> {
        for _ in 0..TRIES {
            let (plan, now) = (self.id, self.inner.time.now());
            let id = self.goes_to(to).await?;
            let stream = streams::changeset_stream(id)?;
            let (version, mut changeset) = self.changeset(id).await?;
            if changeset.state == ChangesetState::Closed {
                match to {
                    RecordTo::Changeset(_) => return Err(PlanError::ChangesetClosed(id)),
                    // The worker is behind: it is no longer the current one.
                    RecordTo::Current(_) => {
                        self.forget();
                        continue;
                    }
                }
            }
            let loaded = self.loaded().await?;
            let mut net = loaded.net.clone();
            net.extend(changes);
            let count = changes.len() as u64;
            let told = (count, extent(&net)?);
            let (next, events) = state::record(plan, &loaded.record, &changeset.actor, told, now)?;
            let others = loaded.record.running.iter().map(|running| &running.actor);
            let mut also_running: Vec<Actor> = others
                .filter(|actor| **actor != changeset.actor)
                .cloned()
                .collect();
            also_running.dedup();
            let first = loaded.record.entries + 1;
            let recorded: Vec<Recorded> = (first..)
                .zip(changes)
                .map(|(entry, change)| Recorded {
                    entry,
                    at: now,
                    change: change.clone(),
                    also_running: also_running.clone(),
                })
                .collect();
            changeset.entries += count;
            let write = Write {
                stream,
                expected: version,
                head: Some(streams::changeset_head(&changeset)?),
                events: recorded
                    .iter()
                    .map(streams::change_event)
                    .collect::<Result<_, _>>()?,
            };
            match self.commit(next, events, vec![write]).await {
                Ok(()) => {
                    if let Some(loaded) = self.loaded.as_mut() {
                        loaded.net = net;
                    }
                    return Ok((id, recorded));
                }
                Err(PlanError::Commit(CommitError::Conflict { .. })) => self.forget(),
                Err(error) => return Err(error),
            }
        }
        Err(self.moving())
    }

    pub(crate) async fn close_changeset(&mut self, id: ChangesetId) -> Result<(), PlanError> {
        let stream = streams::changeset_stream(id)?;
        for _ in 0..TRIES {
            let now = self.inner.time.now();
            let (version, mut changeset) = self.changeset(id).await?;
            if changeset.state == ChangesetState::Closed {
                return Ok(());
            }
            let loaded = self.loaded().await?;
            let (next, events) = state::close_changeset(&loaded.record, id, now);
            changeset.state = ChangesetState::Closed;
            let write = Write {
                stream: stream.clone(),
                expected: version,
                head: Some(streams::changeset_head(&changeset)?),
                events: Vec::new(),
            };
            match self.commit(next, events, vec![write]).await {
                Ok(()) => return Ok(()),
                Err(PlanError::Commit(CommitError::Conflict { .. })) => self.forget(),
                Err(error) => return Err(error),
            }
        }
        Err(self.moving())
    }

    pub(super) async fn must_be_open(&mut self, id: ChangesetId) -> Result<(), PlanError> {
        match self.changeset(id).await?.1.state {
            ChangesetState::Open => Ok(()),
            ChangesetState::Closed => Err(PlanError::ChangesetClosed(id)),
        }
    }

    /// A changeset of this plan as it is now. One that the plan no longer has open is closed, whatever its head says:
    /// sealing and applying close all of them in one step.
    async fn changeset(&mut self, id: ChangesetId) -> Result<(Version, ChangesetRecord), PlanError> {
        let stream = streams::changeset_stream(id)?;
        let stored = self
            .inner
            .log
            .head(&stream)
            .await?
            .ok_or(PlanError::ChangesetNotFound(id))?;
        let mut record: ChangesetRecord = streams::parse(&stream, &stored.head.body)?;
        if record.plan != self.id {
            return Err(PlanError::ChangesetNotFound(id));
        }
        let is_open = self
            .loaded()
            .await?
            .record
            .open_changesets
            .iter()
            .any(|open| open.id == id);
        if !is_open {
            record.state = ChangesetState::Closed;
        }
        Ok((stored.version, record))
    }
}
