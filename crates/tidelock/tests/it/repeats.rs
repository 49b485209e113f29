//! Requests that meet a daemon at its end: sent again where that is safe, and only there.

use serde_json::{Value, json};

use crate::harness::{World, processes_of};
use crate::played::{self, answer};

fn refusal(code: &str) -> String {
    answer(
        "503 Service Unavailable",
        &json!({ "code": code, "detail": "not now" }),
    )
}

fn run(world: &World, arguments: &[&str], first_answer: String) -> (Option<i32>, Value) {
    let played = played::once(world, first_answer);
    let outcome = world.run(arguments);
    played.join().unwrap();
    (outcome.code, outcome.json())
}

#[test]
fn a_request_that_was_certainly_not_carried_out_is_sent_to_the_next_daemon() {
    for code in ["shutting_down", "not_ready"] {
        let world = World::new();
        let (exit, recorded) = run(
            &world,
            &["breaker", "record", "a", "failure", "--json"],
            refusal(code),
        );
        assert_eq!(
            (exit, &recorded["failures"]),
            (Some(0), &json!(1)),
            "{code}: {recorded}"
        );
    }
}

#[test]
fn a_request_whose_fate_is_not_known_is_sent_again_only_if_that_is_harmless() {
    for arguments in [
        &["breaker", "list", "--json"] as &[&str],
        &["breaker", "force", "a", "open", "--json"],
        &["breaker", "reset", "--all", "--json"],
        &["up", "--json"],
    ] {
        let world = World::new();
        let (exit, said) = run(&world, arguments, String::new());
        assert_eq!(exit, Some(0), "{arguments:?}: {said}");
    }
    let world = World::new();
    let (exit, said) = run(
        &world,
        &["breaker", "record", "a", "failure", "--json"],
        String::new(),
    );
    assert_eq!(
        (exit, &said["error"]["code"]),
        (Some(3), &json!("daemon_unreachable")),
        "{said}"
    );
    assert_eq!(processes_of(&world), [] as [u32; 0], "nothing was started for it");
}

#[test]
fn a_request_that_was_refused_for_its_own_sake_is_not_sent_again() {
    let world = World::new();
    let (exit, said) = run(
        &world,
        &["breaker", "list", "--json"],
        refusal("breaker_limit_reached"),
    );
    assert_eq!(
        (exit, &said["error"]["code"]),
        (Some(1), &json!("breaker_limit_reached")),
        "{said}"
    );
    assert_eq!(processes_of(&world), [] as [u32; 0], "nothing was started for it");
}
