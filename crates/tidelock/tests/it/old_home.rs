//! A home that an earlier release has left: everything in it is still there, and says what it said then.
//!
//! `scripts/old_home.sh` made it. To take a newer release for the old one, run that script with it, and then this test with
//! `UPDATE_SNAPSHOTS=1`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{World, finish};
use crate::machine_faults::now_ms;
use crate::requests::send;
use crate::shared_clock::wrong_clock;

/// What is listed, the key of its list, and what can be asked about each entry.
const LISTS: [(&str, &str, &[&str]); 6] = [
    ("/v1/jobs?limit=100", "jobs", &["", "/history"]),
    (
        "/v1/plans?limit=100",
        "plans",
        &["", "/history", "/changesets", "/diff"],
    ),
    ("/v1/sessions?limit=100", "sessions", &["", "/events", "/turns"]),
    (
        "/v1/sessions?limit=100&state=archived",
        "sessions",
        &["", "/events", "/turns"],
    ),
    ("/v1/breakers", "breakers", &["", "/events"]),
    ("/v1/workspaces", "workspaces", &[]),
];

/// An hour after the home was made, in seconds since 1970. A daemon of today would collect most of it, as it should.
const SOON_AFTER: i128 = 1_795_006_800;

/// What belongs to this machine or this moment. The daemon gives sandboxes of finished plans back when it starts, and a plan has
/// another version then.
const OF_HERE: [&str; 3] = ["machine", "retry_after_ms", "version"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/old_home")
        .join(name)
}

fn old_world() -> World {
    let world = World::new();
    let home = world.path().join("home");
    fs::create_dir(&home).unwrap();
    let unpacked = Command::new("tar")
        .arg("-xzf")
        .arg(fixture("home.tar.gz"))
        .arg("-C")
        .arg(&home)
        .status();
    assert!(unpacked.unwrap().success());
    world
}

fn without_what_is_of_here(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !OF_HERE.contains(&name.as_str()));
            members.values_mut().for_each(without_what_is_of_here);
        }
        Value::Array(elements) => elements.iter_mut().for_each(without_what_is_of_here),
        _ => {}
    }
}

/// All that a daemon says about what is in its home, by what it was asked.
fn answers(world: &World) -> BTreeMap<String, Value> {
    let mut answers = BTreeMap::new();
    let mut ask = |path: String| -> Value {
        let answer = send(&world.home(), "GET", &path, "").unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let mut body = answer.body;
        without_what_is_of_here(&mut body);
        answers.insert(path, body.clone());
        body
    };
    let ids = |list: &Value, key: &str| -> Vec<String> {
        let entries = list[key]
            .as_array()
            .unwrap_or_else(|| panic!("{list} has no {key}"));
        let ids = entries
            .iter()
            .map(|entry| entry["id"].as_str().unwrap().to_owned());
        ids.collect()
    };
    for (path, key, questions) in LISTS {
        let list = ask(path.to_owned());
        for id in ids(&list, key) {
            for question in questions {
                let answer = ask(format!("/v1/{key}/{}{question}", id.replace('/', "%2F")));
                if *question == "/turns" {
                    for turn in ids(&answer, "turns") {
                        for question in ["transcript", "events"] {
                            ask(format!("/v1/sessions/{id}/turns/{turn}/{question}"));
                        }
                    }
                }
            }
        }
    }
    for id in ids(&answers[LISTS[0].0], "jobs") {
        let output = world.run(&["job", "logs", &id]);
        answers.insert(
            format!("job logs {id}"),
            format!("{}{}", output.stdout, output.stderr).into(),
        );
    }
    answers
}

#[test]
fn a_home_of_an_earlier_release_opens_and_says_what_it_said() {
    let Some(library) = wrong_clock() else { return };
    let world = old_world();
    let mut up = world.command(&["up"]);
    let since = SOON_AFTER - i128::from(now_ms()) / 1000;
    up.env("LD_PRELOAD", library)
        .env("FAKETIME", format!("{since:+}"));
    up.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    finish(up).expect(0);
    let now = answers(&world);
    let quarantined = send(&world.home(), "GET", "/v1/log/quarantine", "").unwrap();
    assert_eq!(
        quarantined.body["quarantined"],
        serde_json::json!([]),
        "{quarantined:?}"
    );
    let committed = fixture("answers.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&committed, serde_json::to_string_pretty(&now).unwrap() + "\n").unwrap();
    }
    let then: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(&committed).unwrap()).unwrap();
    for (path, said) in &then {
        assert_eq!(now.get(path), Some(said), "{path}");
    }
    assert_eq!(now.len(), then.len());
    world.run(&["down"]).expect(0);
}
