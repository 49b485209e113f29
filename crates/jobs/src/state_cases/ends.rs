//! How attempts end, and who may report it.

use protocol::JobIfInterrupted;
use serde_json::{Value, json};

use super::{
    CLAIMED, NOW, SUBMITTED, all_ended, due, fails, is_cancelled, preceded, running, step, waiting, wished,
    with, worker,
};
use crate::{
    history::Happening,
    job::{Ending, FailReason, OutputEnd, Record, State, Worker},
    state::{Change, End, MAX_INTERRUPTIONS, Refused, Step, StopCause, apply},
};
use eventlog::UnixMs;

fn repeated(record: Record) -> Record {
    with(record, |record| {
        record.facts.if_interrupted = JobIfInterrupted::Repeat
    })
}

fn ending(text: &str, result: Value) -> Ending {
    Ending {
        home: Some("a".into()),
        attempt: 3,
        started_at: CLAIMED,
        ended_at: NOW,
        text: text.to_owned(),
        result,
        output: OutputEnd::default(),
    }
}

/// How the attempt of [`finish`] ended.
fn ours() -> Ending {
    ending("so it was", json!([1]))
}

fn finish(record: &Record, end: End) -> Result<Step, Refused> {
    finish_as(record, 3, &worker("a"), end)
}

fn finish_as(record: &Record, attempt: u32, worker: &Worker, end: End) -> Result<Step, Refused> {
    let change = Change::Finish {
        attempt,
        worker: worker.clone(),
        end,
        text: "so it was".to_owned(),
        result: json!([1]),
        output: OutputEnd::default(),
        now: NOW,
        jitter: 1.0,
    };
    apply(record, change)
}

fn interrupt(record: &Record, attempt: u32) -> Result<Step, Refused> {
    let change = Change::Interrupt {
        attempt,
        text: "its worker is gone".to_owned(),
        now: NOW,
        jitter: 1.0,
    };
    apply(record, change)
}

fn lost() -> Ending {
    ending("its worker is gone", Value::Null)
}

fn interrupted(text: &str) -> Happening {
    Happening::Interrupted {
        attempt: 3,
        text: text.to_owned(),
    }
}

fn retries(record: Record, reason: FailReason, not_before: UnixMs) -> Result<Step, Refused> {
    let state = State::Queued {
        since: not_before,
        not_before: Some(not_before),
        last: Some(ours()),
    };
    let happening = Happening::Retrying {
        ending: ours(),
        reason,
        not_before,
    };
    step(record, state, vec![happening])
}

/// The record with this many failed attempts.
fn failed(record: Record, failures: u32) -> Record {
    with(record, |record| record.failures = failures)
}

#[test]
fn ends_of_attempts() {
    let done = |record: Record| {
        let ending = ours();
        let state = State::Succeeded {
            ending: ending.clone(),
        };
        step(record, state, vec![Happening::Succeeded { ending }])
    };
    let passed = || due(running(), NOW);
    // The pause after the first failure is 1,000 ms here, so the next attempt would start at 10,000.
    let retry_at = UnixMs(10_000);
    let (time_limit, deadline) = (
        End::Stopped(StopCause::TimeLimit),
        End::Stopped(StopCause::Deadline),
    );
    let (attempt_failed, timed_out) = (FailReason::AttemptFailed, FailReason::TimedOut);
    let passed_reason = FailReason::DeadlinePassed;
    let is_cancelled = |record| is_cancelled(record, Some(ours()));
    let cases = [
        (running(), End::Succeeded, done(running())),
        (wished(running()), End::Succeeded, done(wished(running()))),
        (passed(), End::Succeeded, done(passed())),
        (
            running(),
            End::Failed,
            retries(failed(running(), 1), attempt_failed, retry_at),
        ),
        (
            running(),
            time_limit,
            retries(failed(running(), 1), timed_out, retry_at),
        ),
        (
            failed(running(), 1),
            End::Failed,
            retries(failed(running(), 2), attempt_failed, UnixMs(11_000)),
        ),
        (
            failed(running(), 2),
            End::Failed,
            fails(failed(running(), 3), attempt_failed, ours()),
        ),
        (
            failed(running(), 2),
            time_limit,
            fails(failed(running(), 3), timed_out, ours()),
        ),
        (
            running(),
            End::FailedPermanently,
            fails(failed(running(), 1), attempt_failed, ours()),
        ),
        (
            running(),
            deadline,
            fails(failed(running(), 1), passed_reason, ours()),
        ),
        (
            passed(),
            deadline,
            fails(failed(passed(), 1), passed_reason, ours()),
        ),
        (
            passed(),
            End::Failed,
            fails(failed(passed(), 1), passed_reason, ours()),
        ),
        (
            passed(),
            time_limit,
            fails(failed(passed(), 1), passed_reason, ours()),
        ),
        // The next attempt couldn't start in time.
        (
            due(running(), retry_at),
            End::Failed,
            fails(failed(due(running(), retry_at), 1), attempt_failed, ours()),
        ),
        (
            due(running(), UnixMs(10_001)),
            End::Failed,
            retries(
                failed(due(running(), UnixMs(10_001)), 1),
                attempt_failed,
                retry_at,
            ),
        ),
        (
            wished(running()),
            End::Failed,
            is_cancelled(failed(wished(running()), 1)),
        ),
        (
            wished(running()),
            End::FailedPermanently,
            is_cancelled(failed(wished(running()), 1)),
        ),
        (
            wished(running()),
            time_limit,
            is_cancelled(failed(wished(running()), 1)),
        ),
        (
            wished(passed()),
            deadline,
            is_cancelled(failed(wished(passed()), 1)),
        ),
        (
            wished(running()),
            End::Stopped(StopCause::Cancelled),
            is_cancelled(wished(running())),
        ),
    ];
    for (record, end, expected) in cases {
        assert_eq!(finish(&record, end), expected, "{end:?} of {record:?}");
    }
}

#[test]
fn only_the_current_attempt_of_the_current_worker_ends_it() {
    let mut other_life = worker("a");
    other_life.lease_token += 1;
    let mut strangers = vec![
        (running(), 2, worker("a")),
        (running(), 4, worker("a")),
        (running(), 3, worker("b")),
        (running(), 3, other_life),
        (waiting(), 3, worker("a")),
        (waiting(), 2, worker("a")),
    ];
    strangers.extend(all_ended().into_iter().map(|record| (record, 2, worker("a"))));
    for (record, attempt, worker) in strangers {
        for end in [End::Succeeded, End::Failed, End::Stopped(StopCause::Draining)] {
            let answer = finish_as(&record, attempt, &worker, end);
            assert_eq!(
                answer,
                Err(Refused::Fenced),
                "{attempt} of {worker:?} on {record:?}"
            );
        }
    }
}

#[test]
fn interruptions() {
    let times = |record: Record, interruptions| with(record, |record| record.interruptions = interruptions);
    let again = |record: Record, not_before, last: Ending| {
        let text = last.text.clone();
        let state = State::Queued {
            since: SUBMITTED,
            not_before,
            last: Some(last),
        };
        step(record, state, vec![interrupted(&text)])
    };
    let gone = || interrupted("its worker is gone");
    let most = MAX_INTERRUPTIONS;
    let cases = [
        (
            running(),
            preceded(
                gone(),
                fails(times(running(), 1), FailReason::Interrupted, lost()),
            ),
        ),
        (
            wished(running()),
            preceded(gone(), is_cancelled(times(wished(running()), 1), Some(lost()))),
        ),
        (
            wished(repeated(running())),
            preceded(
                gone(),
                is_cancelled(times(wished(repeated(running())), 1), Some(lost())),
            ),
        ),
        (
            repeated(running()),
            again(times(repeated(running()), 1), None, lost()),
        ),
        (
            times(repeated(running()), 1),
            again(times(repeated(running()), 2), Some(UnixMs(10_000)), lost()),
        ),
        (
            times(repeated(running()), 2),
            again(times(repeated(running()), 3), Some(UnixMs(11_000)), lost()),
        ),
        (
            times(repeated(running()), most - 1),
            again(times(repeated(running()), most), Some(UnixMs(69_000)), lost()),
        ),
        (
            times(repeated(running()), most),
            preceded(
                gone(),
                fails(
                    times(repeated(running()), most + 1),
                    FailReason::Interrupted,
                    lost(),
                ),
            ),
        ),
    ];
    for (record, expected) in cases {
        assert_eq!(interrupt(&record, 3), expected, "{record:?}");
    }
    // A worker that is being drained reports the same about itself, along with its handler's result.
    let drained = finish(&repeated(running()), End::Stopped(StopCause::Draining));
    assert_eq!(drained, again(times(repeated(running()), 1), None, ours()));
}

#[test]
fn claims_that_are_given_back() {
    let release = |record: &Record, attempt| apply(record, Change::Release { attempt, now: NOW });
    let released = || Happening::Released { attempt: 3 };
    let state = State::Queued {
        since: SUBMITTED,
        not_before: None,
        last: None,
    };
    assert_eq!(release(&running(), 3), step(running(), state, vec![released()]));
    let not_started = ending("it was not started", Value::Null);
    let expected = preceded(released(), is_cancelled(wished(running()), Some(not_started)));
    assert_eq!(release(&wished(running()), 3), expected);
}

#[test]
fn whoever_speaks_of_another_attempt_is_refused() {
    let mut cases = vec![
        (running(), 2, Refused::Fenced),
        (running(), 4, Refused::Fenced),
        (waiting(), 3, Refused::NotRunning),
    ];
    cases.extend(all_ended().into_iter().map(|record| (record, 2, Refused::Ended)));
    for (record, attempt, refused) in cases {
        assert_eq!(interrupt(&record, attempt), Err(refused), "{record:?}");
        let release = Change::Release { attempt, now: NOW };
        assert_eq!(apply(&record, release), Err(refused), "{record:?}");
    }
}
