//! Pipes that are closed early, and pipes that must not be held open.

use std::process::{Command, Stdio};

use crate::harness::{Outcome, World, finish, program};

/// A shell line with the program as `$T`, in the world.
fn shell(world: &World, line: &str) -> Outcome {
    let inside = world.command(&[]);
    let mut command = Command::new("bash");
    command
        .args(["-c", line])
        .current_dir(world.path())
        .env("T", program())
        .stdin(Stdio::null());
    for (name, value) in inside.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    finish(command)
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    for arguments in [
        "breaker list",
        "status --json",
        "doctor",
        "--help",
        "--version",
        "nonsense --json",
        "serve --json",
    ] {
        // Standard output is a pipe whose reader has gone before anything is written.
        let line = format!("$T {arguments} 2>stderr > >(:); wait; cat stderr");
        let outcome = shell(&world, &line);
        assert!(!outcome.stdout.contains("panicked"), "{arguments}: {outcome:?}");
    }
    let outcome = shell(
        &world,
        "set -o pipefail; $T breaker list | head -0; echo ${PIPESTATUS[0]}",
    );
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("0\n", ""));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let world = World::new();
    let outcome = shell(&world, "$T status > /dev/full");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.stderr.starts_with("error: the output cannot be written"),
        "{outcome:?}"
    );
}

#[test]
fn up_returns_inside_a_command_substitution_while_its_daemon_runs_on() {
    let world = World::new();
    // The shell waits until everything that holds the pipe has closed it; so does `finish` for both streams.
    let outcome = shell(&world, "out=$($T up 2>&1); echo \"$out\"").expect(0);
    assert!(outcome.stdout.contains("started"), "{outcome:?}");
    world.run(&["status"]).expect(0);
}

#[test]
fn there_are_no_colours_in_a_pipe() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    for arguments in [
        &["status"] as &[&str],
        &["doctor"],
        &["breaker", "list"],
        &["nonsense"],
        &["--help"],
    ] {
        let outcome = world.run(arguments);
        assert!(
            !outcome.stdout.contains('\u{1b}') && !outcome.stderr.contains('\u{1b}'),
            "{outcome:?}"
        );
    }
}
