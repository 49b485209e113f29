//! A client and a daemon of different versions. The daemon is played by the test.

use serde_json::{Value, json};

use crate::harness::World;
use crate::played::{self, answer};

fn status_of(version: &str) -> Value {
    json!({
        "version": version, "boot_id": "boot_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "pid": 1, "started_at": "2026-01-31T09:30:00Z",
        "uptime_ms": 5, "phase": "ready", "address": "127.0.0.1:1", "socket": "/s",
        "breakers": { "total": 0, "open": 0 }, "a_field_from_the_future": true,
    })
}

#[test]
fn a_daemon_of_another_version_is_named_with_what_to_do() {
    let world = World::new();
    played::always(&world, answer("200 OK", &status_of("0.0.9")));
    let said = world.run(&["status"]).expect(0).stdout;
    let advice = format!(
        "the daemon is version 0.0.9 and this program is {}; restart it with `tidelock down && tidelock up`",
        env!("CARGO_PKG_VERSION")
    );
    assert!(said.ends_with(&format!("note: {advice}\n")), "{said}");
    let status = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(
        (&status["version"], &status["advice"]),
        (&json!("0.0.9"), &json!(advice))
    );
}

#[test]
fn answers_that_cannot_be_understood_are_errors_with_advice() {
    for (answer, code, exit) in [
        (
            answer("200 OK", &json!({ "unexpected": true })),
            "answer_not_understood",
            3,
        ),
        (answer("418 I'm a teapot", &json!({})), "http_418", 1),
        (
            answer(
                "404 Not Found",
                &json!({ "code": "from_the_future", "detail": "gone" }),
            ),
            "from_the_future",
            4,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_owned(),
            "daemon_unreachable",
            3,
        ),
        (String::new(), "daemon_unreachable", 3),
        ("this is not HTTP".to_owned(), "daemon_unreachable", 3),
    ] {
        let world = World::new();
        played::always(&world, answer.clone());
        let failure = world.run(&["status", "--json"]).expect(exit).json();
        assert_eq!(failure["error"]["code"], code, "{answer}");
    }
}

#[test]
fn an_answer_that_is_too_large_is_given_up() {
    let world = World::new();
    let body = "x".repeat(33 << 20);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    played::always(&world, answer);
    let failure = world.run(&["status", "--json"]).expect(3).json();
    assert_eq!(failure["error"]["code"], "answer_not_understood");
    assert!(
        failure["error"]["message"]
            .as_str()
            .unwrap()
            .contains("larger than"),
        "{failure}"
    );
}
