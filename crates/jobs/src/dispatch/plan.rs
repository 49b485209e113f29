//! The next commit: changes that are to be made, and claims for the workers that are free.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use eventlog::{Commit, UnixMs, Write};
use protocol::{JobId, JobIfInterrupted, JobState};

use super::{Dispatcher, Door, Flight, Todo};
use crate::{
    history,
    job::{Job, Pool, Record, State},
    queue::Entry,
    state::{self, Change, Refused, Step},
};

/// How many changes go into one commit. Each is a write and a few events, and there may be lanes; together they stay
/// far below what the log takes at once.
const CHANGES_AT_ONCE: usize = 128;
/// How many claims go into one commit, for the same reason.
pub(super) const CLAIMS_AT_ONCE: usize = 128;

/// What a commit is about.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) items: Vec<Item>,
    /// The lanes that it writes, and who runs in them afterwards.
    pub(super) lanes: Vec<(Arc<str>, BTreeSet<String>)>,
    claims: usize,
}

/// One job in a commit.
pub(super) struct Item {
    /// The job as it was seen.
    pub(super) job: Job,
    /// What it is once the commit is made.
    pub(super) next: Record,
    pub(super) kind: ItemKind,
}

pub(super) enum ItemKind {
    Claim(Entry),
    Change(Change),
}

impl Batch {
    /// Whether it changes that job in any way.
    pub(super) fn concerns(&self, id: JobId) -> bool {
        self.items.iter().any(|item| item.job.id == id)
    }

    /// Whether it claims that job.
    pub(super) fn claims(&self, id: JobId) -> bool {
        let is_claim = |item: &Item| item.job.id == id && matches!(item.kind, ItemKind::Claim(_));
        self.items.iter().any(is_claim)
    }

    /// How many jobs it claims.
    pub(super) fn claim_count(&self) -> usize {
        self.claims
    }
}

/// The writes of a commit while it is planned.
#[derive(Default)]
struct Draft {
    batch: Batch,
    writes: Vec<Write>,
    lanes: HashMap<Arc<str>, BTreeSet<String>>,
}

impl Dispatcher {
    /// The next commit, on its way; nothing if there is nothing to be done.
    pub(super) fn plan(&mut self) -> Option<Flight> {
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
                Err(error) => tracing::error!(%error, lane = %name, "a lane cannot be stored"),
            }
        }
        let commit = self.parts.identity.guard(Commit::all(writes));
        let log = self.parts.log.clone();
        let answer = Box::pin(async move { log.commit(commit).await });
        Some(Flight { batch, answer })
    }

    fn plan_changes(&mut self, draft: &mut Draft) {
        while draft.batch.items.len() < CHANGES_AT_ONCE {
            // Two changes of one job go into two commits: the second one is decided on what the first one has made.
            let next = self
                .todo
                .front()
                .is_some_and(|todo| !draft.batch.concerns(todo.job.id));
            let Some(Todo { job, change }) = next.then(|| self.todo.pop_front()).flatten() else {
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
                // Claimed in the next commit, as with changes: what is to be changed here was queued again meanwhile.
                return;
            }
            if let Some(lane) = first.lane.clone() {
                // What the queue counts is a guess while a commit is on its way. This is what will be written.
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
                self.not_taken(&entry);
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
                    self.not_taken(&entry);
                    self.refused(&job, &claim, refused);
                }
            }
        }
    }

    /// What was taken out of the queue does not run.
    fn not_taken(&mut self, entry: &Entry) {
        if let Some(lane) = &entry.lane {
            self.queue.lane_freed(&lane.name);
        }
    }

    /// Whether there is anything that could be claimed now, if only there were a lease.
    pub(super) fn wants_claims(&mut self) -> bool {
        let now = self.parts.wall.now();
        let mut pools = Pool::ALL.into_iter();
        self.door == Door::Open
            && pools
                .any(|pool| self.executing[pool] < self.limit(pool) && self.queue.first(pool, now).is_some())
    }

    fn can_claim(&self) -> bool {
        self.door == Door::Open
            && self
                .parts
                .identity
                .can_claim(self.parts.lease, self.parts.wall.clock().now())
    }

    /// Whether one more may be claimed: for a worker that is free or, if it does no harm to do it again, before its
    /// turn.
    fn has_room(&self, pool: Pool, claims: usize, is_repeatable: bool) -> bool {
        let waiting = self.ahead[pool].len() + claims;
        if self.executing[pool] + waiting < self.limit(pool) {
            return true;
        }
        pool == Pool::Workers && is_repeatable && waiting < self.pace.ahead(self.parts.max_workers)
    }

    fn add(&mut self, draft: &mut Draft, job: Job, step: Step, kind: ItemKind) {
        let encoded =
            history::head(&step.record).and_then(|head| Ok((head, history::new_events(&step.happenings)?)));
        let (head, events) = match encoded {
            Ok(encoded) => encoded,
            // What it was submitted with could be stored, so this is a fault of ours. The job stays as it is.
            Err(error) => return tracing::error!(%error, job = %job.id, "a change of a job cannot be stored"),
        };
        draft.writes.push(Write {
            stream: history::job_stream(job.id),
            expected: job.version,
            head: Some(head),
            events,
        });
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

    /// A change that the job does not take, as it is now.
    fn refused(&mut self, job: &Job, change: &Change, refused: Refused) {
        match change {
            Change::Finish { .. } | Change::Release { .. } => {
                self.counts.fenced += 1;
                self.running.remove(&job.id);
                tracing::warn!(job = %job.id, ?refused, "the end of an attempt came too late and was refused");
            }
            Change::Claim { .. } => self.counts.lost_claims += 1,
            _ => tracing::debug!(job = %job.id, ?refused, "a job has moved on"),
        }
        if job.record.state.is_terminal() {
            self.ended(job.id, job.record.state.name());
        } else if job.record.state.name() == JobState::Queued && !matches!(change, Change::Claim { .. }) {
            // Somebody else has queued it again.
            self.found(job.clone());
        }
    }
}
