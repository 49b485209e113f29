//! A log or a home that somebody has damaged: it is said, the rest goes on, and it can be saved.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{World, finish, program, wait_for};
use crate::plan_stage::Project;
use crate::quarantine::damage;

/// A check of `tidelock doctor`.
fn check(doctor: &Value, id: &str) -> Option<Value> {
    let mut checks = doctor["checks"].as_array().unwrap().iter();
    checks.find(|check| check["id"] == id).cloned()
}

/// Bytes that do not get smaller when they are compressed.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_log_is_checked_without_a_daemon() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let plan = project.open(&[]);
    project.run(&["down"]).expect(0);
    let whole = project.run(&["doctor", "--deep", "--json"]).json();
    assert_eq!(check(&whole, "log_integrity").unwrap()["state"], "ok", "{whole}");
    damage(&project.world, &["plan"]);
    let before = fs::read(project.world.home().log_database()).unwrap();
    let broken = project.run(&["doctor", "--deep", "--json"]).expect(1).json();
    let found = check(&broken, "log_integrity").unwrap();
    assert_eq!(found["state"], "failed", "{found}");
    assert!(found["detail"].as_str().unwrap().contains(&plan), "{found}");
    assert!(project.world.owner().is_none(), "no daemon was started");
    assert_eq!(fs::read(project.world.home().log_database()).unwrap(), before);
}

#[test]
fn a_damaged_content_is_named_and_the_rest_is_exported_and_backed_up() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let content = noise(100_000);
    fs::write(project.root.join("noise.bin"), &content).unwrap();
    let plan = project.open(&["--strategy", "copy"]);
    project.work(&plan, "cp noise.bin copy.bin; echo b > b.txt");
    project.run(&["down"]).expect(0);
    let path = project.world.home().log_database();
    let mut bytes = fs::read(&path).unwrap();
    let piece = &content[50_000..50_032];
    let place = bytes
        .windows(piece.len())
        .position(|window| window == piece)
        .unwrap();
    bytes[place] ^= 0xff;
    fs::write(&path, bytes).unwrap();

    project.run(&["up"]).expect(0);
    project.run(&["plan", "list"]).expect(0);
    let archive = project.world.path().join("rest.archive");
    let exported = project
        .run(&["export", archive.to_str().unwrap(), "--json"])
        .expect(1)
        .json();
    assert_eq!(exported["state"], "written", "{exported}");
    assert_eq!(exported["left_out"].as_array().unwrap().len(), 1, "{exported}");
    let backup = project.world.path().join("rest.sqlite3");
    project.run(&["backup", backup.to_str().unwrap()]).expect(0);

    let other = World::new();
    let imported = other
        .run(&["import", archive.to_str().unwrap(), "--json"])
        .expect(1)
        .json();
    assert_eq!(imported["left_out"], exported["left_out"]);
    other.run(&["up"]).expect(0);
    let listed = other.run(&["plan", "list", "--json"]).expect(0).json();
    assert_eq!(listed["plans"][0]["id"], json!(plan));
}

#[test]
fn a_write_ahead_log_that_was_removed_is_told() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.open(&[]);
    project.world.kill();
    let wal = project.world.home().state.join("log.sqlite3-wal");
    fs::remove_file(&wal).unwrap();
    project.run(&["up"]).expect(0);
    let found = project.run(&["doctor", "--json"]).json();
    let found = check(&found, "log_writes").unwrap();
    assert_eq!(found["state"], "warning", "{found}");
    let note = project.world.home().state.join("log.sqlite3.lost-writes");
    assert!(
        found["advice"].as_str().unwrap().contains(note.to_str().unwrap()),
        "{found}"
    );
    fs::remove_file(note).unwrap();
    assert_eq!(
        check(&project.run(&["doctor", "--json"]).json(), "log_writes"),
        None
    );
}

#[test]
fn a_runtime_directory_that_was_removed_is_made_again() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let pid = world.pid();
    for _ in 0..2 {
        fs::remove_dir_all(world.home().runtime).unwrap();
        wait_for("the socket to be there again", || world.home().socket().exists());
        let status = world.run(&["status", "--json"]).expect(0).json();
        assert_eq!(status["pid"], json!(pid));
    }
    // It takes part in everything as before.
    world.run(&["job", "run", "--wait", "--", "true"]).expect(0);
    assert_eq!(
        world.run(&["up", "--json"]).expect(0).json()["started"],
        json!(false)
    );
    world.run(&["down"]).expect(0);
    assert!(!world.home().socket().exists());
}

#[test]
fn a_daemon_whose_home_was_removed_ends() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let owner = world.owner().unwrap();
    fs::remove_dir_all(world.path().join("home")).unwrap();
    wait_for("the daemon to end", || owner.liveness() == daemon::Liveness::Gone);
}

/// Gives a directory and what is in it to somebody.
fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

#[test]
fn everything_can_be_removed_by_an_ordinary_user() {
    /// Somebody who may do nothing that others may not.
    const NOBODY: u32 = 61_234;
    let world = World::new();
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let user = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        if is_root {
            // The program of the tests may be where nobody else can go.
            let own = world.path().join("tidelock");
            if !own.exists() {
                fs::copy(program(), &own).unwrap();
                give(world.path(), NOBODY);
            }
            let mut as_user = std::process::Command::new(&own);
            as_user.args(arguments).current_dir(world.path());
            for (name, value) in command.get_envs() {
                match value {
                    Some(value) => as_user.env(name, value),
                    None => as_user.env_remove(name),
                };
            }
            as_user.env("HOME", world.path()).uid(NOBODY).gid(NOBODY);
            command = as_user;
        }
        finish(command)
    };
    user(&["up"]).expect(0);
    // What an overlay and a command leave behind.
    let sandbox = world.home().plans().join("sandboxes/plan_left");
    let locked = sandbox.join("work/work");
    fs::create_dir_all(&locked).unwrap();
    fs::create_dir_all(sandbox.join("tree/read-only")).unwrap();
    fs::write(sandbox.join("tree/read-only/file"), "x").unwrap();
    if is_root {
        give(&sandbox, NOBODY);
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(sandbox.join("tree/read-only"), fs::Permissions::from_mode(0o555)).unwrap();

    let asked = user(&["purge", "--json"]).expect(4);
    assert!(
        asked.stderr.contains("--yes") || asked.stdout.contains("--yes"),
        "{asked:?}"
    );
    assert!(locked.parent().unwrap().exists());
    user(&["purge", "--yes"]).expect(0);
    assert!(!world.home().state.exists() && !world.home().runtime.exists());
    user(&["purge", "--yes"]).expect(0);
}
