//! Attempts: started when a worker is free, stopped on request.

use std::sync::Arc;
use std::time::Duration;

use eventlog::UnixMs;
use kernel::Deadline;
use protocol::{JobId, JobIfInterrupted};

use super::{Dispatcher, LEASE_LOST, Phase, Running};
use crate::attempt::{Attempt, StopReason};
use crate::job::{Pool, State};
use crate::message::Finished;
use crate::pools::ByPool;
use crate::state::{Change, End, StopCause};

/// How much work may be claimed ahead: as much as the workers do in this time.
const AHEAD_WITHIN: Duration = Duration::from_millis(20);
/// How many jobs may be claimed ahead at most.
const AHEAD_LIMIT: usize = 128;
/// The weight of the last attempt in the average.
const NEWEST_WEIGHT: f64 = 0.1;

/// The average duration of attempts that may be repeated.
///
/// Such a job may be claimed before a worker is free, because a crash only queues it again. That pays off for
/// jobs that take less time than the disk needs for their claim, and would be unfair to other daemons for longer
/// ones.
#[derive(Debug, Default)]
pub(super) struct AttemptPace {
    average_seconds: Option<f64>,
}

impl AttemptPace {
    fn took(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let average = self
            .average_seconds
            .map_or(seconds, |average| average + (seconds - average) * NEWEST_WEIGHT);
        self.average_seconds = Some(average);
    }

    /// How many jobs this many workers may claim ahead.
    pub(super) fn ahead(&self, workers: usize) -> usize {
        let Some(average) = self.average_seconds else {
            return 0;
        };
        let jobs = AHEAD_WITHIN.as_secs_f64() * workers as f64 / average.max(1e-6);
        (jobs as usize).min(AHEAD_LIMIT)
    }
}

impl Dispatcher {
    /// Starts claimed jobs as long as workers are free.
    pub(super) fn start_next(&mut self) {
        for pool in Pool::ALL {
            while self.executing[pool] < self.limit(pool) {
                let Some(id) = self.ahead[pool].pop_front() else {
                    break;
                };
                self.start(id);
            }
        }
    }

    fn start(&mut self, id: JobId) {
        let (now, wall) = (self.now(), &self.parts.wall);
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        let facts = &running.job.record.facts;
        let (State::Running { attempt }, Some(handler), Some(report)) = (
            &running.job.record.state,
            self.parts.handlers.get(&facts.handler),
            self.parts.report.upgrade(),
        ) else {
            return;
        };
        let time_limit = facts.time_limit_ms.map_or(Deadline::never(), |limit| {
            Deadline::after(wall.clock(), Duration::from_millis(limit))
        });
        let attempt = Attempt {
            job: id,
            number: attempt.number,
            title: facts.title.clone(),
            submitted_by: facts.submitted_by.clone(),
            after: facts.after.clone(),
            pool: facts.pool,
            payload: self.payloads.get(id),
            handler: Arc::clone(handler),
            stop: running.stop.clone(),
            time_limit,
            deadline: facts.deadline.map_or(Deadline::never(), |moment| wall.at(moment)),
            lease: self.parts.identity.lease().cloned(),
            output_limit_bytes: facts.output_limit_bytes,
        };
        running.phase = Phase::Executing { since: now };
        self.executing[facts.pool] += 1;
        let tools = (wall.clone(), self.parts.tasks.clone());
        let run = attempt.run(self.parts.log.clone(), tools, report);
        self.parts.tasks.spawn("job", run);
    }

    /// Handles the end of an attempt. Its worker is free at once; the outcome is stored with the next commit.
    pub(super) fn finished(&mut self, finished: Finished) {
        self.executing[finished.pool] -= 1;
        let now = self.now();
        if let Some(running) = self.running.get_mut(&finished.job) {
            if let Phase::Executing { since } = running.phase
                && running.job.record.facts.if_interrupted == JobIfInterrupted::Repeat
                && finished.pool == Pool::Workers
            {
                self.pace.took(now.saturating_duration_since(since));
            }
            running.phase = Phase::Ending;
            // It may have ended before it noticed that its lease is lost. Then this worker may not store the
            // outcome.
            match finished.end.filter(|_| !running.stop.is_lost()) {
                Some(end) => {
                    let job = running.job.clone();
                    self.end(job, end, finished);
                }
                None => {
                    let job = running.job.clone();
                    self.running.remove(&finished.job);
                    self.counts.fenced += 1;
                    // Nothing of it is running anymore. If no other worker has taken it over yet, it is free
                    // now.
                    self.interrupt_stale(job, LEASE_LOST.to_owned());
                }
            }
        }
        self.start_next();
    }

    fn end(&mut self, job: crate::job::Job, end: End, finished: Finished) {
        let State::Running { attempt } = &job.record.state else {
            return;
        };
        let change = Change::Finish {
            attempt: finished.attempt,
            worker: attempt.worker.clone(),
            end,
            text: finished.text,
            result: finished.result,
            output: finished.output,
            now: self.parts.wall.now(),
            jitter: jitter(&job.id.to_string(), finished.attempt),
        };
        self.schedule(job, change);
    }

    /// Stops a job of this worker. One that hasn't started is ended at once.
    pub(super) fn cancel_running(&mut self, id: JobId) {
        let Some(running) = self.running.get(&id) else {
            return;
        };
        running.stop.now(StopReason::Cause(StopCause::Cancelled));
        if running.phase == Phase::Ahead {
            self.ahead[running.job.record.facts.pool].retain(|waiting| *waiting != id);
            let now = self.parts.wall.now();
            self.release_claim(id, now);
        }
    }

    pub(super) fn release_ahead(&mut self) {
        self.ahead = ByPool::default();
        let now = self.parts.wall.now();
        let is_ahead = |(id, running): (&JobId, &Running)| (running.phase == Phase::Ahead).then_some(*id);
        let ahead: Vec<JobId> = self.running.iter().filter_map(is_ahead).collect();
        for id in ahead {
            self.release_claim(id, now);
        }
    }

    /// Releases a claim that wasn't started.
    pub(super) fn release_claim(&mut self, id: JobId, now: UnixMs) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        running.phase = Phase::Ending;
        let job = running.job.clone();
        if let State::Running { attempt } = &job.record.state {
            let attempt = attempt.number;
            self.schedule(job, Change::Release { attempt, now });
        }
    }
}

/// A number from 0 to 1 that differs by job and attempt. It only has to be spread, not secret.
pub(super) fn jitter(id: &str, attempt: u32) -> f64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in id.bytes().chain(attempt.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
