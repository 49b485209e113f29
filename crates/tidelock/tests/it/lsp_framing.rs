//! Servers that break the framing of messages, or strain it: the daemon lives, and so do its other servers.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::harness::wait_for;
use crate::lsp_stage::{Player, Stage, problem, told, usual_hover};

/// More than a daemon takes for its work, and far less than what the headers promise.
const MEMORY_BYTES: u64 = 96 * 1024 * 1024;

/// The largest amount of memory that the daemon has had so far.
fn peak_memory(stage: &Stage) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", stage.world.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// A server whose first process meets a fault when it is asked, and whose second one does not.
fn breaks_once(fault: &Value) -> Player {
    let on = json!({ "textDocument/hover": fault });
    Player::new("alpha", json!({ "on": on, "by_start": { "2": { "on": {} } } }))
}

/// The query is answered by the next process, the reason can be read, and nobody else has noticed.
fn check_recovery(fault: &Value, reason: &str) {
    let stage = Stage::new(&[breaks_once(fault), Player::new("beta", json!({}))]);
    let daemon = stage.world.pid();
    stage.hovered("beta");
    let before = peak_memory(&stage);

    assert_eq!(stage.hovered("alpha"), (usual_hover(), 2), "{fault}");
    assert_eq!(stage.hovered("beta"), (usual_hover(), 1), "{fault}");

    let server = stage.server("alpha");
    assert_eq!(
        (&server["state"], &server["generation"], &server["restarts"]),
        (&json!("ready"), &json!(2), &json!(1)),
        "{server}"
    );
    let error = server["last_error"].as_str().unwrap_or_default();
    assert!(error.contains(reason), "{fault}: {error}");
    assert_eq!(stage.pids("beta", "server").len(), 1);
    assert_eq!(stage.world.pid(), daemon);
    let grown = peak_memory(&stage).saturating_sub(before);
    assert!(grown < MEMORY_BYTES, "{fault}: the daemon grew by {grown} bytes");
}

#[test]
fn a_length_that_no_message_has_costs_no_memory_and_the_query_is_still_answered() {
    for value in [
        "99999999999999",
        "18446744073709551615",
        "99999999999999999999999",
    ] {
        check_recovery(
            &json!({ "fault": "content_length", "value": value }),
            "Content-Length",
        );
    }
}

#[test]
fn a_length_that_is_no_number_is_refused_and_the_query_is_still_answered() {
    for value in ["-1", "abc", ""] {
        check_recovery(
            &json!({ "fault": "content_length", "value": value }),
            "Content-Length",
        );
    }
}

#[test]
fn headers_without_a_length_and_without_an_end_are_refused() {
    check_recovery(&json!({ "fault": "missing_length" }), "Content-Length");
    check_recovery(
        &json!({ "fault": "endless_header", "bytes": 1_000_000 }),
        "header",
    );
}

#[test]
fn what_is_no_message_at_all_is_refused() {
    check_recovery(&json!({ "fault": "broken_json" }), "expected value");
    check_recovery(
        &json!({ "fault": "garbage", "text": "Debugger listening on ws://127.0.0.1:9229\n\n" }),
        "header",
    );
}

#[test]
fn a_server_that_always_breaks_is_given_up_with_a_reason_and_the_other_goes_on() {
    let fault = json!({ "fault": "content_length", "value": "99999999999999" });
    let stage = Stage::new(&[
        Player::new("alpha", json!({ "on": { "textDocument/hover": fault } })),
        Player::new("beta", json!({})),
    ]);
    let mut codes = Vec::new();
    // More failures than this within minutes, and a server is given up.
    for _ in 0..8 {
        let answer = stage.hover("alpha");
        codes.push(problem(&answer).1.to_owned());
        assert_eq!(stage.hovered("beta"), (usual_hover(), 1));
        if codes.last().is_some_and(|code| code == "server_failed") {
            break;
        }
    }
    let (last, others) = codes.split_last().unwrap();
    assert_eq!(last, "server_failed", "{codes:?}");
    assert!(others.iter().all(|code| code == "server_restarting"), "{codes:?}");
    let server = stage.server("alpha");
    assert_eq!(server["state"], "failed", "{server}");
    assert!(
        server["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0),
        "{server}"
    );
    let answer = stage.hover("alpha");
    let (status, code, detail) = problem(&answer);
    assert_eq!((status, code), (502, "server_failed"), "{answer:?}");
    assert!(detail.contains("Content-Length"), "{detail}");
}

#[test]
fn characters_are_not_bytes_and_framing_holds_over_many_hovers() {
    let text = "zwölf Boxkämpfer 🥊 jagen Виктор über den großen Sylter Deich — 日本語, e\u{301}, \u{2028}";
    let stage = Stage::new(&[Player::new("alpha", json!({ "hover_text": text }))]);
    // The text of the document has such characters as well, before and after the place.
    fs::write(
        stage.file("alpha"),
        "ä🥊 = \"日本語\" # ERROR\nzweite Zeile: größer\n",
    )
    .unwrap();
    for round in 0..200 {
        assert_eq!(stage.hovered("alpha"), (text.to_owned(), 1), "round {round}");
    }
    let found = stage.post("/v1/lsp/diagnostics", &json!({ "path": stage.file("alpha") }));
    let found = found.unwrap().body;
    assert_eq!(
        found["diagnostics"][0]["range"],
        json!({ "start": { "line": 1, "column": 14 }, "end": { "line": 1, "column": 19 } }),
        "{found}"
    );
    assert_eq!(stage.pids("alpha", "server").len(), 1);
}

#[test]
fn an_answer_that_is_too_large_fails_its_own_request_and_no_other() {
    // One byte more than a message may have, without what stands around it.
    let oversized = json!({ "fault": "oversized", "bytes": 64 * 1024 * 1024 + 1 });
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({ "on": { "textDocument/definition": oversized } }),
    )]);
    stage.hovered("alpha");
    let before = peak_memory(&stage);
    thread::scope(|scope| {
        let large = scope.spawn(|| stage.ask("definition", "alpha", &json!({})));
        let others: Vec<_> = (0..4).map(|_| scope.spawn(|| stage.hovered("alpha"))).collect();
        for other in others {
            assert_eq!(other.join().unwrap(), (usual_hover(), 1));
        }
        let answer = large.join().unwrap();
        let (status, code, _) = problem(&answer);
        assert_eq!((status, code), (502, "server_protocol"), "{answer:?}");
    });
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 1));
    assert_eq!(stage.metric("tidelock_lsp_oversized_total", "alpha"), Some(1.0));
    assert_eq!(stage.pids("alpha", "server").len(), 1, "it was not restarted");
    let grown = peak_memory(&stage).saturating_sub(before);
    // What is skipped is not kept.
    assert!(grown < MEMORY_BYTES, "the daemon grew by {grown} bytes");
}

#[test]
fn no_byte_is_lost_when_requests_are_cancelled_while_answers_drip_in() {
    let drip = json!({ "fault": "drip", "bytes": 7, "every_ms": 2 });
    let text = "ä".repeat(150);
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({ "hover_text": text, "on": { "textDocument/hover": drip } }),
    )]);
    assert_eq!(stage.hovered("alpha"), (text.clone(), 1));
    thread::scope(|scope| {
        let stays: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| (0..6).map(|_| told(&stage.hover("alpha"))).collect::<Vec<_>>()))
            .collect();
        // Meanwhile others ask and go away, wherever the answers are by then.
        for round in 0..30 {
            let gone = stage.ask_and_leave_open("/v1/lsp/hover", &stage.query("alpha", &json!({})));
            thread::sleep(std::time::Duration::from_millis(round % 7)); // tidy: the moment is the point
            drop(gone);
        }
        for stayed in stays {
            for answer in stayed.join().unwrap() {
                assert_eq!(answer, (text.clone(), 1));
            }
        }
    });
    let cancelled = || stage.metric("tidelock_lsp_cancelled_total", "alpha");
    wait_for("those who went away to be counted", || {
        cancelled().is_some_and(|count| count > 0.0)
    });
    assert_eq!(stage.hovered("alpha"), (text, 1));
    assert_eq!(stage.pids("alpha", "server").len(), 1);
}
