//! What the dispatcher is told, and what it makes of it.

use std::sync::Arc;

use protocol::{JobId, JobState};

use super::{Dispatcher, Door, Flight, LEASE_LOST, Lane, Todo, attempts};
use crate::{
    attempt::StopWhy,
    history,
    job::{Job, State},
    message::Message,
    queue::DependencyEnd,
    service::Sharing,
    state::{Change, StopCause},
};

impl Dispatcher {
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            Message::Submitted { job, payload } => {
                self.payloads.keep(job.id, payload);
                // A scan may have found it before this was heard, and then it may be anywhere by now.
                self.found(*job);
            }
            Message::Found(jobs) => jobs.into_iter().for_each(|job| self.found(job)),
            // Whatever is about to be done with it is decided on what is newer, or refused.
            Message::Dead { job, .. } if self.is_in_hand(job.id) => {}
            Message::Dead { job, text } => self.dead(*job, text),
            Message::Held(job) => self.held(*job),
            Message::Cancelled(job) => self.cancelled(job),
            Message::Finished(finished) => self.finished(*finished),
            Message::Looked { id, state } => self.looked(id, state),
            Message::Lane { name, lane } => self.found_lane(name, lane),
            Message::LaneGone { name, seen } => {
                if self.lanes.get(&name).version == seen {
                    self.lanes.put(name, Lane::default(), &mut self.queue);
                }
            }
            Message::MaxWorkers(max_workers) => {
                if max_workers < self.parts.max_workers {
                    // There may be nobody to do them for long.
                    self.give_ahead_back();
                }
                self.parts.max_workers = max_workers;
                self.start_next();
            }
            Message::Why { ids, answer } => {
                let places = |pool| (self.executing[pool], self.limit(pool));
                let now = self.parts.wall.now();
                let why = ids.into_iter().map(|id| self.queue.why(id, now, places));
                drop(answer.send(why.collect()));
            }
            Message::WaitedFor { answer } => {
                drop(answer.send(self.queue.waits_for().collect()));
            }
            Message::FullLanes { answer } => {
                let lanes = &self.lanes;
                let known = |name: &Arc<str>| (Arc::clone(name), lanes.get(name).version);
                drop(answer.send(self.queue.full_lanes().map(known).collect()));
            }
            Message::Open => self.door = Door::Open,
            Message::Close => self.close(),
            Message::Interrupt => {
                for running in self.running.values() {
                    running.stop.now(StopWhy::Cause(StopCause::Draining));
                }
            }
            Message::End => self.parts.inbox.close(),
            Message::Idle { answer } => self.idle.push(answer),
        }
    }

    /// Puts a queued job into the queue. What it waits for is looked up afterwards, so that no end is missed.
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
            // Another daemon may know it. If there is none, nobody ever will.
            if self.parts.sharing == Sharing::Alone {
                let now = self.parts.wall.now();
                self.todo(job, Change::NoHandler { now });
            }
            return;
        }
        // A job that has been claimed once had what it waited for.
        let unfinished = match job.record.attempts {
            0 => facts.after.clone(),
            _ => Vec::new(),
        };
        self.queue.insert(&job, unfinished.clone());
        self.queued.insert(job.id, Box::new(job));
        if !unfinished.is_empty() {
            self.look_up(unfinished);
        }
    }

    /// Reads how jobs are that others wait for.
    pub(super) fn look_up(&self, ids: Vec<JobId>) {
        let (log, report) = (self.parts.log.clone(), self.parts.report.upgrade());
        let Some(report) = report else {
            return;
        };
        self.parts.tasks.spawn("job-dependencies", async move {
            for id in ids {
                let state = match history::read(&log, id).await {
                    Ok(job) => job.map(|job| job.record.state.name()),
                    // It is looked up again with the next scan, or when it ends here.
                    Err(error) => {
                        tracing::warn!(%error, job = %id, "a job that others wait for could not be read");
                        continue;
                    }
                };
                drop(report.send(Message::Looked { id, state }).await);
            }
        });
    }

    pub(super) fn looked(&mut self, id: JobId, state: Option<JobState>) {
        match state {
            Some(JobState::Queued | JobState::Running) => {}
            Some(state) => self.ended(id, state),
            // What others wait for is not collected. So this is a log that somebody has changed by hand.
            None => self.ended(id, JobState::Failed),
        }
    }

    /// A job has ended, here or elsewhere: those that wait for it go on, or fail.
    pub(super) fn ended(&mut self, id: JobId, state: JobState) {
        let dependency = match state {
            JobState::Succeeded => DependencyEnd::Succeeded,
            _ => DependencyEnd::NotSucceeded,
        };
        let now = self.parts.wall.now();
        for waiting in self.queue.dependency_ended(id, dependency) {
            if let Some(job) = self.forget_queued(waiting) {
                self.todo(*job, Change::DependencyFailed { id, state, now });
            }
        }
    }

    /// A queued job that was submitted here, or that a scan of the log has found.
    pub(super) fn found(&mut self, job: Job) {
        let is_known = |known: &Job| known.version >= job.version;
        let in_queue = self.queued.get(&job.id).is_some_and(|known| is_known(known));
        if !in_queue && !self.is_in_hand(job.id) {
            self.enqueue(job);
        }
    }

    /// Whether this worker has a job, or is about to change it.
    fn is_in_hand(&self, id: JobId) -> bool {
        let in_flight = |flight: &Flight| flight.batch.concerns(id);
        self.running.contains_key(&id)
            || self.todo.iter().any(|todo| todo.job.id == id)
            || self.flight.as_ref().is_some_and(in_flight)
    }

    /// A job that the log says this daemon runs. If it isn't known here, its claim was made and the answer was lost.
    fn held(&mut self, job: Job) {
        if self.is_in_hand(job.id) {
            return;
        }
        let known = self.queued.get(&job.id).map(|known| known.version);
        if known.is_some_and(|version| version < job.version) && self.is_own(&job) {
            self.forget_queued(job.id);
            self.claimed(job);
            return self.start_next();
        }
        // The lease that it was claimed under is gone. If it has moved on since, the log refuses this.
        self.dead(job, LEASE_LOST.to_owned());
    }

    /// A lane as a scan of the log has found it. What is on its way or was heard of since counts more.
    pub(super) fn found_lane(&mut self, name: Arc<str>, lane: Lane) {
        let is_in_flight = self
            .flight
            .as_ref()
            .is_some_and(|flight| flight.batch.lanes.iter().any(|(other, _)| *other == name));
        if !is_in_flight && lane.version >= self.lanes.get(&name).version {
            self.lanes.put(name, lane, &mut self.queue);
        }
    }

    /// A running job whose worker is dead, unless it is known here that it was queued again since.
    pub(super) fn dead(&mut self, job: Job, text: String) {
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
            self.todo(job, change);
        }
    }

    /// Somebody has cancelled a job, or wants it to be.
    pub(super) fn cancelled(&mut self, job: Box<Job>) {
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
            self.wishes.insert(id, job);
        }
    }

    pub(super) fn close(&mut self) {
        self.door = Door::Closed;
        self.give_ahead_back();
    }

    pub(super) fn todo(&mut self, job: Job, change: Change) {
        self.todo.push_back(Todo { job, change });
    }

    /// Takes a job out of the queue.
    pub(super) fn forget_queued(&mut self, id: JobId) -> Option<Box<Job>> {
        self.queue.remove(id);
        self.queued.remove(&id)
    }
}
