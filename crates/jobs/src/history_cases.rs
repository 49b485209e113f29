//! Stored jobs are read back unchanged, by this daemon and by an older one.

use std::sync::Arc;

use eventlog::{BODY_LIMIT_BYTES, BlobId, EntityEvent, Event, Head, NewEvent, Sequence, StoredHead, Version};
use proptest::prelude::*;
use protocol::{JobId, JobIfInterrupted};
use serde_json::{Value, json};

use crate::{
    PAYLOAD_LIMIT_BYTES, RESULT_LIMIT_BYTES,
    history::{
        Happening, Moment, RESULT_LIMIT_LEVELS, bounded_result, job_stream, key_stream, lane_stream, moment,
        output_stream, submission_of, submitted_event,
    },
    job::{
        Attempt, CancelRequest, Ending, FailReason, Job, Lane, NewJob, OutputEnd, Priority, Record, State,
        Worker,
    },
};
use eventlog::UnixMs;

fn ending() -> Ending {
    Ending {
        attempt: 2,
        home: Some("home_1".into()),
        started_at: UnixMs(5),
        ended_at: UnixMs(9),
        text: "exit code 1".to_owned(),
        result: json!({ "code": 1, "killed": [7, "x\u{0}"], "large": u64::MAX, "small": i64::MIN }),
        output: OutputEnd {
            bytes: 7,
            lost: Some("the disk is full".to_owned()),
        },
    }
}

fn stored(new: NewEvent) -> Event {
    Event {
        sequence: Sequence::from_u64(4),
        at_ms: 77,
        kind: new.kind,
        body: new.body,
    }
}

fn happenings() -> Vec<Happening> {
    let text = || "why not".to_owned();
    vec![
        Happening::Claimed {
            attempt: 2,
            home: Arc::from("home_1"),
        },
        Happening::Released { attempt: 2 },
        Happening::CancelRequested {
            by: "me".to_owned(),
            why: text(),
        },
        Happening::Retrying {
            ending: ending(),
            reason: FailReason::TimedOut,
            not_before: UnixMs(12),
        },
        Happening::Interrupted {
            attempt: 2,
            text: text(),
        },
        Happening::Succeeded { ending: ending() },
        Happening::Failed {
            reason: FailReason::DependencyFailed,
            ending: Some(ending()),
        },
        Happening::Failed {
            reason: FailReason::NoHandler,
            ending: None,
        },
        Happening::Cancelled {
            ending: Some(ending()),
        },
        Happening::Cancelled { ending: None },
    ]
}

#[test]
fn what_happened_can_be_read_back() {
    let events = happenings()
        .iter()
        .map(|happening| happening.encode().unwrap())
        .collect::<Vec<_>>();
    let kinds: Vec<_> = events.iter().map(|event| event.kind.to_string()).collect();
    let expected = [
        "claimed",
        "released",
        "cancel_requested",
        "retrying",
        "interrupted",
        "succeeded",
        "failed",
        "failed",
        "cancelled",
        "cancelled",
    ];
    assert_eq!(kinds, expected);
    for (event, happening) in events.into_iter().zip(happenings()) {
        let expected = Moment {
            sequence: Sequence::from_u64(4),
            at: UnixMs(77),
            happening,
        };
        assert_eq!(moment(&stored(event)), Some(expected));
    }
}

#[test]
fn events_of_a_newer_daemon_are_read_as_far_as_they_are_known() {
    let event = |kind: &str, body: &str| Event {
        sequence: Sequence::START,
        at_ms: -1,
        kind: Arc::from(kind),
        body: Arc::from(body.as_bytes()),
    };
    let released = r#"{"event":"released","attempt":3,"mood":{"good":true}}"#;
    let cases = [
        ("released", released, Some(Happening::Released { attempt: 3 })),
        ("paused", r#"{"event":"paused"}"#, None),
        ("released", "{", None),
        ("released", r#"{"event":"released"}"#, None),
        // The kind decides, and the body must agree with it.
        ("claimed", released, None),
        ("submitted", released, None),
    ];
    for (kind, body, happening) in cases {
        let expected = happening.map(|happening| Moment {
            sequence: Sequence::START,
            at: UnixMs(0),
            happening,
        });
        assert_eq!(moment(&event(kind, body)), expected, "{kind} {body}");
        assert_eq!(submission_of(&event(kind, body)), None, "{kind} {body}");
    }
}

fn check_payload(payload: &[u8]) -> Event {
    let blobs = vec![BlobId::from_bytes([3; 32]), BlobId::from_bytes([250; 32])];
    let new = submitted_event("me \"and\" you", payload, blobs.clone()).unwrap();
    assert_eq!(new.blobs, blobs);
    let event = stored(new);
    let submission = submission_of(&event).unwrap();
    assert!(*submission.payload == *payload, "{payload:?}");
    assert_eq!(
        (submission.by.as_str(), submission.blobs),
        ("me \"and\" you", blobs)
    );
    assert!(*submission_of(&event).unwrap().payload == *payload);
    let by = submission.by;
    let happening = moment(&event).unwrap().happening;
    assert_eq!(happening, Happening::Submitted { by });
    event
}

#[test]
fn payloads_come_back_byte_by_byte() {
    let deep = [vec![b'['; 10_000], vec![b']'; 10_000]].concat();
    let cases: [(&[u8], &str); 10] = [
        (
            br#"{"argv":["cargo",  "test"]}"#,
            r#""payload":{"argv":["cargo",  "test"]}"#,
        ),
        (br#""x""#, r#""payload":"x""#),
        (b"null", r#""payload_base64":"bnVsbA==""#),
        (b"1.50e+3", r#""payload":1.50e+3"#),
        (b" {} ", r#""payload_base64":"IHt9IA==""#),
        (b"{}\n", r#""payload_base64":"e30K""#),
        (b"", r#""payload_base64":"""#),
        (b"{\"a\":\"\xff\"}", "payload_base64"),
        (b"\0\xff", r#""payload_base64":"AP8=""#),
        (&deep, "payload\":[[[["),
    ];
    for (payload, part) in cases {
        let body = check_payload(payload).body;
        let body = std::str::from_utf8(&body).unwrap();
        assert!(body.contains(part), "{part} in {body:.200}");
    }
}

#[test]
fn the_largest_payload_fits() {
    let text = format!("\"{}\"", "\\u0000".repeat(PAYLOAD_LIMIT_BYTES / 6 - 1));
    for payload in [
        vec![0; PAYLOAD_LIMIT_BYTES],
        vec![b'7'; PAYLOAD_LIMIT_BYTES],
        text.into_bytes(),
    ] {
        assert!(check_payload(&payload).body.len() < BODY_LIMIT_BYTES);
    }
}

fn records() -> Vec<Record> {
    let mut facts = NewJob::new("command", "cargo test", Vec::new(), "me").facts;
    let plain = facts.clone();
    facts.priority = Priority::LOWEST;
    facts.lane = Some(Lane {
        name: Arc::from("cargo"),
        limit: std::num::NonZeroU16::MAX,
    });
    facts.after = vec![JobId::generate(), JobId::generate()];
    facts.deadline = Some(UnixMs(u64::MAX));
    facts.time_limit_ms = Some(1);
    facts.retry.max_retries = 3;
    facts.if_interrupted = JobIfInterrupted::Repeat;
    facts.idempotency_key = Some("k\n".to_owned());
    facts.retry_of = Some(JobId::generate());
    let attempt = Attempt {
        number: u32::MAX,
        worker: Worker {
            lease_key: Arc::from("job-worker/boot_1"),
            lease_token: u64::MAX,
            home: Arc::from("home_1"),
        },
        claimed_at: UnixMs(8),
    };
    let states = [
        State::Queued {
            since: UnixMs(7),
            not_before: Some(UnixMs(9)),
            last: Some(ending()),
        },
        State::Queued {
            since: UnixMs(7),
            not_before: None,
            last: None,
        },
        State::Running { attempt },
        State::Succeeded { ending: ending() },
        State::Failed {
            reason: FailReason::DeadlinePassed,
            ending: None,
        },
        State::Cancelled {
            ending: Some(ending()),
        },
    ];
    let record = |(index, state): (usize, State)| Record {
        facts: if index % 2 == 0 {
            facts.clone()
        } else {
            plain.clone()
        },
        submitted_at: UnixMs(6),
        attempts: 3,
        failures: 2,
        interruptions: 1,
        cancel: (index % 2 == 0).then(|| CancelRequest {
            by: "you".to_owned(),
            why: String::new(),
            at: UnixMs(7),
        }),
        state,
    };
    states.into_iter().enumerate().map(record).collect()
}

fn head(record: &Record) -> Head {
    let write = Job::new(JobId::generate(), record.clone()).write(&[]);
    write.unwrap().head.unwrap()
}

fn stored_head(id: JobId, head: Head) -> StoredHead {
    StoredHead {
        stream: job_stream(id),
        version: Version::from_u64(5),
        last_sequence: Sequence::from_u64(4),
        head,
    }
}

#[test]
fn records_can_be_read_back() {
    let id = JobId::generate();
    for record in records() {
        let head = head(&record);
        assert_eq!(
            (&*head.kind, &*head.status),
            ("job", record.state.name().as_str())
        );
        let expected = Job {
            id,
            version: Version::from_u64(5),
            last_sequence: Sequence::from_u64(4),
            record,
        };
        assert_eq!(Job::decode(&stored_head(id, head)).unwrap(), expected);
    }
}

#[test]
fn a_head_of_a_newer_daemon_is_still_a_job() {
    let id = JobId::generate();
    for record in records() {
        let mut head = head(&record);
        let mut value: Value = serde_json::from_slice(&head.body).unwrap();
        value["colour"] = json!("blue");
        value["facts"]["colour"] = json!({ "is": "blue" });
        value["state"]["colour"] = json!(["blue"]);
        head.body = Arc::from(serde_json::to_vec(&value).unwrap());
        assert_eq!(
            Job::decode(&stored_head(id, head.clone())).unwrap().record,
            record
        );
        head.body = Arc::from(&b"{}"[..]);
        let error = Job::decode(&stored_head(id, head)).unwrap_err();
        assert_eq!(error.stream, job_stream(id));
    }
}

#[test]
fn a_result_that_was_kept_can_be_read_back() {
    let nested = |levels: usize| (1..levels).fold(json!(1), |inner, _| json!([inner]));
    let large = |bytes: usize| json!("x".repeat(bytes));
    let left_out = bounded_result(large(RESULT_LIMIT_BYTES));
    assert_eq!(
        left_out,
        json!({ "left_out": "the result was too large to be kept" })
    );
    for kept in [
        Value::Null,
        nested(RESULT_LIMIT_LEVELS),
        large(RESULT_LIMIT_BYTES - 2),
    ] {
        assert_eq!(bounded_result(kept.clone()), kept);
        let mut record = records().remove(3);
        let ending = Ending {
            result: kept,
            ..ending()
        };
        record.state = State::Succeeded { ending };
        let id = JobId::generate();
        assert_eq!(
            Job::decode(&stored_head(id, head(&record))).unwrap().record,
            record
        );
    }
    assert_eq!(bounded_result(nested(RESULT_LIMIT_LEVELS + 1)), left_out);
    let object = json!({ "a": nested(RESULT_LIMIT_LEVELS) });
    assert_eq!(bounded_result(object), left_out);
}

#[test]
fn names_of_streams() {
    let id: JobId = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".parse().unwrap();
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_string();
    let (long, bell) = ("ü".repeat(101), "a\u{7}");
    let cases = [
        (job_stream(id), format!("job/{id}")),
        (output_stream(id), format!("job-output/{id}")),
        (key_stream(bell), format!("job-key/{}", hash(bell))),
        (key_stream(""), format!("job-key/{}", hash(""))),
        (
            lane_stream("cargo:/home/me"),
            "job-lane/cargo:/home/me".to_owned(),
        ),
        (
            lane_stream(&"ü".repeat(100)),
            format!("job-lane/{}", "ü".repeat(100)),
        ),
        (lane_stream(&long), format!("job-lane-hash/{}", hash(&long))),
        (lane_stream(bell), format!("job-lane-hash/{}", hash(bell))),
    ];
    for (stream, name) in cases {
        assert_eq!(stream.as_str(), name);
    }
    assert_eq!(Job::id_of(&job_stream(id)), Some(id));
    for other in [
        output_stream(id),
        key_stream("k"),
        lane_stream("l"),
        lane_stream(bell),
    ] {
        assert_eq!(Job::id_of(&other), None, "{other}");
    }
}

proptest! {
    #[test]
    fn every_payload_comes_back(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        check_payload(&payload);
    }

    #[test]
    fn every_text_comes_back(payload in "[ \\[\\]{}\",:0-9a-z\\\\.\\n-]{0,12}") {
        check_payload(payload.as_bytes());
    }

    #[test]
    fn every_lane_and_key_has_a_stream(name in any::<String>()) {
        let streams = [lane_stream(&name), key_stream(&name)];
        prop_assert_ne!(&streams[0], &streams[1]);
    }
}
