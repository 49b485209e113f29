//! The state machine of jobs: pure steps from one record to the next, with the events to write to the job's history.
//!
//! It uses no clock, no randomness and no log: the time and the jitter are passed in, and the caller commits the
//! result on the version that the record was read at. If that version has changed, the caller reads and decides again.
//!
//! Invariants, which `state_model.rs` checks on random histories:
//!
//! 1. A terminal record is never changed. The step that makes it terminal has exactly one terminal happening, the last.
//! 2. Every claim has its own number, and the numbers grow. A claim that was released keeps its number.
//! 3. Only the current attempt of the current worker ends an attempt; any other one is [`Refused::Fenced`].
//! 4. If every attempt of a job fails, it is claimed `max_retries + 1` times. Interruptions and released claims don't
//!    count.
//! 5. A queued job has no cancel request: any step that would queue a job with one cancels it instead.

use std::time::Duration;

use protocol::{JobId, JobIfInterrupted, JobState};
use serde_json::Value;

use crate::{
    history::Happening,
    job::{Attempt, CancelRequest, Ending, Facts, FailReason, OutputEnd, Record, RetryPolicy, State, Worker},
};
use eventlog::UnixMs;

/// How often a repeatable job is queued again after losing its worker. Otherwise a job that crashes its daemon would
/// do so forever.
pub(crate) const MAX_INTERRUPTIONS: u32 = 10;

/// A requested change to a job.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A worker claims it.
    Claim { worker: Worker, now: UnixMs },
    /// A user requests its cancellation.
    Cancel { by: String, why: String, now: UnixMs },
    /// Its worker reports how an attempt ended.
    Finish {
        attempt: u32,
        worker: Worker,
        end: End,
        text: String,
        result: Value,
        output: OutputEnd,
        now: UnixMs,
        /// From 0 to 1, for the pause before the next attempt.
        jitter: f64,
    },
    /// The worker of an attempt is dead.
    Interrupt {
        attempt: u32,
        text: String,
        now: UnixMs,
        /// From 0 to 1, for the pause before the next attempt.
        jitter: f64,
    },
    /// Its worker releases a claim without having done anything.
    Release { attempt: u32, now: UnixMs },
    /// Its deadline may have passed while it was queued.
    Expire { now: UnixMs },
    /// A job that it waits for ended without success.
    DependencyFailed { id: JobId, state: JobState, now: UnixMs },
    /// No handler can do it.
    NoHandler { now: UnixMs },
}

/// How an attempt ended, as seen by the service.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    Succeeded,
    /// It failed, and a retry may help.
    Failed,
    /// It failed, and a retry won't help.
    FailedPermanently,
    /// It was stopped before it was done.
    Stopped(StopCause),
}

/// Why an attempt was stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StopCause {
    /// A cancellation was requested.
    Cancelled,
    /// The attempt took too long.
    TimeLimit,
    /// The job as a whole took too long.
    Deadline,
    /// The daemon is shutting down.
    Draining,
}

/// An allowed change: what to commit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// The new head.
    pub(crate) record: Record,
    /// The new events, in this order; never empty.
    pub(crate) happenings: Vec<Happening>,
}

/// Why a change isn't allowed. There is nothing to commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it does not wait for its turn")]
    NotQueued,
    #[error("nobody has it")]
    NotRunning,
    #[error("it has ended")]
    Ended,
    #[error("another attempt has it, or none")]
    Fenced,
    #[error("it is too early for that")]
    TooEarly,
    #[error("its deadline has passed")]
    DeadlinePassed,
    #[error("somebody wants it to be cancelled")]
    Cancelling,
    #[error("somebody wanted it to be cancelled before")]
    AlreadyCancelling,
}

pub(crate) fn submitted(facts: Facts, delay: Duration, now: UnixMs) -> (Record, Happening) {
    let happening = Happening::Submitted {
        by: facts.submitted_by.clone(),
    };
    let not_before = (!delay.is_zero()).then(|| now.after(delay));
    let record = Record {
        facts,
        submitted_at: now,
        attempts: 0,
        failures: 0,
        interruptions: 0,
        cancel: None,
        // Waiting counts from when it could start; otherwise a long delay would buy a position at the front.
        state: queued(not_before.unwrap_or(now), not_before, None),
    };
    (record, happening)
}

/// Applies a change to a job.
pub(crate) fn apply(record: &Record, change: Change) -> Result<Step, Refused> {
    match change {
        Change::Claim { worker, now } => claim(record, &worker, now),
        Change::Cancel { by, why, now } => cancel(record, CancelRequest { by, why, at: now }),
        Change::Finish {
            attempt: number,
            worker,
            end,
            text,
            result,
            output,
            now,
            jitter,
        } => {
            let current = running(record).map_err(|_| Refused::Fenced)?;
            if current.number != number || current.worker != worker {
                return Err(Refused::Fenced);
            }
            let ending = Ending {
                output,
                ..ending(current, text, result, now)
            };
            Ok(finish(record, end, ending, jitter))
        }
        Change::Interrupt {
            attempt,
            text,
            now,
            jitter,
        } => {
            let current = running_as(record, attempt)?;
            Ok(interrupt(record, ending(current, text, Value::Null, now), jitter))
        }
        Change::Release { attempt, now } => {
            let current = running_as(record, attempt)?;
            Ok(release(record, current, now))
        }
        Change::Expire { now } => match record.facts.deadline {
            Some(deadline) if deadline <= now => give_up(record, FailReason::DeadlinePassed, now, || {
                "its deadline passed before it was started".to_owned()
            }),
            _ => waiting(record).and(Err(Refused::TooEarly)),
        },
        Change::DependencyFailed { id, state, now } => {
            give_up(record, FailReason::DependencyFailed, now, || {
                format!("it waited for {id}, which ended as {}", state.as_str())
            })
        }
        Change::NoHandler { now } => give_up(record, FailReason::NoHandler, now, || {
            format!("there is no handler `{}`", record.facts.handler)
        }),
    }
}

/// The pause before the next attempt. It doubles each time, and up to half of it is random, so that jobs that failed
/// together don't retry together.
pub(crate) fn pause(policy: &RetryPolicy, nth: u32, jitter: f64) -> Duration {
    let doublings = nth.saturating_sub(1);
    let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
    let whole_ms = policy
        .first_pause_ms
        .saturating_mul(factor)
        .min(policy.longest_pause_ms);
    let jitter = if jitter.is_nan() {
        0.0
    } else {
        jitter.clamp(0.0, 1.0)
    };
    let share = 0.5 + jitter / 2.0;
    // The cast saturates.
    let pause_ms = (whole_ms as f64 * share) as u64;
    Duration::from_millis(pause_ms.min(whole_ms))
}

impl Record {
    /// When it ended; `None` if it has not.
    #[must_use]
    pub fn ended_at(&self) -> Option<UnixMs> {
        let (ending, limit) = match &self.state {
            State::Queued { .. } | State::Running { .. } => return None,
            State::Succeeded { ending } => return Some(ending.ended_at),
            State::Failed {
                reason: FailReason::DeadlinePassed,
                ending,
            } => (ending, self.facts.deadline),
            State::Failed { ending, .. } => (ending, None),
            State::Cancelled { ending } => (ending, self.cancel.as_ref().map(|wish| wish.at)),
        };
        // The last attempt may have ended long before the job did, if the job then ended while it was queued.
        let attempt_ended_at = ending.as_ref().map(|ending| ending.ended_at);
        Some(attempt_ended_at.max(limit).unwrap_or(self.submitted_at))
    }
}

fn claim(record: &Record, worker: &Worker, now: UnixMs) -> Result<Step, Refused> {
    let State::Queued { not_before, .. } = &record.state else {
        return Err(ended_or(record, Refused::NotQueued));
    };
    if record.cancel.is_some() {
        return Err(Refused::Cancelling);
    }
    if not_before.is_some_and(|moment| now < moment) {
        return Err(Refused::TooEarly);
    }
    if record.facts.deadline.is_some_and(|deadline| deadline <= now) {
        return Err(Refused::DeadlinePassed);
    }
    let number = record.attempts.saturating_add(1);
    let mut next = record.clone();
    next.attempts = number;
    next.state = State::Running {
        attempt: Attempt {
            number,
            worker: worker.clone(),
            claimed_at: now,
        },
    };
    let claimed = Happening::Claimed {
        attempt: number,
        home: worker.home.clone(),
    };
    Ok(step(next, [claimed]))
}

fn cancel(record: &Record, wish: CancelRequest) -> Result<Step, Refused> {
    if record.state.is_terminal() {
        return Err(Refused::Ended);
    }
    if record.cancel.is_some() {
        return Err(Refused::AlreadyCancelling);
    }
    let requested = Happening::CancelRequested {
        by: wish.by.clone(),
        why: wish.why.clone(),
    };
    let mut next = record.clone();
    next.cancel = Some(wish);
    match &record.state {
        State::Queued { last, .. } => Ok(cancelled(next, last.clone()).preceded_by(requested)),
        _ => Ok(step(next, [requested])),
    }
}

fn finish(record: &Record, end: End, ending: Ending, jitter: f64) -> Step {
    let mut next = record.clone();
    let reason = match end {
        End::Succeeded => {
            // A cancel request came too late; it stays in the record.
            next.state = State::Succeeded {
                ending: ending.clone(),
            };
            return step(next, [Happening::Succeeded { ending }]);
        }
        End::Stopped(StopCause::Cancelled) => return cancelled(next, Some(ending)),
        End::Stopped(StopCause::Draining) => return interrupt(record, ending, jitter),
        End::Stopped(StopCause::TimeLimit) => FailReason::TimedOut,
        End::Stopped(StopCause::Deadline) => FailReason::DeadlinePassed,
        End::Failed | End::FailedPermanently => FailReason::AttemptFailed,
    };
    next.failures = next.failures.saturating_add(1);
    if next.cancel.is_some() {
        return cancelled(next, Some(ending));
    }
    let now = ending.ended_at;
    let deadline = record.facts.deadline;
    if deadline.is_some_and(|deadline| deadline <= now) {
        return failed(next, FailReason::DeadlinePassed, Some(ending));
    }
    let may_help = matches!(end, End::Failed | End::Stopped(StopCause::TimeLimit));
    let is_left = next.failures <= u32::from(record.facts.retry.max_retries);
    let not_before = now.after(pause(&record.facts.retry, next.failures, jitter));
    let in_time = deadline.is_none_or(|deadline| not_before < deadline);
    if !(may_help && is_left && in_time) {
        return failed(next, reason, Some(ending));
    }
    // Its wait restarts at the time when it may start: others have waited while it ran.
    next.state = queued(not_before, Some(not_before), Some(ending.clone()));
    let retrying = Happening::Retrying {
        ending,
        reason,
        not_before,
    };
    step(next, [retrying])
}

fn interrupt(record: &Record, ending: Ending, jitter: f64) -> Step {
    let interrupted = Happening::Interrupted {
        attempt: ending.attempt,
        text: ending.text.clone(),
    };
    let mut next = record.clone();
    next.interruptions = next.interruptions.saturating_add(1);
    if next.cancel.is_some() {
        return cancelled(next, Some(ending)).preceded_by(interrupted);
    }
    let may_repeat = match record.facts.if_interrupted {
        JobIfInterrupted::Repeat => next.interruptions <= MAX_INTERRUPTIONS,
        JobIfInterrupted::Fail => false,
    };
    if !may_repeat {
        return failed(next, FailReason::Interrupted, Some(ending)).preceded_by(interrupted);
    }
    // The first interruption is most likely not the job's fault; after that it may well be.
    let not_before = (next.interruptions > 1).then(|| {
        let nth = next.interruptions - 1;
        ending.ended_at.after(pause(&record.facts.retry, nth, jitter))
    });
    // It keeps its position in the queue.
    next.state = queued(record.submitted_at, not_before, Some(ending));
    step(next, [interrupted])
}

fn release(record: &Record, attempt: &Attempt, now: UnixMs) -> Step {
    let released = Happening::Released {
        attempt: attempt.number,
    };
    let mut next = record.clone();
    if next.cancel.is_some() {
        let ending = ending(attempt, "it was not started".to_owned(), Value::Null, now);
        return cancelled(next, Some(ending)).preceded_by(released);
    }
    next.state = queued(record.submitted_at, None, None);
    step(next, [released])
}

/// Fails a queued job. If there was an attempt, its ending is kept; otherwise the text stands in for one.
fn give_up(
    record: &Record,
    reason: FailReason,
    now: UnixMs,
    text: impl FnOnce() -> String,
) -> Result<Step, Refused> {
    let last = waiting(record)?;
    let ending = last.cloned().unwrap_or_else(|| Ending {
        attempt: 0,
        home: None,
        started_at: now,
        ended_at: now,
        text: text(),
        result: Value::Null,
        output: OutputEnd::default(),
    });
    Ok(failed(record.clone(), reason, Some(ending)))
}

fn cancelled(mut next: Record, ending: Option<Ending>) -> Step {
    next.state = State::Cancelled {
        ending: ending.clone(),
    };
    step(next, [Happening::Cancelled { ending }])
}

fn failed(mut next: Record, reason: FailReason, ending: Option<Ending>) -> Step {
    next.state = State::Failed {
        reason,
        ending: ending.clone(),
    };
    step(next, [Happening::Failed { reason, ending }])
}

fn step<const N: usize>(record: Record, happenings: [Happening; N]) -> Step {
    Step {
        record,
        happenings: happenings.into(),
    }
}

impl Step {
    fn preceded_by(mut self, happening: Happening) -> Self {
        self.happenings.insert(0, happening);
        self
    }
}

fn queued(since: UnixMs, not_before: Option<UnixMs>, last: Option<Ending>) -> State {
    State::Queued {
        since,
        not_before,
        last,
    }
}

fn ending(attempt: &Attempt, text: String, result: Value, now: UnixMs) -> Ending {
    Ending {
        attempt: attempt.number,
        home: Some(attempt.worker.home.clone()),
        started_at: attempt.claimed_at,
        ended_at: now,
        text,
        result,
        output: OutputEnd::default(),
    }
}

/// How the previous attempt of a queued job ended.
fn waiting(record: &Record) -> Result<Option<&Ending>, Refused> {
    match &record.state {
        State::Queued { last, .. } => Ok(last.as_ref()),
        _ => Err(ended_or(record, Refused::NotQueued)),
    }
}

fn running(record: &Record) -> Result<&Attempt, Refused> {
    match &record.state {
        State::Running { attempt } => Ok(attempt),
        _ => Err(ended_or(record, Refused::NotRunning)),
    }
}

fn running_as(record: &Record, number: u32) -> Result<&Attempt, Refused> {
    let current = running(record)?;
    if current.number == number {
        Ok(current)
    } else {
        Err(Refused::Fenced)
    }
}

fn ended_or(record: &Record, refused: Refused) -> Refused {
    if record.state.is_terminal() {
        Refused::Ended
    } else {
        refused
    }
}
