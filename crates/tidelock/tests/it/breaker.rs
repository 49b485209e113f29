//! Circuit breakers through the command line.

use serde_json::{Value, json};

use crate::harness::{World, is_own};

fn open(world: &World, name: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..3 {
        last = world
            .run(&["breaker", "record", name, "failure", "--json"])
            .expect(0)
            .json();
    }
    last
}

#[test]
fn three_failures_open_a_breaker_and_a_reset_closes_it() {
    let world = World::new();
    let opened = open(&world, "lsp/rust-analyzer");
    assert_eq!(
        (&opened["id"], &opened["state"]),
        (&json!("lsp/rust-analyzer"), &json!("open"))
    );

    world
        .run(&["breaker", "record", "model api", "success"])
        .expect(0);
    let listed = world.run(&["breaker", "list"]).expect(0).stdout;
    // The breakers of strategies are always there.
    assert!(listed.contains("context/language-server  closed"), "{listed}");
    let listed: Vec<&str> = listed
        .lines()
        .filter(|line| !line.starts_with("context/"))
        .collect();
    let listed = listed.join("\n");
    let shown = world
        .run(&["breaker", "show", "lsp/rust-analyzer"])
        .expect(0)
        .stdout;
    world.snapshots().bind(|| {
        insta::assert_snapshot!(listed, @r"
        NAME                     STATE                GENERATION  FAILURES  REFUSED  OPENED
        lsp/rust-analyzer        open, probe in [N] s  2           3         0        1
        model api                closed               1           0         0        0
        ");
        insta::assert_snapshot!(shown, @r"
        breaker     lsp/rust-analyzer
        state       open, probe in [N] s
        generation  2
        failures    3
        refused     0 calls
        late        0 reports
        opened      1 time
        ");
    });

    let list = world.run(&["breaker", "list", "--json"]).expect(0).json();
    let states: Vec<(&Value, &Value)> = list["breakers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|breaker| !is_own(breaker))
        .map(|breaker| (&breaker["id"], &breaker["state"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("lsp/rust-analyzer"), &json!("open")),
            (&json!("model api"), &json!("closed"))
        ]
    );

    let reset = world
        .run(&["breaker", "reset", "lsp/rust-analyzer", "--json"])
        .expect(0)
        .json();
    assert_eq!(reset["state"], "closed");
    let shown = world
        .run(&["breaker", "show", "lsp/rust-analyzer", "--json"])
        .expect(0)
        .json();
    assert_eq!(shown, reset);
}

#[test]
fn a_reset_that_names_an_old_generation_is_refused_and_shows_the_current_state() {
    let world = World::new();
    let first = open(&world, "a");
    let seen = first["generation"].to_string();
    let moved = world
        .run(&["breaker", "force", "a", "open", "--json"])
        .expect(0)
        .json();
    assert_ne!(moved["generation"], first["generation"]);

    let refused = world
        .run(&["breaker", "reset", "a", "--generation", &seen, "--json"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "stale_generation");
    assert_eq!(refused["error"]["current"], moved);
    assert!(
        refused["error"]["request_id"]
            .as_str()
            .unwrap()
            .starts_with("req_"),
        "{refused}"
    );

    let seen = moved["generation"].to_string();
    let reset = world
        .run(&["breaker", "reset", "a", "--generation", &seen, "--json"])
        .expect(0)
        .json();
    assert_eq!(reset["state"], "closed");
}

#[test]
fn a_breaker_that_is_not_known_is_not_found() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    for arguments in [
        &["breaker", "show", "nobody"] as &[&str],
        &["breaker", "reset", "nobody"],
    ] {
        let outcome = world.run(arguments).expect(4);
        assert_eq!(outcome.stdout, "");
        assert!(outcome.stderr.starts_with("error: "), "{outcome:?}");
        assert!(outcome.stderr.contains("\nhint: "), "{outcome:?}");
        let json_arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        assert_eq!(
            world.run(&json_arguments).expect(4).json()["error"]["code"],
            "breaker_unknown"
        );
    }
}

#[test]
fn breakers_can_be_held_by_hand_and_all_reset_at_once() {
    let world = World::new();
    open(&world, "a");
    for (state, expected) in [("open", "forced_open"), ("closed", "forced_closed")] {
        let forced = world
            .run(&["breaker", "force", "b", state, "--json"])
            .expect(0)
            .json();
        assert_eq!(forced["state"], expected);
    }
    let reset = world
        .run(&["breaker", "reset", "--all", "--json"])
        .expect(0)
        .json();
    let list = world.run(&["breaker", "list", "--json"]).expect(0).json();
    let own = list["breakers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|breaker| is_own(breaker));
    assert_eq!(reset, json!({ "reset": 2 + own.count() }));
    for breaker in list["breakers"].as_array().unwrap() {
        assert_eq!(breaker["state"], "closed", "{breaker}");
    }
}

#[test]
fn a_retry_after_holds_the_breaker_open_for_that_long() {
    let world = World::new();
    let opened = world
        .run(&[
            "breaker",
            "record",
            "a",
            "failure",
            "--retry-after",
            "10m",
            "--json",
        ])
        .expect(0)
        .json();
    assert_eq!(opened["state"], "open");
    let wait_ms = opened["retry_after_ms"].as_u64().unwrap();
    assert!((590_000..=600_000).contains(&wait_ms), "{wait_ms}");
}

#[test]
fn names_of_any_shape_find_their_breaker() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    for name in ["..", ".", "a/b", "a b", "ü", "100%", "a?b#c", "reset"] {
        let recorded = world
            .run(&["breaker", "record", name, "failure", "--json"])
            .expect(0)
            .json();
        assert_eq!(recorded["id"], name);
        let shown = world.run(&["breaker", "show", name, "--json"]).expect(0).json();
        assert_eq!((&shown["id"], &shown["failures"]), (&json!(name), &json!(1)));
    }
}
