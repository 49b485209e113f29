use std::num::NonZeroU16;
use std::sync::Arc;

use eventlog::{Sequence, Version};
use jobs::{Attempt, FailReason, Happening, NewJob, Record, Worker};
use protocol::JobChannel;
use serde_json::{Value, json};

use super::*;

const ID: &str = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";
const OTHER: &str = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TY";

fn ending(attempt: u32, text: &str, result: Value) -> Ending {
    Ending {
        attempt,
        home: None,
        started_at: UnixMs(2_000),
        ended_at: UnixMs(5_500),
        text: text.to_owned(),
        result,
        output: jobs::OutputEnd::default(),
    }
}

fn job(state: State) -> Job {
    let facts = NewJob::new("command", "cargo test", Vec::new(), "me").facts;
    let record = Record {
        facts,
        submitted_at: UnixMs(1_000),
        attempts: 1,
        failures: 0,
        interruptions: 0,
        cancel: None,
        state,
    };
    Job {
        version: Version::from_u64(7),
        ..Job::new(ID.parse().unwrap(), record)
    }
}

/// The fields of a job that differ from those of a default job.
fn told_of(job: &Job, waiting: Option<WaitingFor>) -> Value {
    let output = OutputSummary::default();
    let mut shown = serde_json::to_value(to_wire(job, &output, waiting, UnixMs(10_000))).unwrap();
    for usual in [
        "id",
        "version",
        "title",
        "handler",
        "priority",
        "submitted_by",
        "submitted_at",
        "attempts",
        "max_retries",
        "interruptions",
        "if_interrupted",
        "output_bytes",
        "cut_bytes",
        "output_sequence",
    ] {
        assert!(shown.as_object_mut().unwrap().remove(usual).is_some(), "{usual}");
    }
    shown
}

#[test]
fn each_state_tells_what_belongs_to_it() {
    let at = |seconds: u32| format!("1970-01-01T00:00:{seconds:02}.000Z");
    let queued = |last| State::Queued {
        since: UnixMs(1_000),
        not_before: Some(UnixMs(12_000)),
        last,
    };
    let running = State::Running {
        attempt: Attempt {
            number: 1,
            worker: Worker {
                lease_key: Arc::from("job-worker/x"),
                lease_token: 3,
                home: Arc::from("home_1"),
            },
            claimed_at: UnixMs(4_000),
        },
    };
    let exited = json!({ "exit": { "code": 3 }, "killed_count": 0 });
    let killed = json!({
        "exit": { "signal": 9 }, "killed_count": 2, "killed": [{ "pid": 4, "name": "sh" }], "left": [],
        "confinement": "partial",
    });
    for (state, waiting, expected) in [
        (
            queued(None),
            Some(WaitingFor::Time(UnixMs(12_100))),
            json!({ "state": "queued", "not_before": at(12), "waiting_for": "its start time, in 2.1 s", "killed_count": 0 }),
        ),
        (
            queued(Some(ending(1, "exit code 3", exited.clone()))),
            Some(WaitingFor::Worker { running: 4, limit: 4 }),
            json!({
                "state": "queued", "not_before": at(12), "waiting_for": "a place: 4 of 4 jobs are running", "killed_count": 0,
                "started_at": at(2), "ran_ms": 3_500, "text": "exit code 3", "exit": { "code": 3 },
            }),
        ),
        (
            running,
            None,
            json!({
                "state": "running", "started_at": at(4), "ran_ms": 6_000, "worker": "home_1", "killed_count": 0,
            }),
        ),
        (
            State::Succeeded {
                ending: ending(1, "", json!({ "exit": { "code": 0 } })),
            },
            None,
            json!({
                "state": "succeeded", "started_at": at(2), "ended_at": "1970-01-01T00:00:05.500Z", "ran_ms": 3_500,
                "exit": { "code": 0 }, "killed_count": 0,
            }),
        ),
        (
            State::Failed {
                reason: FailReason::TimedOut,
                ending: Some(ending(1, "it took too long", killed)),
            },
            None,
            json!({
                "state": "failed", "started_at": at(2), "ended_at": "1970-01-01T00:00:05.500Z", "ran_ms": 3_500,
                "reason": "timed_out", "text": "it took too long", "exit": { "signal": 9 }, "killed_count": 2,
                "killed": [{ "pid": 4, "name": "sh" }], "confinement": "partial",
            }),
        ),
        // The result of another handler isn't mistaken for a command's.
        (
            State::Failed {
                reason: FailReason::NoHandler,
                ending: Some(ending(1, "", json!({ "exit": "no" }))),
            },
            None,
            json!({
                "state": "failed", "started_at": at(2), "ended_at": "1970-01-01T00:00:05.500Z", "ran_ms": 3_500,
                "reason": "no_handler", "killed_count": 0,
            }),
        ),
        (
            State::Cancelled { ending: None },
            None,
            json!({ "state": "cancelled", "ended_at": at(1), "killed_count": 0 }),
        ),
    ] {
        assert_eq!(told_of(&job(state), waiting), expected);
    }
}

#[test]
fn what_a_job_waits_for_is_said_in_one_line() {
    let lane = Lane {
        name: Arc::from("cargo:/a"),
        limit: NonZeroU16::MIN,
    };
    let jobs = |ids: &[&str]| WaitingFor::Jobs(ids.iter().map(|id| id.parse().unwrap()).collect());
    for (waiting, lane, expected) in [
        (
            WaitingFor::Worker { running: 4, limit: 4 },
            None,
            "a place: 4 of 4 jobs are running",
        ),
        (
            WaitingFor::Worker { running: 1, limit: 1 },
            None,
            "a place: 1 of 1 job is running",
        ),
        (
            WaitingFor::Time(UnixMs(3_700_000)),
            None,
            "its start time, in 1 h 1 min",
        ),
        (WaitingFor::Time(UnixMs(1)), None, "its start time, in 0 ms"),
        (jobs(&[ID]), None, ID),
        (jobs(&[ID, OTHER]), None, &format!("{ID} and 1 more")),
        (WaitingFor::Lane, Some(&lane), "room in the lane cargo:/a"),
    ] {
        assert_eq!(waiting_text(&waiting, lane, UnixMs(10_000)), expected);
    }
}

#[test]
fn the_history_is_told_one_line_for_each_moment() {
    let mut retried = job(State::Cancelled { ending: None });
    retried.record.facts.retry.max_retries = 3;
    let by = || "req_1 over unix".to_owned();
    let retrying = |attempt, reason, text| Happening::Retrying {
        ending: ending(attempt, text, Value::Null),
        reason,
        not_before: UnixMs(8_100),
    };
    let cases = [
        (Happening::Submitted { by: by() }, "submitted: by req_1 over unix"),
        (
            Happening::Claimed {
                attempt: 1,
                home: Arc::from("home_1"),
            },
            "claimed: attempt 1, by home_1",
        ),
        (
            retrying(1, FailReason::AttemptFailed, "exit code 3"),
            "retrying: attempt 1 of 4 failed: exit code 3; the next one in 2.1 s",
        ),
        (
            Happening::Released { attempt: 2 },
            "released: attempt 2 was released before it started",
        ),
        (
            retrying(3, FailReason::TimedOut, ""),
            "retrying: attempt 3 took too long; the next one in 2.1 s",
        ),
        (
            Happening::Interrupted {
                attempt: 4,
                text: String::new(),
            },
            "interrupted: attempt 4 lost its worker",
        ),
        (
            Happening::Interrupted {
                attempt: 5,
                text: "the daemon ended".to_owned(),
            },
            "interrupted: attempt 5: the daemon ended",
        ),
        (
            Happening::CancelRequested {
                by: by(),
                why: String::new(),
            },
            "cancel_requested: by req_1 over unix",
        ),
        (
            Happening::CancelRequested {
                by: by(),
                why: "wrong branch".to_owned(),
            },
            "cancel_requested: by req_1 over unix: wrong branch",
        ),
        (
            Happening::Succeeded {
                ending: ending(6, "", Value::Null),
            },
            "succeeded: attempt 6, in 3.5 s",
        ),
        (
            Happening::Failed {
                reason: FailReason::AttemptFailed,
                ending: Some(ending(6, "exit code 3", Value::Null)),
            },
            "failed: exit code 3",
        ),
        (
            Happening::Failed {
                reason: FailReason::TimedOut,
                ending: Some(ending(6, "signal 15", Value::Null)),
            },
            "failed: the last attempt took too long: signal 15",
        ),
        (
            Happening::Failed {
                reason: FailReason::DependencyFailed,
                ending: None,
            },
            "failed: a job it depends on didn't succeed",
        ),
        (Happening::Cancelled { ending: None }, "cancelled: before it ran"),
        (
            Happening::Cancelled {
                ending: Some(ending(6, "signal 15", Value::Null)),
            },
            "cancelled: nothing of it runs any more: signal 15",
        ),
    ];
    let moments: Vec<Moment> = cases
        .iter()
        .enumerate()
        .map(|(index, (happening, _))| Moment {
            sequence: Sequence::from_u64(index as u64 + 1),
            at: UnixMs(6_000),
            happening: happening.clone(),
        })
        .collect();
    let told = moments_to_wire(&retried, &moments);
    let lines: Vec<String> = told
        .iter()
        .map(|moment| format!("{}: {}", moment.event, moment.text))
        .collect();
    let expected: Vec<&str> = cases.iter().map(|(_, line)| *line).collect();
    assert_eq!(lines, expected);
    assert_eq!(
        (told[0].sequence, told[0].at.as_str()),
        (1, "1970-01-01T00:00:06.000Z")
    );
}

#[test]
fn output_is_text_if_it_is_and_base64_otherwise() {
    for (bytes, expected) in [
        (
            "grün\n".as_bytes(),
            json!({ "sequence": 4, "at": "1970-01-01T00:00:00.007Z", "channel": "stderr", "text": "grün\n" }),
        ),
        (
            b"\xff\x00",
            json!({ "sequence": 4, "at": "1970-01-01T00:00:00.007Z", "channel": "stderr", "base64": "/wA=" }),
        ),
    ] {
        let piece = Piece {
            sequence: Sequence::from_u64(4),
            at_ms: 7,
            channel: JobChannel::Stderr,
            bytes: Arc::from(bytes),
        };
        assert_eq!(serde_json::to_value(piece_to_wire(&piece)).unwrap(), expected);
    }
}

#[test]
fn output_that_was_not_kept_is_told() {
    let shown = |bytes: u64, lost: Option<&str>, kept: u64| {
        let ending = Ending {
            output: jobs::OutputEnd {
                bytes,
                lost: lost.map(str::to_owned),
            },
            ..ending(1, "", Value::Null)
        };
        let summary = OutputSummary {
            bytes: kept,
            ..OutputSummary::default()
        };
        let job = job(State::Succeeded { ending });
        to_wire(&job, &summary, None, UnixMs(10_000)).output_lost
    };
    assert_eq!(shown(3, None, 3), None);
    assert_eq!(
        shown(0, None, 3),
        None,
        "a job of an earlier version does not know"
    );
    assert_eq!(
        shown(0, Some("the disk is full"), 2).as_deref(),
        Some("the disk is full")
    );
    // The log acknowledged it, then rolled it back when the disk was full.
    assert_eq!(
        shown(3, None, 1).as_deref(),
        Some("the log could not bring it to disk")
    );
}
