//! The environment of a command is nowhere but with the command, and gone when that has ended.

use std::fs;
use std::path::Path;

use crate::harness::{World, finish, wait_for};

const SECRET: &str = "sk-4f1d0c-keep-this-out";

/// The files below a directory that have the secret in them.
fn found_in(directory: &Path) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let (path, kind) = entry
                .map(|entry| (entry.path(), entry.file_type().unwrap()))
                .unwrap();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                // What is gone by now has nothing in it.
                let bytes = fs::read(&path).unwrap_or_default();
                if bytes
                    .windows(SECRET.len())
                    .any(|window| window == SECRET.as_bytes())
                {
                    found.push(path.display().to_string());
                }
            }
        }
    }
    found
}

#[test]
fn a_secret_in_the_environment_is_in_no_file_once_the_command_has_ended() {
    let world = World::new();
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("SOME_API_KEY", SECRET);
        finish(command)
    };
    let length = "echo ${#SOME_API_KEY}";
    let expected = format!("{}\n", SECRET.len());
    let done = run(&["job", "run", "--wait", "--shell", length]).expect(0);
    assert_eq!(done.stdout, expected);
    run(&[
        "job",
        "run",
        "--wait",
        "--retries",
        "1",
        "--retry-pause",
        "1ms",
        "--",
        "false",
    ]);
    // One that waits, one that is cancelled while it waits, and one that runs.
    let later = run(&["job", "run", "--delay", "1h", "--json", "--shell", length])
        .expect(0)
        .json();
    let never = run(&["job", "run", "--delay", "1h", "--json", "--shell", length])
        .expect(0)
        .json();
    run(&["job", "cancel", never["id"].as_str().unwrap()]).expect(0);
    let state = world.home().state;
    let kept = state.join("environments");
    wait_for("all but one to be gone", || {
        fs::read_dir(&kept).unwrap().count() == 1
    });
    let later = later["id"].as_str().unwrap();
    assert_eq!(found_in(world.path()), [kept.join(later).display().to_string()]);

    // The next daemon still has the one that waits.
    world.kill();
    world.run(&["up"]).expect(0);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    let export = world.path().join("export");
    world.run(&["export", export.to_str().unwrap()]).expect(0);
    run(&["job", "cancel", later]).expect(0);
    wait_for("the last one to be gone", || {
        fs::read_dir(&kept).unwrap().count() == 0
    });
    assert_eq!(found_in(world.path()), Vec::<String>::new());

    // Done once more, it has the environment of whoever asks for that.
    let again = run(&["job", "retry", later, "--wait"]).expect(0);
    assert_eq!(again.stdout, expected, "{again:?}");
    // Who asks for a job to run on another machine gives it nothing that was not named.
    let elsewhere = run(&["job", "run", "--anywhere", "--wait", "--shell", length]).expect(0);
    assert_eq!(elsewhere.stdout, "0\n", "{elsewhere:?}");
    wait_for("that to be gone", || fs::read_dir(&kept).unwrap().count() == 0);
    assert_eq!(found_in(world.path()), Vec::<String>::new());
}

#[test]
fn a_command_whose_environment_is_gone_is_not_run_with_another() {
    let world = World::new();
    let first = world
        .run(&["job", "run", "--delay", "2s", "--json", "--", "true"])
        .expect(0)
        .json();
    let id = first["id"].as_str().unwrap();
    fs::remove_file(world.home().state.join("environments").join(id)).unwrap();
    wait_for("the job to end", || {
        world.run(&["job", "show", id, "--json"]).expect(0).json()["state"] == "failed"
    });
    let job = world.run(&["job", "show", id, "--json"]).expect(0).json();
    let text = job["text"].as_str().unwrap();
    assert!(
        text.contains("the environment that it was submitted with is gone"),
        "{text}"
    );
}
