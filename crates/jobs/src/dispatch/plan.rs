//! The next commit: pending changes, and claims for free workers.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use eventlog::{Commit, UnixMs, Write};
use protocol::{JobId, JobIfInterrupted, JobState};

use super::{ClaimGate, Dispatcher, InFlightCommit, PendingChange};
use crate::{
    job::{Job, Pool, Record, State},
    queue::Entry,
    state::{self, Change, Refused, Step},
};

/// How many changes go into one commit. Each is a write and a few events, and there may be lanes; together they
/// stay far below the limit of the log.
const CHANGES_AT_ONCE: usize = 128;
/// How many claims go into one commit, for the same reason.
pub(super) const CLAIMS_AT_ONCE: usize = 128;

/// What a commit is about.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
    /// The lanes that it writes, and the jobs running in them afterwards.
    pub(super) lanes: Vec<(Arc<str>, BTreeSet<String>)>,
    claims: usize,
}

/// One job in a commit.
pub(super) struct Item {
    pub(super) job: Job,
    /// The job once the commit is made.
    pub(super) next: Record,
    pub(super) kind: ItemKind,
}

pub(super) enum ItemKind {
    Claim(Entry),
    Change(Change),
}

impl Batch {
    /// Whether it changes this job in any way.
    pub(super) fn concerns(&self, id: JobId) -> bool {
        self.items.iter().any(|item| item.job.id == id)
    }

    pub(super) fn claims(&self, id: JobId) -> bool {
        let is_claim = |item: &Item| item.job.id == id && matches!(item.kind, ItemKind::Claim(_));
        self.items.iter().any(is_claim)
    }

    /// How many jobs it claims.
    pub(super) fn claim_count(&self) -> usize {
        self.claims
    }
}

/// The writes of a commit that is being planned.
#[derive(Default)]
struct Draft {
    batch: Batch,
    writes: Vec<Write>,
    lanes: HashMap<Arc<str>, BTreeSet<String>>,
}

impl Dispatcher {
    /// The next commit, in flight; `None` if there is nothing to do.
    pub(super) fn plan(&mut self) -> Option<InFlightCommit> {
        let mut draft = Draft::default();
        self.plan_changes(&mut draft);
        self.plan_claims(&mut draft);
        if draft.writes.is_empty() {
            return None;
        }
        let Draft {
            mut batch,
            mut writes,
            lanes,
        } = draft;
        for (name, running) in lanes {
            match self.lanes.get(&name).write(&name, running.clone()) {
                Ok(write) => {
                    writes.push(write);
                    batch.lanes.push((name, running));
                }
                Err(error) => tracing::error!(%error, lane = %name, "could not encode a lane"),
            }
        }
        let commit = self.parts.identity.guard(Commit::all(writes));
        let log = self.parts.log.clone();
        let answer = Box::pin(async move { log.commit(commit).await });
        Some(InFlightCommit { batch, answer })
    }

    fn plan_changes(&mut self, draft: &mut Draft) {
        while draft.batch.items.len() < CHANGES_AT_ONCE {
            // Two changes of one job go into two commits: the second one is decided on the result of the first.
            let next = self
                .todo
                .front()
                .is_some_and(|todo| !draft.batch.concerns(todo.job.id));
            let Some(PendingChange { job, change }) = next.then(|| self.todo.pop_front()).flatten() else {
                return;
            };
            match state::apply(&job.record, change.clone()) {
                Ok(step) => self.add(draft, job, step, ItemKind::Change(change)),
                Err(refused) => self.refused(&job, &change, refused),
            }
        }
    }

    fn plan_claims(&mut self, draft: &mut Draft) {
        if !self.can_claim() {
            return;
        }
        let now = self.parts.wall.now();
        for pool in Pool::ALL {
            self.plan_claims_of(pool, now, draft);
        }
    }

    fn plan_claims_of(&mut self, pool: Pool, now: UnixMs, draft: &mut Draft) {
        let worker = self.parts.identity.worker();
        let mut claims = 0;
        while draft.batch.claims < self.claims_at_once {
            let Some(first) = self.queue.first(pool, now) else {
                return;
            };
            if draft.batch.concerns(first.id) {
                // Claimed in the next commit, as with changes: the job with the pending change was queued again
                // in the meantime.
                return;
            }
            if let Some(lane) = first.lane.clone() {
                // The queue's count is a guess while a commit is in flight. This is what will be written.
                let running = draft
                    .lanes
                    .get(&lane.name)
                    .map_or_else(|| self.lanes.get(&lane.name).running.len(), BTreeSet::len);
                if running >= usize::from(lane.limit.get()) {
                    let running = u32::try_from(running).unwrap_or(u32::MAX);
                    self.queue.lane_set(&lane.name, running);
                    continue;
                }
            }
            let is_repeatable = first.if_interrupted == JobIfInterrupted::Repeat;
            if !self.has_room(pool, claims, is_repeatable) {
                return;
            }
            let Some(entry) = self.queue.take(pool, now) else {
                return;
            };
            let Some(job) = self.queued.remove(&entry.id) else {
                self.put_back(&entry);
                continue;
            };
            let claim = Change::Claim {
                worker: worker.clone(),
                now,
            };
            match state::apply(&job.record, claim.clone()) {
                Ok(step) => {
                    draft.batch.claims += 1;
                    claims += 1;
                    self.add(draft, *job, step, ItemKind::Claim(entry));
                }
                Err(refused) => {
                    self.put_back(&entry);
                    self.refused(&job, &claim, refused);
                }
            }
        }
    }

    /// Puts an entry back that was taken from the queue and doesn't run.
    fn put_back(&mut self, entry: &Entry) {
        if let Some(lane) = &entry.lane {
            self.queue.lane_freed(&lane.name);
        }
    }

    /// Whether a job could be claimed now, given a lease.
    pub(super) fn wants_claims(&mut self) -> bool {
        let now = self.parts.wall.now();
        let mut pools = Pool::ALL.into_iter();
        self.claim_gate == ClaimGate::Open
            && pools
                .any(|pool| self.executing[pool] < self.limit(pool) && self.queue.first(pool, now).is_some())
    }

    fn can_claim(&self) -> bool {
        self.claim_gate == ClaimGate::Open
            && self
                .parts
                .identity
                .can_claim(self.parts.lease, self.parts.wall.clock().now())
    }

    /// Whether one more job may be claimed: for a free worker or, if it may be repeated, ahead.
    fn has_room(&self, pool: Pool, claims: usize, is_repeatable: bool) -> bool {
        let waiting = self.ahead[pool].len() + claims;
        if self.executing[pool] + waiting < self.limit(pool) {
            return true;
        }
        pool == Pool::Workers && is_repeatable && waiting < self.pace.ahead(self.parts.max_workers)
    }

    fn add(&mut self, draft: &mut Draft, job: Job, step: Step, kind: ItemKind) {
        match job.write_record(&step.record, &step.happenings) {
            Ok(write) => draft.writes.push(write),
            // Its payload could be stored, so this is a bug. Leave the job unchanged.
            Err(error) => return tracing::error!(%error, job = %job.id, "could not encode a change of a job"),
        }
        if let Some(lane) = &job.record.facts.lane {
            let was = matches!(job.record.state, State::Running { .. });
            let is = matches!(step.record.state, State::Running { .. });
            if was != is {
                let lanes = &self.lanes;
                let running = draft
                    .lanes
                    .entry(Arc::clone(&lane.name))
                    .or_insert_with(|| lanes.get(&lane.name).running);
                if is {
                    running.insert(job.id.to_string());
                } else {
                    running.remove(&job.id.to_string());
                }
            }
        }
        draft.batch.items.push(Item {
            job,
            next: step.record,
            kind,
        });
    }

    /// Handles a change that the current state of the job doesn't allow.
    fn refused(&mut self, job: &Job, change: &Change, refused: Refused) {
        match change {
            Change::Finish { .. } | Change::Release { .. } => {
                self.counts.fenced += 1;
                self.running.remove(&job.id);
                tracing::warn!(job = %job.id, ?refused, "the end of an attempt was refused because it came too late");
            }
            Change::Claim { .. } => self.counts.lost_claims += 1,
            _ => tracing::debug!(job = %job.id, ?refused, "a job has changed in the meantime"),
        }
        if job.record.state.is_terminal() {
            self.ended(job.id, job.record.state.name());
        } else if job.record.state.name() == JobState::Queued && !matches!(change, Change::Claim { .. }) {
            // Another daemon has queued it again.
            self.add_if_newer(job.clone());
        }
    }
}
