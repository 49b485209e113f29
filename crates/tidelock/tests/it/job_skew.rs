//! A daemon of another version: what it says of the end of a job is not understood, and nobody waits for better words.

use serde_json::{Value, json};

use crate::harness::{World, finish};
use crate::job_stage::job_command;
use crate::played::{answer, by_path};

const ID: &str = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";

fn job(state: &str) -> Value {
    json!({
        "id": ID, "state": state, "version": 3, "title": "true", "handler": "command", "priority": 0,
        "submitted_by": "the test", "submitted_at": "2026-01-31T09:30:00.000Z", "attempts": 1, "max_retries": 0,
        "interruptions": 0, "if_interrupted": "fail", "output_bytes": 0, "cut_bytes": 0, "output_sequence": 0,
    })
}

#[test]
fn an_end_that_is_not_understood_ends_the_wait_all_the_same() {
    for (event, head, code, said) in [
        // The event cannot be read, or has another name; the job itself can be.
        ("event: end\ndata: {\"what\": 1}", "succeeded", 0, ""),
        ("event: over\ndata: {}", "succeeded", 0, ""),
        ("event: end\ndata: no JSON", "failed", 1, "failed"),
        // Nothing can be.
        ("event: end\ndata: {}", "evaporated", 1, "does not understand"),
    ] {
        let world = World::new();
        let stream = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: hello\n\n{event}\n\n"
        );
        by_path(&world, move |head_line| {
            if head_line.contains("/logs") {
                stream.clone()
            } else if head_line.starts_with("POST") {
                answer("201 Created", &json!({ "job": job("queued"), "known": false }))
            } else {
                answer("200 OK", &job(head))
            }
        });
        let done = finish(job_command(&world, &["run", "--wait", "--", "true"]));
        assert_eq!(done.code, Some(code), "{event}: {done:?}");
        assert!(done.stderr.contains(said), "{event}: {done:?}");
    }
}
