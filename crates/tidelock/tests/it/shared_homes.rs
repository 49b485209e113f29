//! Homes that share a log: copies, moved ones, and who is who.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::harness::{Outcome, World, finish, wait_for};
use crate::pair::Pair;

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
