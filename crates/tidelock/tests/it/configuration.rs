//! `tidelock config`, and what the daemon says about its settings.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{World, finish};

/// The value of a setting and where it is from.
fn setting(list: &Value, key: &str) -> (Value, Value) {
    let settings = list["settings"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["key"] == key);
    let found = found.unwrap_or_else(|| panic!("there is no {key} in {list}"));
    (found["value"].clone(), found["source"].clone())
}

fn write(world: &World, text: &str) {
    let home = world.path().join("home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), text).unwrap();
}

#[test]
fn every_setting_is_shown_with_its_source_without_a_daemon() {
    let world = World::new();
    write(
        &world,
        "[sessions]\nmax_turns = 7\n[model]\nmodel = \"of the file\"\n[agents.mine]\ncommand = [\"a\"]\nenvironment = { KEY = \"hidden\" }\n",
    );
    let mut command = world.command(&["config", "--json"]);
    command
        .env("TIDELOCK_MODEL", "set")
        .env("OPENAI_API_KEY", "very-secret")
        .env("TIDELOCK_DATABASE_URL", "postgres://me:very-secret@db/work");
    let outcome = finish(command).expect(0);
    assert!(
        !outcome.stdout.contains("secret") && !outcome.stdout.contains("hidden"),
        "{outcome:?}"
    );
    let list = outcome.json();
    let by = |variable: &str| json!({ "from": "environment", "variable": variable });
    for (key, value, source) in [
        ("listen", json!("127.0.0.1:0"), by("TIDELOCK_LISTEN")),
        ("shutdown_grace_ms", json!(10_000), json!({ "from": "default" })),
        (
            "database",
            json!("postgres://(not shown)@db/work"),
            by("TIDELOCK_DATABASE_URL"),
        ),
        (
            "sessions.max_turns",
            json!(7),
            json!({ "from": "file", "line": 2 }),
        ),
        (
            "sessions.turn_timeout_seconds",
            json!(21_600),
            json!({ "from": "default" }),
        ),
        ("model.model", json!("set"), by("TIDELOCK_MODEL")),
        ("model.key", json!("(not shown)"), by("OPENAI_API_KEY")),
        (
            "agents.mine.environment",
            json!({ "KEY": "(not shown)" }),
            json!({ "from": "file", "line": 7 }),
        ),
    ] {
        assert_eq!(setting(&list, key), (value, source), "{key}");
    }
    assert_eq!(world.owner(), None, "nothing was started");
    let words = world.run(&["config"]).expect(0).stdout;
    assert!(words.contains("sessions.max_turns"), "{words}");
    assert!(words.contains("config.toml line 2"), "{words}");
}

#[test]
fn a_running_daemon_that_has_something_else_is_named() {
    let world = World::new();
    let mut up = world.command(&["up"]);
    up.env("OPENAI_API_KEY", "very-secret");
    finish(up).expect(0);
    write(&world, "[context]\nworkers = 2\n");
    let mut command = world.command(&["config", "--json"]);
    command.env("OPENAI_API_KEY", "very-secret");
    let list = finish(command).expect(0).json();
    assert_eq!(setting(&list, "context.workers").0, 2);
    let differs: Vec<_> = list["running_differs"].as_array().unwrap().iter().collect();
    let keys: Vec<&Value> = differs.iter().map(|setting| &setting["key"]).collect();
    assert_eq!(keys, ["context.workers"], "{differs:?}");
    let outcome = world.run(&["config"]).expect(0);
    assert!(
        outcome
            .stderr
            .contains("the running daemon has context.workers = 4;"),
        "{outcome:?}"
    );
}

#[test]
fn a_mistake_is_found_by_check_and_by_doctor_with_what_was_meant() {
    let world = World::new();
    let path = world.run(&["config", "path", "--json"]).expect(0).json();
    let file = world.path().join("home/config.toml");
    assert_eq!(path, json!({ "path": file, "exists": false }));
    let fine = world.run(&["config", "check"]).expect(0).stdout;
    assert!(fine.contains("doesn't exist, which is fine"), "{fine}");
    write(&world, "[sessions]\nmax_turns = 7\n");
    let fine = world.run(&["config", "check", "--json"]).expect(0).json();
    assert_eq!(fine, json!({ "state": "ok", "path": file, "settings": 1 }));

    write(&world, "[sessions]\nmax_turn = 7\n");
    let expected = "line 2, column 1: there is no key `max_turn` in `sessions`; did you mean `max_turns`?";
    for command in [&["config", "check"][..], &["config"], &["up"]] {
        let arguments: Vec<&str> = command.iter().copied().chain(["--json"]).collect();
        let error = world.run(&arguments).json();
        assert_eq!(error["error"]["code"], "configuration_unusable", "{error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.ends_with(expected), "{message}");
    }
    let mut doctor = world.command(&["doctor", "--json"]);
    doctor.env("TIDELOCK_LISTN", "127.0.0.1:1");
    let found = finish(doctor).expect(1).json();
    let check = |id: &str| {
        let checks = found["checks"].as_array().unwrap().iter();
        let check = checks.into_iter().find(|check| check["id"] == id);
        let check = check.unwrap_or_else(|| panic!("there is no {id}"));
        (
            check["state"].clone(),
            check["detail"].as_str().unwrap().to_owned(),
        )
    };
    let (state, detail) = check("configuration");
    assert!(state == "failed" && detail.ends_with(expected), "{detail}");
    assert_eq!(
        check("environment"),
        (
            json!("warning"),
            "Tidelock doesn't read TIDELOCK_LISTN (did you mean TIDELOCK_LISTEN?)".to_owned()
        )
    );
}
