//! Every rule of `state.rs`, case by case, comparing the whole step.

mod ends;

use std::{sync::Arc, time::Duration};

use protocol::{JobId, JobState};
use serde_json::{Value, json};

use crate::{
    history::Happening,
    job::{
        Attempt, CancelRequest, Ending, Facts, FailReason, NewJob, OutputEnd, Record, RetryPolicy, State,
        Worker,
    },
    state::{Change, Refused, Step, apply, pause, submitted},
};
use eventlog::UnixMs;

const SUBMITTED: UnixMs = UnixMs(1_000);
const CLAIMED: UnixMs = UnixMs(5_000);
const NOW: UnixMs = UnixMs(9_000);
const DEADLINE: UnixMs = UnixMs(20_000);

fn worker(name: &str) -> Worker {
    Worker {
        lease_key: Arc::from(format!("job-worker/{name}")),
        lease_token: 7,
        home: Arc::from(name),
    }
}

fn facts() -> Facts {
    let mut facts = NewJob::new("command", "test", Vec::new(), "me").facts;
    facts.retry = RetryPolicy {
        max_retries: 2,
        first_pause_ms: 1_000,
        longest_pause_ms: 60_000,
    };
    facts
}

fn record(facts: Facts, state: State) -> Record {
    Record {
        facts,
        submitted_at: SUBMITTED,
        attempts: 3,
        failures: 0,
        interruptions: 0,
        cancel: None,
        state,
    }
}

/// How attempt 2 ended.
fn earlier() -> Ending {
    Ending {
        home: Some("a".into()),
        attempt: 2,
        started_at: UnixMs(2_000),
        ended_at: UnixMs(3_000),
        text: "exit code 1".to_owned(),
        result: json!({ "code": 1 }),
        output: OutputEnd::default(),
    }
}

fn waiting() -> Record {
    let state = State::Queued {
        since: UnixMs(4_000),
        not_before: None,
        last: Some(earlier()),
    };
    record(facts(), state)
}

/// Attempt 3 is running, at `a`.
fn running() -> Record {
    let attempt = Attempt {
        number: 3,
        worker: worker("a"),
        claimed_at: CLAIMED,
    };
    record(facts(), State::Running { attempt })
}

fn with(mut record: Record, change: impl FnOnce(&mut Record)) -> Record {
    change(&mut record);
    record
}

fn wish() -> CancelRequest {
    CancelRequest {
        by: "you".to_owned(),
        why: "enough".to_owned(),
        at: UnixMs(8_000),
    }
}

fn wished(record: Record) -> Record {
    with(record, |record| record.cancel = Some(wish()))
}

fn step(record: Record, state: State, happenings: Vec<Happening>) -> Result<Step, Refused> {
    let record = with(record, |record| record.state = state);
    Ok(Step { record, happenings })
}

fn fails(record: Record, reason: FailReason, ending: Ending) -> Result<Step, Refused> {
    let ending = Some(ending);
    let state = State::Failed {
        reason,
        ending: ending.clone(),
    };
    step(record, state, vec![Happening::Failed { reason, ending }])
}

fn is_cancelled(record: Record, ending: Option<Ending>) -> Result<Step, Refused> {
    let state = State::Cancelled {
        ending: ending.clone(),
    };
    step(record, state, vec![Happening::Cancelled { ending }])
}

fn preceded(by: Happening, step: Result<Step, Refused>) -> Result<Step, Refused> {
    step.map(|mut step| {
        step.happenings.insert(0, by);
        step
    })
}

fn due(record: Record, deadline: UnixMs) -> Record {
    with(record, |record| record.facts.deadline = Some(deadline))
}

fn all_ended() -> Vec<Record> {
    let ending = Some(earlier());
    let states = [
        State::Succeeded { ending: earlier() },
        State::Failed {
            reason: FailReason::TimedOut,
            ending: ending.clone(),
        },
        State::Cancelled { ending },
    ];
    states.map(|state| record(facts(), state)).into()
}

#[test]
fn a_new_job_waits_from_when_it_may_start() {
    let cases = [
        (Duration::ZERO, SUBMITTED, None),
        (Duration::from_secs(2), UnixMs(3_000), Some(UnixMs(3_000))),
    ];
    for (delay, since, not_before) in cases {
        let state = State::Queued {
            since,
            not_before,
            last: None,
        };
        let expected = with(record(facts(), state), |record| record.attempts = 0);
        let happening = Happening::Submitted { by: "me".to_owned() };
        assert_eq!(submitted(facts(), delay, SUBMITTED), (expected, happening));
    }
}

#[test]
fn claims() {
    let claim = |record: &Record| {
        let change = Change::Claim {
            worker: worker("b"),
            now: NOW,
        };
        apply(record, change)
    };
    let at = |moment| {
        with(waiting(), |record| {
            let State::Queued { not_before, .. } = &mut record.state else {
                return;
            };
            *not_before = Some(moment);
        })
    };
    let claimed = |record: Record| {
        let attempt = Attempt {
            number: 4,
            worker: worker("b"),
            claimed_at: NOW,
        };
        let happening = Happening::Claimed {
            attempt: 4,
            home: Arc::from("b"),
        };
        let record = with(record, |record| record.attempts = 4);
        step(record, State::Running { attempt }, vec![happening])
    };
    let on_time = due(waiting(), UnixMs(9_001));
    let cases = [
        (waiting(), claimed(waiting())),
        (at(NOW), claimed(at(NOW))),
        (at(UnixMs(9_001)), Err(Refused::TooEarly)),
        (on_time.clone(), claimed(on_time)),
        (due(waiting(), NOW), Err(Refused::DeadlinePassed)),
        (wished(waiting()), Err(Refused::Cancelling)),
        (running(), Err(Refused::NotQueued)),
    ];
    for (record, expected) in cases {
        assert_eq!(claim(&record), expected, "{record:?}");
    }
    for record in all_ended() {
        assert_eq!(claim(&record), Err(Refused::Ended));
    }
}

#[test]
fn cancels() {
    let cancel = |record: &Record| {
        let CancelRequest { by, why, at: now } = wish();
        apply(record, Change::Cancel { by, why, now })
    };
    let requested = || Happening::CancelRequested {
        by: "you".to_owned(),
        why: "enough".to_owned(),
    };
    let at_once = preceded(requested(), is_cancelled(wished(waiting()), Some(earlier())));
    let written = step(wished(running()), running().state, vec![requested()]);
    assert_eq!(cancel(&waiting()), at_once);
    assert_eq!(cancel(&running()), written);
    assert_eq!(cancel(&wished(running())), Err(Refused::AlreadyCancelling));
    for record in all_ended() {
        assert_eq!(cancel(&record), Err(Refused::Ended));
    }
}

#[test]
fn jobs_that_are_given_up_while_they_wait() {
    let never = || {
        with(waiting(), |record| {
            record.state = State::Queued {
                since: SUBMITTED,
                not_before: None,
                last: None,
            };
        })
    };
    let said = |text: String| Ending {
        home: None,
        attempt: 0,
        started_at: NOW,
        ended_at: NOW,
        text,
        result: Value::Null,
        output: OutputEnd::default(),
    };
    let id = JobId::generate();
    let dependency = Change::DependencyFailed {
        id,
        state: JobState::Cancelled,
        now: NOW,
    };
    let (expire, no_handler) = (Change::Expire { now: NOW }, Change::NoHandler { now: NOW });
    let passed = |record| due(record, NOW);
    let (late, waited, nobody) = (
        FailReason::DeadlinePassed,
        FailReason::DependencyFailed,
        FailReason::NoHandler,
    );
    let too_late = said("its deadline passed before it was started".to_owned());
    let in_vain = said(format!("it waited for {id}, which ended as cancelled"));
    let by_nobody = said("there is no handler `command`".to_owned());
    let cases = [
        (passed(never()), &expire, fails(passed(never()), late, too_late)),
        (
            passed(waiting()),
            &expire,
            fails(passed(waiting()), late, earlier()),
        ),
        (due(waiting(), UnixMs(9_001)), &expire, Err(Refused::TooEarly)),
        (waiting(), &expire, Err(Refused::TooEarly)),
        (passed(running()), &expire, Err(Refused::NotQueued)),
        (running(), &expire, Err(Refused::NotQueued)),
        (never(), &dependency, fails(never(), waited, in_vain)),
        (running(), &dependency, Err(Refused::NotQueued)),
        (never(), &no_handler, fails(never(), nobody, by_nobody)),
        (waiting(), &no_handler, fails(waiting(), nobody, earlier())),
        (running(), &no_handler, Err(Refused::NotQueued)),
    ];
    for (record, change, expected) in cases {
        assert_eq!(
            apply(&record, change.clone()),
            expected,
            "{change:?} on {record:?}"
        );
    }
    for record in all_ended() {
        for change in [&expire, &dependency, &no_handler] {
            assert_eq!(apply(&record, change.clone()), Err(Refused::Ended));
        }
    }
}

#[test]
fn pauses_double_up_to_the_longest_and_half_of_them_is_chance() {
    let policy = |first_pause_ms, longest_pause_ms| RetryPolicy {
        max_retries: 1,
        first_pause_ms,
        longest_pause_ms,
    };
    let usual = policy(1_000, 60_000);
    let endless = policy(u64::MAX, u64::MAX);
    let cases = [
        (usual, 0, 1.0, 1_000),
        (usual, 1, 1.0, 1_000),
        (usual, 2, 1.0, 2_000),
        (usual, 6, 1.0, 32_000),
        (usual, 7, 1.0, 60_000),
        (usual, 64, 1.0, 60_000),
        (usual, 65, 1.0, 60_000),
        (usual, u32::MAX, 1.0, 60_000),
        (usual, 1, 0.0, 500),
        (usual, 1, 0.5, 750),
        (usual, 7, 0.0, 30_000),
        (usual, 1, -3.0, 500),
        (usual, 1, 3.0, 1_000),
        (usual, 1, f64::NAN, 500),
        (policy(0, 60_000), 9, 1.0, 0),
        (policy(1_000, 10), 1, 1.0, 10),
        (endless, 9, 1.0, u64::MAX),
    ];
    for (policy, nth, jitter, expected_ms) in cases {
        let answer = pause(&policy, nth, jitter);
        assert_eq!(
            answer,
            Duration::from_millis(expected_ms),
            "{policy:?} {nth} {jitter}"
        );
    }
}

#[test]
fn when_it_ended() {
    let state = |state: State| due(wished(record(facts(), state)), DEADLINE);
    let ending = || Some(earlier());
    let failed = |reason, ending| state(State::Failed { reason, ending });
    let cases = [
        (waiting(), None),
        (running(), None),
        (state(State::Succeeded { ending: earlier() }), Some(UnixMs(3_000))),
        (failed(FailReason::AttemptFailed, ending()), Some(UnixMs(3_000))),
        (failed(FailReason::AttemptFailed, None), Some(SUBMITTED)),
        (failed(FailReason::DeadlinePassed, ending()), Some(DEADLINE)),
        (state(State::Cancelled { ending: ending() }), Some(UnixMs(8_000))),
        (state(State::Cancelled { ending: None }), Some(UnixMs(8_000))),
    ];
    for (record, expected) in cases {
        assert_eq!(record.ended_at(), expected, "{record:?}");
    }
}
