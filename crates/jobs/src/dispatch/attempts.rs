//! Attempts: started when a worker is free, stopped when somebody wants that.

use std::{sync::Arc, time::Duration};

use kernel::Deadline;
use protocol::{JobId, JobIfInterrupted};

use super::{Dispatcher, LEASE_LOST, Phase, Running};
use crate::{
    attempt::{Attempt, StopWhy},
    job::{Pool, State},
    message::Finished,
    pools::ByPool,
    state::{Change, End, StopCause},
};
use eventlog::UnixMs;

/// How much work may be claimed before its turn: as much as the workers do in this time.
const AHEAD_WITHIN: Duration = Duration::from_millis(20);
/// How many jobs may be claimed before their turn at most.
const AHEAD_LIMIT: usize = 128;
/// How much the last attempt counts in the average.
const NEWEST_WEIGHT: f64 = 0.1;

/// How long attempts take that may be repeated.
///
/// Such a job may be claimed before a worker is free, since a crash only puts it back. That pays for jobs that take
/// less time than the disk takes for their claim, and would be unfair to other daemons for all others.
#[derive(Debug, Default)]
pub(super) struct Pace {
    average_seconds: Option<f64>,
}

impl Pace {
    fn took(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let average = self
            .average_seconds
            .map_or(seconds, |average| average + (seconds - average) * NEWEST_WEIGHT);
        self.average_seconds = Some(average);
    }

    /// How many jobs so many workers may have waiting.
    pub(super) fn ahead(&self, workers: usize) -> usize {
        let Some(average) = self.average_seconds else {
            return 0;
        };
        let jobs = AHEAD_WITHIN.as_secs_f64() * workers as f64 / average.max(1e-6);
        (jobs as usize).min(AHEAD_LIMIT)
    }
}

impl Dispatcher {
    /// Starts what was claimed, as far as workers are free.
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

    /// An attempt has ended. Its worker is free at once; what became of the job is for the next commit.
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
            // It may have come to its end before it saw that its lease is lost; that is not for this worker to say.
            match finished.end.filter(|_| !running.stop.is_lost()) {
                Some(end) => {
                    let job = running.job.clone();
                    self.end(job, end, finished);
                }
                None => {
                    let job = running.job.clone();
                    self.running.remove(&finished.job);
                    self.counts.fenced += 1;
                    // Nothing of it runs any more. If nobody has taken it over yet, it is free now.
                    self.dead(job, LEASE_LOST.to_owned());
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
        self.todo(job, change);
    }

    /// Stops a job that this worker has. One that has not begun is ended at once.
    pub(super) fn cancel_running(&mut self, id: JobId) {
        let Some(running) = self.running.get(&id) else {
            return;
        };
        running.stop.now(StopWhy::Cause(StopCause::Cancelled));
        if running.phase == Phase::Ahead {
            self.ahead[running.job.record.facts.pool].retain(|waiting| *waiting != id);
            let now = self.parts.wall.now();
            self.give_back(id, now);
        }
    }

    /// Gives back what was claimed before its turn.
    pub(super) fn give_ahead_back(&mut self) {
        self.ahead = ByPool::default();
        let now = self.parts.wall.now();
        let is_ahead = |(id, running): (&JobId, &Running)| (running.phase == Phase::Ahead).then_some(*id);
        let ahead: Vec<JobId> = self.running.iter().filter_map(is_ahead).collect();
        for id in ahead {
            self.give_back(id, now);
        }
    }

    /// Gives a claim back of which nothing was done.
    pub(super) fn give_back(&mut self, id: JobId, now: UnixMs) {
        let Some(running) = self.running.get_mut(&id) else {
            return;
        };
        running.phase = Phase::Ending;
        let job = running.job.clone();
        if let State::Running { attempt } = &job.record.state {
            let attempt = attempt.number;
            self.todo(job, Change::Release { attempt, now });
        }
    }
}

/// A number from 0 to 1 that differs from job to job and from attempt to attempt. It need not be a secret, only spread.
pub(super) fn jitter(id: &str, attempt: u32) -> f64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in id.bytes().chain(attempt.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}
