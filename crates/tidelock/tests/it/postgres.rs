//! Daemons whose log is in PostgreSQL, two homes in one database.

use serde_json::{Value, json};

use crate::harness::{Outcome, World, finish, is_own, wait_for};
use crate::tools::skip;

/// The server to test with. `cargo xtask test` starts one.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";

fn run(world: &World, url: &str, arguments: &[&str]) -> Outcome {
    let mut command = world.command(arguments);
    command.env("TIDELOCK_DATABASE_URL", url);
    finish(command)
}

fn states(list: &Value) -> Vec<(&str, &str)> {
    let breakers = list["breakers"].as_array().unwrap();
    breakers
        .iter()
        .filter(|breaker| !is_own(breaker))
        .map(|breaker| {
            (
                breaker["id"].as_str().unwrap(),
                breaker["state"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn two_homes_share_a_database_and_what_is_held_by_hand() {
    let Ok(url) = std::env::var(URL_VARIABLE) else {
        return skip(&format!("{URL_VARIABLE} names no server"));
    };
    let (one, other) = (World::new(), World::new());
    // The database may be that of other tests too.
    let [a, b] = ["a", "b"].map(|name| format!("{name}-{}", one.path().display()));
    let held = |world: &World| {
        let list = run(world, &url, &["breaker", "list", "--json"]).expect(0).json();
        let all = states(&list).into_iter().filter(|(id, _)| *id == a || *id == b);
        all.map(|(_, state)| state.to_owned()).collect::<Vec<_>>()
    };
    run(&other, &url, &["up"]).expect(0);
    run(&one, &url, &["breaker", "force", &a, "open"]).expect(0);
    wait_for("the other one to hold it", || held(&other) == ["forced_open"]);
    run(&other, &url, &["breaker", "force", &a, "closed"]).expect(0);
    wait_for("the first one to follow", || held(&one) == ["forced_closed"]);
    // Who saw something else is refused, wherever it was changed.
    let list = run(&one, &url, &["breaker", "show", &a, "--json"])
        .expect(0)
        .json();
    let seen = list["generation"].as_u64().unwrap().to_string();
    run(&other, &url, &["breaker", "reset", &a]).expect(0);
    run(&one, &url, &["breaker", "reset", &a, "--generation", &seen]).expect(4);
    wait_for("it to be let go", || {
        !held(&one).contains(&"forced_closed".to_owned())
    });
    run(&other, &url, &["breaker", "force", &a, "open"]).expect(0);
    one.kill();
    assert_eq!(held(&one), ["forced_open"]);
    let status = run(&one, &url, &["status", "--json"]).expect(0).json();
    assert_eq!(status["last_crash"]["state"], "crashed");
    // The other one was not told to be dead by the first.
    assert_eq!(held(&other), ["forced_open"]);
    run(&other, &url, &["down"]).expect(0);
    let status = run(&other, &url, &["up", "--json"]).expect(0).json();
    assert_eq!(status.get("last_crash"), None);
    let doctor = run(&other, &url, &["doctor", "--json", "--deep"])
        .expect(0)
        .json();
    assert_eq!(doctor["state"], "ok", "{doctor}");

    let refused = run(&one, &url, &["backup", "copy", "--json"]).expect(1).json();
    assert_eq!(refused["error"]["code"], "backup_not_supported");
    assert!(!one.home().log_database().exists(), "there is a file as well");

    // An archive leads from the server into a file.
    run(&one, &url, &["breaker", "force", &b, "open"]).expect(0);
    run(&one, &url, &["down"]).expect(0);
    run(&other, &url, &["down"]).expect(0);
    run(&one, &url, &["export", "out"]).expect(0);
    let moved = World::new();
    let archive = one.path().join("out");
    moved.run(&["import", archive.to_str().unwrap()]).expect(0);
    let list = moved.run(&["breaker", "list", "--json"]).expect(0).json();
    let all = states(&list);
    assert!(
        all.contains(&(a.as_str(), "forced_open")) && all.contains(&(b.as_str(), "forced_open")),
        "{all:?}"
    );
    moved.run(&["breaker", "reset", &a]).expect(0);
    let refused = run(&other, &url, &["import", archive.to_str().unwrap(), "--json"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "log_not_empty");
}

#[test]
fn a_database_that_does_not_answer_is_named_without_its_password() {
    let world = World::new();
    // Port 9 is that of `discard`, which nobody offers any more.
    let url = "postgres://somebody:secret-word@127.0.0.1:9/nothing";
    let refused = run(&world, url, &["up", "--json"]).expect(3);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], json!("database_unreachable"), "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("nothing at 127.0.0.1:9"),
        "{error}"
    );
    let log = std::fs::read_to_string(world.home().log_file()).unwrap();
    for told in [refused.stdout, refused.stderr, log] {
        assert!(!told.contains("secret-word"), "{told}");
    }
}
