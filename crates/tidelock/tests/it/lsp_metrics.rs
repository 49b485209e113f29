//! The numbers of servers in `/metrics`, and that they move as they should.

use std::fs;

use serde_json::json;

use crate::harness::wait_for;
use crate::lsp_stage::{Player, Stage, lives, metrics};

#[test]
fn the_numbers_of_a_server_move_with_what_happens_to_it() {
    let hold = json!({ "fault": "hold_until_file", "path": "go-on" });
    let oversized = json!({ "fault": "oversized", "bytes": 64 * 1024 * 1024 + 1 });
    let stage = Stage::new(&[
        Player::new(
            "alpha",
            json!({ "on": { "textDocument/definition": hold, "textDocument/references": oversized } }),
        ),
        Player::new("beta", json!({})),
    ]);
    assert_eq!(stage.metric("tidelock_lsp_requests_total", "alpha"), None);
    stage.hovered("alpha");
    stage.hovered("beta");
    let number = |metric: &str| stage.metric(&format!("tidelock_lsp_{metric}"), "alpha").unwrap();

    // Requests and their latency.
    let requests = number("requests_total");
    for _ in 0..5 {
        stage.hovered("alpha");
    }
    assert_eq!(number("requests_total"), requests + 5.0);
    assert_eq!(number("answered_total"), requests + 5.0);
    assert_eq!(latency(&stage, "count", "hover", "alpha"), 6.0);
    assert!(latency(&stage, "sum", "hover", "alpha") > 0.0);
    assert_eq!(latency(&stage, "count", "hover", "beta"), 1.0);
    assert!(number("received_bytes_total") > 0.0 && number("sent_bytes_total") > 0.0);
    assert!(number("memory_bytes") > 100_000.0);
    let gauges = || ["clients", "pending_requests", "queue_depth", "open_documents"].map(number);
    assert_eq!(gauges(), [0.0, 0.0, 0.0, 1.0]);

    // Clients that wait, and one that goes away.
    let body = stage.query("alpha", &json!({}));
    let mut waiting: Vec<_> = (0..3)
        .map(|_| stage.ask_and_leave_open("/v1/lsp/definition", &body))
        .collect();
    stage.wait_for_sent("alpha", "textDocument/definition", 3);
    assert_eq!(gauges(), [3.0, 3.0, 0.0, 1.0]);
    assert_eq!(stage.metric("tidelock_lsp_clients", "beta"), Some(0.0));
    drop(waiting.pop());
    wait_for("the client to be missed", || number("clients") == 2.0);
    assert_eq!(
        (number("cancelled_total"), number("pending_requests")),
        (1.0, 2.0)
    );
    fs::write(stage.work().join("go-on"), "").unwrap();
    wait_for("the others to be answered", || number("clients") == 0.0);
    assert_eq!(number("pending_requests"), 0.0);

    // Answers that are too large, and answers that do not come in time.
    assert_eq!(number("oversized_total"), 0.0);
    assert_eq!(stage.ask("references", "alpha", &json!({})).status, 502);
    assert_eq!(number("oversized_total"), 1.0);
    fs::remove_file(stage.work().join("go-on")).unwrap();
    // Long enough for the question to reach the server on a busy machine too.
    let late = stage.ask("definition", "alpha", &json!({ "timeout_ms": 2000 }));
    assert_eq!((late.status, &late.body["code"]), (504, &json!("server_timeout")));
    assert_eq!(number("timed_out_total"), 1.0);

    // A crash and a restart by hand. What was counted stays counted.
    let lifes = || ["generation", "restarts_total", "crashes_total", "ready"].map(number);
    assert_eq!(lifes(), [1.0, 0.0, 0.0, 1.0]);
    let requests = number("requests_total");
    let killed = stage.kill_server("alpha");
    wait_for("the process to be gone", || !lives(killed));
    wait_for("the next process", || lifes() == [2.0, 1.0, 1.0, 1.0]);
    stage.restart("alpha");
    assert_eq!(lifes(), [3.0, 2.0, 1.0, 1.0]);
    assert!(number("requests_total") >= requests);
    stage.world.run(&["lsp", "stop", "alpha"]).expect(0);
    assert_eq!(number("ready"), 0.0);
    assert_eq!(number("memory_bytes"), 0.0);
    assert_eq!(stage.metric("tidelock_lsp_ready", "beta"), Some(1.0));
}

#[test]
fn messages_that_a_server_does_not_take_are_counted() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    stage.hovered("alpha");
    stage.steer("alpha", "fault/stop_reading", &json!({}));
    // A pipe takes some of what nobody reads; what is more waits in the daemon.
    let path = stage.server_path("alpha", "/request");
    let body = json!({ "method": "custom/unread", "params": "x".repeat(100_000) });
    let waiting: Vec<_> = (0..8).map(|_| stage.ask_and_leave_open(&path, &body)).collect();
    let depth = || stage.metric("tidelock_lsp_queue_depth", "alpha").unwrap();
    wait_for("the queue to grow", || depth() >= 4.0);
    stage.restart("alpha");
    assert_eq!(depth(), 0.0);
    drop(waiting);
}

/// A number of the latency of a question.
fn latency(stage: &Stage, part: &str, query: &str, server: &str) -> f64 {
    let text = metrics(&stage.world);
    let start = format!("tidelock_lsp_query_duration_seconds_{part}{{");
    let line = text
        .lines()
        .find(|line| {
            line.starts_with(&start)
                && line.contains(&format!("query=\"{query}\""))
                && line.contains(&format!("\"{server}\""))
        })
        .unwrap_or_else(|| panic!("{part} of {query} is missing: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
