//! Handles the log's answer to a commit.

use std::time::Instant;

use eventlog::{CommitError, Committed, StoredHead, StreamId};
use kernel::Deadline;
use protocol::JobState;

use super::{
    ClaimGate, Dispatcher, LEASE_LOST, PAUSE_AFTER_FAILURE, PendingChange, Phase, Running,
    lanes::Lane,
    plan::{Batch, CLAIMS_AT_ONCE, Item, ItemKind},
};
use crate::{
    attempt::StopHandle,
    history,
    job::{Job, State},
    service::Sharing,
    state::{Change, End, StopCause},
};

impl Dispatcher {
    pub(super) fn land(&mut self, batch: Batch, answer: Result<Vec<Committed>, CommitError>) {
        match answer {
            Ok(committed) => self.made(batch, &committed),
            Err(CommitError::Conflict { stream, actual }) => {
                self.conflicted(batch, &stream, actual.as_deref())
            }
            Err(CommitError::Fenced { .. }) => {
                self.lease_lost();
                self.unplan(batch);
            }
            Err(error) => {
                tracing::error!(%error, "could not store the outcomes of jobs; retrying");
                self.unplan(batch);
                self.pause = Some(Deadline::after(self.parts.wall.clock(), PAUSE_AFTER_FAILURE));
            }
        }
        self.start_next();
    }

    /// The commit is on disk.
    fn made(&mut self, batch: Batch, committed: &[Committed]) {
        let claims = batch.claim_count();
        let (of_jobs, of_lanes) = committed.split_at(batch.items.len());
        for ((name, running), committed) in batch.lanes.into_iter().zip(of_lanes) {
            let version = committed.version;
            self.lanes.put(name, Lane { version, running }, &mut self.queue);
        }
        for (item, committed) in batch.items.into_iter().zip(of_jobs) {
            let mut job = Job::new(item.job.id, item.next);
            job.committed(*committed);
            match item.kind {
                ItemKind::Claim(_) => self.claimed(job),
                ItemKind::Change(change) => self.changed(job, &change),
            }
        }
        if claims > 0 {
            // No other daemon interfered, so the next commit may have more claims.
            self.claims_at_once = (self.claims_at_once * 2).min(CLAIMS_AT_ONCE);
        }
    }

    pub(super) fn claimed(&mut self, job: Job) {
        self.counts.claimed += 1;
        let id = job.id;
        if !self.is_own(&job) {
            // The lease was lost while the claim was in flight.
            self.early_cancels.remove(&id);
            self.interrupt_stale(job, LEASE_LOST.to_owned());
            return;
        }
        let early = self
            .early_cancels
            .remove(&id)
            .filter(|early| early.version > job.version);
        let job = early.map_or(job, |early| *early);
        let is_wanted = job.record.cancel.is_none();
        let pool = job.record.facts.pool;
        self.running.insert(
            id,
            Running {
                job,
                stop: StopHandle::default(),
                phase: Phase::Ahead,
            },
        );
        if self.claim_gate == ClaimGate::Closed {
            // Claiming was stopped while the claim was in flight.
            return self.release_claim(id, self.parts.wall.now());
        }
        self.ahead[pool].push_back(id);
        if !is_wanted {
            self.cancel_running(id);
        }
    }

    /// Whether a running job belongs to the current incarnation of this worker.
    pub(super) fn is_own(&self, job: &Job) -> bool {
        let worker = self.parts.identity.worker();
        matches!(&job.record.state, State::Running { attempt } if attempt.worker == worker)
    }

    fn changed(&mut self, job: Job, change: &Change) {
        self.running.remove(&job.id);
        match (job.record.state.name(), change) {
            (_, Change::Interrupt { .. }) => self.counts.interrupted += 1,
            (
                JobState::Queued | JobState::Failed,
                Change::Finish {
                    end: End::Stopped(StopCause::Draining),
                    ..
                },
            ) => self.counts.interrupted += 1,
            (JobState::Queued, Change::Finish { .. }) => self.counts.retried += 1,
            _ => {}
        }
        match job.record.state.name() {
            JobState::Queued => return self.enqueue(job),
            JobState::Running => return,
            JobState::Succeeded => self.counts.succeeded += 1,
            JobState::Failed => self.counts.failed += 1,
            JobState::Cancelled => self.counts.cancelled += 1,
        }
        self.payloads.forget(job.id);
        self.ended(job.id, job.record.state.name());
    }

    /// Handles a conflict: another daemon has changed one of the streams. That one is handled with its current
    /// state, the others are planned again.
    fn conflicted(&mut self, mut batch: Batch, stream: &StreamId, actual: Option<&StoredHead>) {
        let place = batch
            .items
            .iter()
            .position(|item| history::job_stream(item.job.id) == *stream);
        let Some(place) = place else {
            let mut lanes = batch.lanes.iter().map(|(name, _)| name);
            let lane = lanes.find(|name| history::lane_stream(name) == *stream).cloned();
            // The queue counts what was taken from it, so that is put back before the count is corrected.
            self.unplan(batch);
            if let Some(name) = lane {
                let now = actual.map(Lane::of).unwrap_or_default();
                self.lanes.put(name, now, &mut self.queue);
            }
            return;
        };
        let Item { job, kind, .. } = batch.items.remove(place);
        self.unplan(batch);
        let actual = actual.and_then(|stored| Job::of_head(&self.parts.log, stored).ok());
        match (kind, actual) {
            (ItemKind::Claim(entry), actual) => {
                self.counts.lost_claims += 1;
                if self.parts.sharing == Sharing::WithOthers {
                    self.claims_at_once = (self.claims_at_once / 2).max(1);
                }
                if let Some(lane) = &entry.lane {
                    self.queue.lane_freed(&lane.name);
                }
                match actual {
                    // This worker already has it; the message about it came late. A claim is started once.
                    Some(actual) if self.running.contains_key(&actual.id) => {}
                    // An earlier commit was made after all, and its answer was lost.
                    Some(actual) if self.is_own(&actual) => self.claimed(actual),
                    Some(actual) if actual.record.state.name() == JobState::Queued => self.enqueue(actual),
                    Some(actual) if actual.record.state.is_terminal() => {
                        self.payloads.forget(job.id);
                        self.ended(job.id, actual.record.state.name());
                    }
                    // Another worker has it.
                    _ => self.payloads.forget(job.id),
                }
            }
            // The change is decided again, on the current state of the job.
            (ItemKind::Change(change), Some(job)) => self.todo.push_front(PendingChange { job, change }),
            (ItemKind::Change(_), None) => {
                tracing::error!(job = %job.id, "a job was removed while it was in use");
                self.running.remove(&job.id);
            }
        }
    }

    /// The commit wasn't made: restores everything to how it was before it was planned.
    fn unplan(&mut self, batch: Batch) {
        for Item { job, kind, .. } in batch.items.into_iter().rev() {
            match kind {
                ItemKind::Claim(entry) => {
                    self.early_cancels.remove(&job.id);
                    self.queue.put_back(entry);
                    self.queued.insert(job.id, Box::new(job));
                }
                // Once its lease is lost, the jobs no longer belong to this worker.
                ItemKind::Change(change) => {
                    let is_own = matches!(change, Change::Finish { .. } | Change::Release { .. });
                    if is_own && !self.running.contains_key(&job.id) {
                        self.counts.fenced += 1;
                        continue;
                    }
                    self.todo.push_front(PendingChange { job, change });
                }
            }
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.parts.wall.clock().now()
    }
}
