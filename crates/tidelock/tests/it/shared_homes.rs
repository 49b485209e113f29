//! Homes that share a log: copies, moved ones, and who is who.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Outcome, World, finish, wait_for};
use crate::pair::Pair;
use crate::tools::require_tool;

fn up(pair: &Pair, world: &World) -> Outcome {
    finish(pair.command(world, &["up", "--json"]))
}

/// Copies a home as people do. The target has none yet.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

fn state(world: &World) -> PathBuf {
    world.home().state
}

fn become_copy(of: &World, copied: &World) {
    fs::create_dir_all(copied.path().join("home")).unwrap();
    copy(&state(of), &state(copied));
}

#[test]
fn a_copied_home_is_refused_until_it_has_an_identity_of_its_own() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let (one, copied) = (&pair.one, World::new());
    let id = pair.submit(one, &[], "until test -e go; do sleep 0.01; done");
    wait_for("it to run", || {
        pair.json(one, &["job", "show", &id])["state"] == "running"
    });
    become_copy(one, &copied);
    let refused = up(&pair, &copied).expect(3).json();
    assert_eq!(refused["error"]["code"], "home_copied", "{refused}");
    let hint = refused["error"]["advice"].as_str().unwrap();
    assert!(hint.contains("tidelock home renew"), "{refused}");
    // It cannot be taken for moved either, while the first one is used.
    let refused = finish(pair.command(&copied, &["home", "adopt", "--json"]))
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "home_copied", "{refused}");
    pair.json(&copied, &["home", "renew"]);
    up(&pair, &copied).expect(0);
    // Nobody has buried anything of the first one.
    fs::write(one.path().join("go"), "").unwrap();
    assert_eq!(pair.json(one, &["job", "wait", &id])["state"], "succeeded");
    assert_eq!(pair.json(one, &["status"]).get("last_crash"), None);
}

#[test]
fn a_home_that_was_moved_restored_or_killed_starts() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let one = &pair.one;
    let boots = |world: &World| pair.json(world, &["status"])["id"].clone();
    let first = boots(one);
    one.kill();
    up(&pair, one).expect(0);
    assert_ne!(boots(one), first);
    // Restored from a backup, where it was.
    pair.run(one, &["down"]);
    let backup = one.path().join("backup");
    copy(&state(one), &backup);
    fs::remove_dir_all(state(one)).unwrap();
    copy(&backup, &state(one));
    up(&pair, one).expect(0);
    // Moved, by its name.
    pair.run(one, &["down"]);
    let moved = World::new();
    fs::create_dir_all(moved.path().join("home")).unwrap();
    fs::rename(state(one), state(&moved)).unwrap();
    let status = up(&pair, &moved).expect(0).json();
    assert_eq!(status["started"], json!(true), "{status}");
    // Moved, by copying; then the first is the one that does not start any more.
    moved.kill();
    let last = World::new();
    become_copy(&moved, &last);
    up(&pair, &last).expect(3);
    pair.json(&last, &["home", "adopt"]);
    up(&pair, &last).expect(0);
    let refused = up(&pair, &moved).expect(3).json();
    assert_eq!(refused["error"]["code"], "home_copied", "{refused}");
}

#[test]
fn a_copied_home_has_a_log_of_its_own_and_starts() {
    let (one, copied) = (World::new(), World::new());
    one.run(&["up"]).expect(0);
    one.run(&["down"]).expect(0);
    become_copy(&one, &copied);
    one.run(&["up"]).expect(0);
    copied.run(&["up"]).expect(0);
}

/// What gives a process a clock that is wrong. The program of the same name keeps its child waiting, so it is not used.
fn wrong_clock() -> Option<PathBuf> {
    require_tool("faketime")?;
    let directories = fs::read_dir("/usr/lib").unwrap().flatten();
    let mut libraries = directories.map(|directory| directory.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.is_file())
}

#[test]
fn a_machine_whose_clock_is_wrong_neither_fails_nor_starts_nor_forgets_the_jobs_of_others() {
    let (Some(library), Some(pair)) = (wrong_clock(), Pair::new()) else {
        return;
    };
    let (one, ahead) = (&pair.one, &pair.other);
    pair.run(ahead, &["down"]);
    let mut skewed = pair.command(ahead, &["up"]);
    skewed.env("LD_PRELOAD", library).env("FAKETIME", "+20d");
    skewed.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    finish(skewed).expect(0);
    pair.run(one, &["job", "workers", "0"]);
    let late = pair.submit(
        one,
        &["--anywhere", "--deadline", "30m", "--delay", "10m"],
        "echo too late",
    );
    let mut ended = Vec::new();
    for _ in 0..3 {
        // Only the other one can run these, and by then it has seen the first.
        let id = pair.submit(one, &["--anywhere"], "true");
        pair.run(one, &["job", "wait", &id, "--timeout", "30s"]);
        ended.push(id);
    }
    let job = pair.json(one, &["job", "show", &late]);
    assert_eq!(
        (&job["state"], &job["attempts"]),
        (&json!("queued"), &json!(0)),
        "{job}"
    );
    let gone = pair.json(ahead, &["job", "gc", "--older-than", "336h"]);
    assert_eq!(gone["jobs"], 0, "{gone}");
    // What it writes down means the same to all.
    let there = pair.submit(ahead, &[], "true");
    pair.run(ahead, &["job", "wait", &there]);
    ended.push(there);
    let day = |id: &String| {
        let job = pair.json(one, &["job", "show", id]);
        let days =
            ["submitted_at", "started_at", "ended_at"].map(|at| job[at].as_str().unwrap()[..10].to_owned());
        days
    };
    let days: Vec<_> = ended.iter().map(day).collect();
    let today = pair.json(one, &["status"])["started_at"].as_str().unwrap()[..10].to_owned();
    assert!(
        days.iter()
            .flatten()
            .all(|day| *day >= today && day[..7] <= *"2100-01"),
        "{days:?}"
    );
    assert_eq!(days.first(), days.last(), "{days:?}");
}

#[test]
fn jobs_and_plans_say_on_which_machine_they_are() {
    let Some(pair) = Pair::new() else {
        return;
    };
    let (one, desk) = (&pair.one, &pair.other);
    pair.run(desk, &["down"]);
    let mut up = pair.command(desk, &["up"]);
    up.env("TIDELOCK_MACHINE", "desk");
    finish(up).expect(0);
    let project = desk.path().join("project");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("a"), "a\n").unwrap();
    let mut new = pair.command(desk, &["plan", "new", "--json"]);
    new.current_dir(&project);
    let plan = finish(new).expect(0).json()["id"].as_str().unwrap().to_owned();
    let job = pair.submit(desk, &[], "true");
    // The other one hears of the name a moment later.
    wait_for("the name", || {
        let shown = pair.json(one, &["job", "show", &job]);
        shown["machine"]
            .as_str()
            .is_some_and(|machine| machine.starts_with("desk"))
    });
    let shown = pair.json(one, &["plan", "show", &plan]);
    assert!(shown["machine"].as_str().unwrap().starts_with("desk"), "{shown}");
    let notice = shown["notice"].as_str().unwrap();
    assert!(notice.starts_with("it is on the machine desk"), "{shown}");
    let list = pair.run(one, &["job", "list"]);
    assert!(list.contains("MACHINE") && list.contains("desk"), "{list}");
}
