//! Handles the messages to the dispatcher.

use std::sync::Arc;

use protocol::{JobId, JobState};

use super::{ClaimGate, Dispatcher, InFlightCommit, LEASE_LOST, Lane, PendingChange, attempts};
use crate::attempt::StopReason;
use crate::job::{Job, State};
use crate::message::Message;
use crate::queue::DependencyEnd;
use crate::service::Sharing;
use crate::state::{Change, StopCause};

impl Dispatcher {
    pub(super) fn handle(&mut self, message: Message) {
        match message {
            Message::Submitted { job, payload } => {
                self.payloads.keep(job.id, payload);
                // A scan may have found the job before this message, so its state may be anything by now.
                self.add_if_newer(*job);
            }
            Message::QueuedFound(jobs) => jobs.into_iter().for_each(|job| self.add_if_newer(job)),
            // The pending change is decided on a newer version, or refused.
            Message::WorkerDead { job, .. } if self.is_in_hand(job.id) => {}
            Message::WorkerDead { job, text } => self.interrupt_stale(*job, text),
            Message::RunningHere(job) => self.adopt_running(*job),
            Message::Cancelled(job) => self.handle_cancelled(job),
            Message::Finished(finished) => self.finished(*finished),
            Message::DependencyState { id, state } => self.dependency_seen(id, state),
            Message::Lane { name, lane } => self.update_lane(name, lane),
            Message::LaneGone { name, seen } => {
                if self.lanes.get(&name).version == seen {
                    self.lanes.put(name, Lane::default(), &mut self.queue);
                }
            }
            Message::MaxWorkers(max_workers) => {
                if max_workers < self.parts.max_workers {
                    // They might not get a worker for a long time.
                    self.release_ahead();
                }
                self.parts.max_workers = max_workers;
                self.start_next();
            }
            Message::Why { ids, answer } => {
                let capacity = |pool| (self.executing[pool], self.limit(pool));
                let now = self.parts.wall.now();
                let why = ids.into_iter().map(|id| self.queue.why(id, now, capacity));
                drop(answer.send(why.collect()));
            }
            Message::Dependencies { answer } => {
                drop(answer.send(self.queue.waits_for().collect()));
            }
            Message::FullLanes { answer } => {
                let lanes = &self.lanes;
                let known = |name: &Arc<str>| (Arc::clone(name), lanes.get(name).version);
                drop(answer.send(self.queue.full_lanes().map(known).collect()));
            }
            Message::Open => self.claim_gate = ClaimGate::Open,
            Message::Close => self.close(),
            Message::Interrupt => {
                for running in self.running.values() {
                    running.stop.now(StopReason::Cause(StopCause::Draining));
                }
            }
            Message::End => self.parts.inbox.close(),
            Message::Idle { answer } => self.idle.push(answer),
        }
    }

    /// Adds a job to the queue. Its dependencies are looked up afterwards, so that no end is missed.
    pub(super) fn enqueue(&mut self, job: Job) {
        let facts = &job.record.facts;
        let is_ours = facts
            .home
            .as_ref()
            .is_none_or(|home| home == self.parts.identity.home());
        if !is_ours {
            return;
        }
        if !self.parts.handlers.contains_key(&facts.handler) {
            // Another daemon may have the handler. Without others, no daemon does.
            if self.parts.sharing == Sharing::Alone {
                let now = self.parts.wall.now();
                self.schedule(job, Change::NoHandler { now });
            }
            return;
        }
        // A job that has been claimed once had its dependencies met.
        let unfinished = match job.record.attempts {
            0 => facts.after.clone(),
            _ => Vec::new(),
        };
        self.queue.insert(&job, unfinished.clone());
        self.queued.insert(job.id, Box::new(job));
        if !unfinished.is_empty() {
            self.read_dependencies(unfinished);
        }
    }

    /// Reads the states of jobs that others wait for.
    pub(super) fn read_dependencies(&self, ids: Vec<JobId>) {
        let (log, report) = (self.parts.log.clone(), self.parts.report.upgrade());
        let Some(report) = report else {
            return;
        };
        self.parts.tasks.spawn("job-dependencies", async move {
            for id in ids {
                let state = match Job::read(&log, id).await {
                    Ok(job) => job.map(|job| job.record.state.name()),
                    // It is read again with the next scan, or when it ends here.
                    Err(error) => {
                        tracing::warn!(%error, job = %id, "could not read a job that others wait for");
                        continue;
                    }
                };
                drop(report.send(Message::DependencyState { id, state }).await);
            }
        });
    }

    pub(super) fn dependency_seen(&mut self, id: JobId, state: Option<JobState>) {
        match state {
            Some(JobState::Queued | JobState::Running) => {}
            Some(state) => self.ended(id, state),
            // Jobs that others wait for aren't collected, so this log was changed by hand.
            None => self.ended(id, JobState::Failed),
        }
    }

    /// A job has ended, here or elsewhere: the jobs that wait for it continue or fail.
    pub(super) fn ended(&mut self, id: JobId, state: JobState) {
        let dependency = match state {
            JobState::Succeeded => DependencyEnd::Succeeded,
            _ => DependencyEnd::NotSucceeded,
        };
        let now = self.parts.wall.now();
        for waiting in self.queue.dependency_ended(id, dependency) {
            if let Some(job) = self.forget_queued(waiting) {
                self.schedule(*job, Change::DependencyFailed { id, state, now });
            }
        }
    }

    /// Handles a queued job that was submitted here or found by a scan.
    pub(super) fn add_if_newer(&mut self, job: Job) {
        let is_known = |known: &Job| known.version >= job.version;
        let in_queue = self.queued.get(&job.id).is_some_and(|known| is_known(known));
        if !in_queue && !self.is_in_hand(job.id) {
            self.enqueue(job);
        }
    }

    /// Whether this worker has a job, or is about to change it.
    fn is_in_hand(&self, id: JobId) -> bool {
        let in_flight = |flight: &InFlightCommit| flight.batch.concerns(id);
        self.running.contains_key(&id)
            || self.todo.iter().any(|todo| todo.job.id == id)
            || self.flight.as_ref().is_some_and(in_flight)
    }

    /// Handles a job that runs here according to the log. If it isn't known here, its claim was made and the
    /// answer was lost.
    fn adopt_running(&mut self, job: Job) {
        if self.is_in_hand(job.id) {
            return;
        }
        let known = self.queued.get(&job.id).map(|known| known.version);
        if known.is_some_and(|version| version < job.version) && self.is_own(&job) {
            self.forget_queued(job.id);
            self.claimed(job);
            return self.start_next();
        }
        // The lease under which it was claimed is gone. If the job has changed since, the log refuses this.
        self.interrupt_stale(job, LEASE_LOST.to_owned());
    }

    /// Handles a lane that a scan has read. Pending and newer changes take precedence.
    pub(super) fn update_lane(&mut self, name: Arc<str>, lane: Lane) {
        let is_in_flight = self
            .flight
            .as_ref()
            .is_some_and(|flight| flight.batch.lanes.iter().any(|(other, _)| *other == name));
        if !is_in_flight && lane.version >= self.lanes.get(&name).version {
            self.lanes.put(name, lane, &mut self.queue);
        }
    }

    /// Interrupts a running job with a dead worker, unless it is known here that it was queued again since.
    pub(super) fn interrupt_stale(&mut self, job: Job, text: String) {
        let now = self.parts.wall.now();
        if self
            .queued
            .get(&job.id)
            .is_some_and(|known| known.version > job.version)
        {
            return;
        }
        self.forget_queued(job.id);
        if let State::Running { attempt } = &job.record.state {
            let attempt = attempt.number;
            let jitter = attempts::jitter(&job.id.to_string(), attempt);
            let change = Change::Interrupt {
                attempt,
                text,
                now,
                jitter,
            };
            self.schedule(job, change);
        }
    }

    /// Handles a job that was cancelled or has a cancel request.
    pub(super) fn handle_cancelled(&mut self, job: Box<Job>) {
        let id = job.id;
        if job.record.state.is_terminal() {
            if self.forget_queued(id).is_some() {
                self.counts.cancelled += 1;
            }
            self.payloads.forget(id);
            self.ended(id, job.record.state.name());
            return;
        }
        if let Some(running) = self.running.get_mut(&id) {
            if running.job.version < job.version {
                running.job = *job;
            }
            self.cancel_running(id);
        } else if self.flight.as_ref().is_some_and(|flight| flight.batch.claims(id)) {
            self.early_cancels.insert(id, job);
        }
    }

    pub(super) fn close(&mut self) {
        self.claim_gate = ClaimGate::Closed;
        self.release_ahead();
    }

    pub(super) fn schedule(&mut self, job: Job, change: Change) {
        self.todo.push_back(PendingChange { job, change });
    }

    pub(super) fn forget_queued(&mut self, id: JobId) -> Option<Box<Job>> {
        self.queue.remove(id);
        self.queued.remove(&id)
    }
}
