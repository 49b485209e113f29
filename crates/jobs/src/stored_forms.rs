//! The log of every home holds these bytes: each literal must decode, and encode to the same bytes again.

use std::fmt::Debug;
use std::sync::Arc;

use eventlog::{Head, Sequence, StoredHead, Version};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::dispatch::Lane;
use crate::history::{self, Happening};
use crate::job::{Facts, Record};
use crate::output::OutputSummary;
use crate::submit::IdempotencyKey;

fn check<T: Debug + DeserializeOwned + Serialize>(stored: &str) {
    let read: T = serde_json::from_str(stored).unwrap_or_else(|error| panic!("{error}: {stored}"));
    assert_eq!(serde_json::to_string(&read).unwrap(), stored);
}

/// Every fact that a job can have.
const FACTS: &str = concat!(
    r#"{"handler":"command","title":"cargo test","priority":-3,"#,
    r#""lane":{"name":"cargo:/home/me/project","limit":2},"#,
    r#""after":["job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX","job_01JCZ8T6V8Y3N5K2M4Q7R9S1TY"],"waits_until":"end","#,
    r#""deadline":1700000060000,"time_limit_ms":5000,"#,
    r#""retry":{"max_retries":2,"first_pause_ms":500,"longest_pause_ms":60000},"if_interrupted":"repeat","#,
    r#""idempotency_key":"k1","retry_of":"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TZ","output_limit_bytes":4096,"#,
    r#""home":"home_01JCZ8T6V8Y3N5K2M4Q7R9S1TX","pool":"foreground","#,
    r#""followed_by":"job_01JCZ8T6V8Y3N5K2M4Q7R9S1V0","submitted_by":"me"}"#
);
/// The fewest facts that a job can have.
const FEW_FACTS: &str = concat!(
    r#"{"handler":"command","title":"true","if_interrupted":"fail","#,
    r#""output_limit_bytes":16777216,"submitted_by":"me"}"#
);
const ENDING: &str = concat!(
    r#"{"attempt":2,"home":"home_1","started_at":2000,"ended_at":5500,"text":"exit code 3","#,
    r#""result":{"exit":{"code":3}},"output":{"bytes":7,"lost":"the disk is full"}}"#
);
const BARE_ENDING: &str = r#"{"attempt":0,"started_at":2000,"ended_at":2000}"#;

#[test]
fn facts() {
    check::<Facts>(FACTS);
    check::<Facts>(FEW_FACTS);
}

#[test]
fn heads_of_jobs_in_every_state() {
    let cancel = r#""cancel":{"by":"me","why":"wrong branch","at":4000},"#;
    let queued = r#"{"state":"queued","since":1000}"#.to_owned();
    let retried = format!(r#"{{"state":"queued","since":1000,"not_before":12000,"last":{ENDING}}}"#);
    let running = concat!(
        r#"{"state":"running","attempt":{"number":3,"worker":"#,
        r#"{"lease_key":"job-worker/x","lease_token":9,"home":"home_1"},"claimed_at":4000}}"#
    );
    let succeeded = format!(r#"{{"state":"succeeded","ending":{ENDING}}}"#);
    let failed = |reason: &str| format!(r#"{{"state":"failed","reason":"{reason}","ending":{BARE_ENDING}}}"#);
    let given_up = r#"{"state":"failed","reason":"no_handler"}"#.to_owned();
    let cancelled = format!(r#"{{"state":"cancelled","ending":{ENDING}}}"#);
    let never_ran = r#"{"state":"cancelled"}"#.to_owned();
    let states = [
        queued,
        retried,
        running.to_owned(),
        succeeded,
        failed("attempt_failed"),
        failed("timed_out"),
        failed("deadline_passed"),
        failed("interrupted"),
        failed("dependency_failed"),
        given_up,
        cancelled,
        never_ran,
    ];
    for state in &states {
        for (facts, cancel) in [(FACTS, cancel), (FEW_FACTS, "")] {
            check::<Record>(&format!(
                r#"{{"facts":{facts},"submitted_at":1000,"attempts":2,"failures":1,"interruptions":1,{cancel}"state":{state}}}"#
            ));
        }
    }
}

#[test]
fn events_of_jobs() {
    for event in [
        r#"{"event":"submitted","by":"me"}"#.to_owned(),
        r#"{"event":"claimed","attempt":1,"home":"home_1"}"#.to_owned(),
        r#"{"event":"released","attempt":1}"#.to_owned(),
        r#"{"event":"cancel_requested","by":"me","why":""}"#.to_owned(),
        format!(r#"{{"event":"retrying","ending":{ENDING},"reason":"timed_out","not_before":8100}}"#),
        r#"{"event":"interrupted","attempt":4,"text":"the daemon ended"}"#.to_owned(),
        format!(r#"{{"event":"succeeded","ending":{BARE_ENDING}}}"#),
        format!(r#"{{"event":"failed","reason":"attempt_failed","ending":{ENDING}}}"#),
        r#"{"event":"failed","reason":"dependency_failed"}"#.to_owned(),
        format!(r#"{{"event":"cancelled","ending":{ENDING}}}"#),
        r#"{"event":"cancelled"}"#.to_owned(),
    ] {
        check::<Happening>(&event);
    }
}

#[test]
fn keys_and_output() {
    check::<IdempotencyKey>(r#"{"key":"k1","job":"job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX","asks_for":"00ff"}"#);
    check::<OutputSummary>(r#"{"bytes":70,"cut_bytes":7}"#);
    check::<OutputSummary>(r#"{"bytes":70,"cut_bytes":7,"progress":{"done":3}}"#);
    check::<OutputSummary>(
        r#"{"bytes":70,"cut_bytes":7,"progress":{"done":3,"total":9,"text":"compiling"}}"#,
    );
}

#[test]
fn a_lane() {
    let stored = concat!(
        r#"{"name":"cargo:/home/me/project","#,
        r#""running":["job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX","job_01JCZ8T6V8Y3N5K2M4Q7R9S1TY"]}"#
    );
    let head = StoredHead {
        stream: history::lane_stream("cargo:/home/me/project"),
        version: Version::from_u64(5),
        last_sequence: Sequence::from_u64(0),
        head: Head {
            kind: Arc::from("job-lane"),
            status: Arc::from("busy"),
            body: Arc::from(stored.as_bytes()),
            blobs: Vec::new(),
        },
    };
    let (name, lane) = Lane::read(&head).unwrap();
    let write = lane.write(&name, lane.running.clone()).unwrap();
    assert_eq!((&write.stream, write.head), (&head.stream, Some(head.head)));
}
