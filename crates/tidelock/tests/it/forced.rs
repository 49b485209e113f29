//! What is held by hand outlives the daemon that it was said to.

use serde_json::{Value, json};

use crate::harness::{World, is_own};

fn states(world: &World) -> Vec<(String, String)> {
    let list = world.run(&["breaker", "list", "--json"]).expect(0).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let breakers = list["breakers"].as_array().unwrap();
    breakers
        .iter()
        .filter(|breaker| !is_own(breaker))
        .map(|breaker| (text(&breaker["id"]), text(&breaker["state"])))
        .collect()
}

#[test]
fn a_forced_breaker_outlives_a_stop_and_a_kill() {
    let world = World::new();
    world.run(&["breaker", "force", "model/api", "open"]).expect(0);
    world.run(&["breaker", "force", "b", "closed"]).expect(0);
    let held = [
        ("b".to_owned(), "forced_closed".to_owned()),
        ("model/api".to_owned(), "forced_open".to_owned()),
    ];
    world.run(&["down"]).expect(0);
    assert_eq!(states(&world), held);
    world.kill();
    assert_eq!(states(&world), held);

    let status = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(status["last_crash"]["state"], "crashed");
    let said = world.run(&["status"]).expect(0).stdout;
    assert!(said.contains("\nlast crash  pid "), "{said}");
    let doctor = world.run(&["doctor", "--json", "--deep"]).expect(0).json();
    let check = |id: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["id"] == id).unwrap();
        (
            check["state"].clone(),
            check["detail"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        (check("boots").0, check("log_integrity").0),
        (json!("warning"), json!("ok"))
    );
    assert!(
        check("boots").1.starts_with("1 of the last 3 crashed"),
        "{doctor}"
    );
    assert!(check("log").1.starts_with("writable; "), "{doctor}");

    world.run(&["breaker", "reset", "--all"]).expect(0);
    world.kill();
    assert_eq!(states(&world), []);
    let history = world.run(&["breaker", "history", "b", "--json"]).expect(0).json();
    let kinds: Vec<_> = history["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| {
            (
                event["sequence"].as_u64().unwrap(),
                event["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(kinds, [(1, "forced_closed"), (2, "reset")]);
    assert_eq!(history["id"], "b");
    let said = world
        .run(&["breaker", "history", "b", "--after", "1"])
        .expect(0)
        .stdout;
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.lines().nth(1).unwrap().starts_with("2       20"), "{said}");
    assert!(
        said.contains("  reset  req_") && said.ends_with(" over unix\n"),
        "{said}"
    );
    let said = world.run(&["breaker", "history", "nobody"]).expect(0).stdout;
    assert_eq!(said, "This breaker has never been changed manually.\n");
}

#[test]
fn a_log_that_another_daemon_has_is_refused_by_name() {
    let (first, second) = (World::new(), World::new());
    first.run(&["up"]).expect(0);
    std::fs::create_dir(second.path().join("home")).unwrap();
    // The locks of the two homes differ, and their logs are one.
    std::os::unix::fs::symlink(first.home().state, second.home().state).unwrap();
    let refused = second.run(&["up", "--json"]).expect(3).json();
    assert_eq!(refused["error"]["code"], "log_taken");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("process {}", first.pid())), "{message}");
    assert!(
        refused["error"]["advice"]
            .as_str()
            .unwrap()
            .contains("end the process")
    );
    first.run(&["status"]).expect(0);
}
