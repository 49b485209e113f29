//! Trees of processes that do not want to end: after `cancel --wait` nothing of them is left, and `show` says what had
//! to be killed.

use std::fs;

use serde_json::Value;

use crate::harness::{World, wait_for};
use crate::job_stage::{NOBODY, events, left_behind, shown, submit};
use crate::tools::{require_tool, skip};

/// Lets a tree grow to its size, cancels it, and returns the job.
fn cancelled(world: &World, options: &[&str], script: &str, size: usize) -> Value {
    let id = submit(world, options, &["sh", "-c", script]);
    wait_for("the tree to be grown", || left_behind(world).len() >= size);
    wait_for("it to say so", || world.path().join("grown").exists());
    let told = world
        .run(&["job", "cancel", &id, "--why", "a test", "--wait"])
        .expect(0);
    assert_eq!(left_behind(world), NOBODY, "{told:?}");
    let job = shown(world, &id);
    assert_eq!(job["state"], "cancelled", "{job}");
    assert_eq!(
        events(&job),
        ["submitted", "claimed", "cancel_requested", "cancelled"]
    );
    fs::remove_file(world.path().join("grown")).unwrap();
    job
}

/// The names of what had to be killed.
fn killed(job: &Value) -> Vec<&str> {
    let killed = job["killed"].as_array().map(Vec::as_slice).unwrap_or_default();
    killed
        .iter()
        .map(|killed| killed["name"].as_str().unwrap())
        .collect()
}

#[test]
fn a_tree_that_ends_when_it_is_told_to_needs_no_force() {
    let world = World::new();
    let job = cancelled(&world, &[], "sleep 600 & sleep 600 & touch grown; wait", 3);
    assert_eq!(job["killed_count"], 0, "{job}");
}

#[test]
fn a_shell_that_does_not_want_to_hear_is_killed() {
    let world = World::new();
    let script = "trap '' TERM INT HUP; touch grown; while :; do sleep 600; done";
    let job = cancelled(&world, &[], script, 2);
    assert!(killed(&job).contains(&"sh"), "{job}");
    let text = world.run(&["job", "show", "last"]).expect(0).stdout;
    let line = text
        .lines()
        .find(|line| line.starts_with("killed"))
        .unwrap_or_default();
    assert!(line.contains("sh ("), "{text}");
    assert!(text.contains("had to be killed"), "{text}");
}

#[test]
fn nobody_escapes_by_leaving_the_session() {
    let world = World::new();
    // The one in the middle ends at once, so that the last one has lost its parent, its group and its session. It does
    // not listen, and holds the output open.
    let script = "(setsid sh -c 'trap \"\" TERM HUP; (touch grown; while :; do sleep 600; done) & wait' &) ; \
                  (setsid setsid sleep 600 &) ; sleep 600";
    let job = cancelled(&world, &[], script, 5);
    assert!(killed(&job).contains(&"sh"), "{job}");
}

#[test]
fn what_a_command_leaves_behind_goes_with_it() {
    let world = World::new();
    // The command itself ends well; what it left would hold its output open for ten minutes.
    let script = "(setsid sh -c 'trap \"\" TERM HUP; touch go; sleep 600' &) ; sleep 600 & until test -e go; do sleep 0.01; done; echo end";
    let outcome = world.run(&["job", "run", "--wait", "--shell", script]).expect(0);
    assert_eq!(outcome.stdout, "end\n", "{outcome:?}");
    assert_eq!(left_behind(&world), NOBODY);
    let job = shown(&world, "last");
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_ne!(job["killed_count"], 0, "{job}");
}

#[test]
fn a_fork_bomb_is_held_by_its_limit_and_goes_with_a_cancel() {
    let world = World::new();
    // The limit does not bind the superuser, and counts all processes of a user: so it has to be somebody else, whom
    // nobody else is.
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become a user of whom there are no other processes");
    }
    if require_tool("setpriv").is_none() {
        return;
    }
    let world_is_open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(world.path(), world_is_open).unwrap();
    let user = (3_000_000 + std::process::id()).to_string();
    // Each makes two of itself; not more than ten levels, so that it ends without a limit as well. One that may not
    // make another says so and ends, and its parent sleeps then.
    let bomb = "test $1 -gt 0 || exec sleep 600\n\
                sh bomb $(($1 - 1)) &\nsh bomb $(($1 - 1)) &\nwait\nexec sleep 600\n";
    fs::write(world.path().join("bomb"), bomb).unwrap();
    let script = format!(
        "trap '' TERM; exec setpriv --reuid {user} --regid {user} --clear-groups sh -c 'sh bomb 10 & exec sleep 600'"
    );
    let options = ["--limit", "processes=40", "--timeout", "60s"];
    let id = submit(&world, &options, &["sh", "-c", &script]);
    let count = || left_behind(&world).len();
    let mut most = 0;
    wait_for("the bomb to reach its limit", || {
        most = most.max(count());
        world
            .run(&["job", "logs", &id])
            .stderr
            .to_lowercase()
            .contains("cannot fork")
    });
    // Forty of that user, and a keeper.
    most = most.max(count());
    assert!((2..=42).contains(&most), "{most} processes");
    let told = world.run(&["job", "cancel", &id, "--wait"]).expect(0);
    assert_eq!(left_behind(&world), NOBODY, "{told:?}");
    let job = shown(&world, &id);
    assert_eq!(job["state"], "cancelled", "{job}");
    assert!(job["killed_count"].as_u64().unwrap() > 0, "{job}");
}
