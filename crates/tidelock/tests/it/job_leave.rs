//! Clients that go away, and daemons that do: what the job does then.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{World, signal, wait_for};
use crate::job_stage::{
    Beside, NOBODY, ended, events, job_command, left_behind, shown, submit, wait_for_state,
};

/// Runs until it is let go, and says when it begins and ends.
const HELD: &str = "echo begun; until test -e go; do sleep 0.01; done; echo ended";

fn held(world: &World, options: &[&str]) -> Beside {
    let mut command = job_command(world, &["run", "--wait"]);
    command.args(options).args(["--shell", HELD]);
    let client = Beside::start(world, command);
    client.wait_for_stdout("begun");
    client
}

fn let_go(world: &World) {
    fs::write(world.path().join("go"), "").unwrap();
}

#[test]
fn ctrl_c_cancels_the_job_and_waits_until_nothing_of_it_runs() {
    let world = World::new();
    let mut command = job_command(&world, &["run", "--wait", "--shell"]);
    command.arg("sleep 600 & setsid sleep 600 & echo begun; wait");
    let mut client = Beside::start(&world, command);
    client.wait_for_stdout("begun");
    signal(client.pid(), Signal::INT);
    assert_eq!(client.wait_code(), 130);
    assert_eq!(left_behind(&world), NOBODY);
    let job = shown(&world, "last");
    let id = job["id"].as_str().unwrap();
    assert_eq!(
        (&job["state"], &job["cancel"]["why"]),
        (&json!("cancelled"), &json!("Ctrl-C")),
        "{job}"
    );
    assert_eq!(
        events(&job),
        ["submitted", "claimed", "cancel_requested", "cancelled"]
    );
    let expected = format!(
        "note: Cancelling {id}. Press Ctrl-C again to detach; it keeps running until it has stopped.\nnote: {id} was cancelled\n"
    );
    assert_eq!(client.said(), ("begun\n".to_owned(), expected));
}

#[test]
fn a_second_ctrl_c_leaves_the_job_to_itself() {
    let world = World::new();
    let mut command = job_command(&world, &["run", "--wait", "--shell"]);
    // It takes its time to end, and says so.
    command.arg("trap 'echo asked; until test -e go; do sleep 0.01; done; exit 0' TERM; echo begun; while :; do sleep 0.01; done");
    let mut client = Beside::start(&world, command);
    client.wait_for_stdout("begun");
    signal(client.pid(), Signal::INT);
    client.wait_for_stderr("Press Ctrl-C again to detach");
    signal(client.pid(), Signal::INT);
    assert_eq!(client.wait_code(), 130);
    let job = shown(&world, "last");
    let id = job["id"].as_str().unwrap();
    client.wait_for_stderr(&format!("note: detached from {id}; see `tidelock job show {id}`"));
    // The wish to cancel it stays, and is carried out.
    let job = ended(&world, id);
    assert_eq!(job["state"], "cancelled", "{job}");
    assert_eq!(left_behind(&world), NOBODY);
}

#[test]
fn a_client_that_is_killed_cancels_nothing() {
    let world = World::new();
    for how in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let mut client = held(&world, &[]);
        signal(client.pid(), how);
        assert_eq!(client.wait_code(), 128 + how.as_raw());
        let id = shown(&world, "last")["id"].as_str().unwrap().to_owned();
        assert_eq!(shown(&world, &id)["state"], "running", "{how:?}");
        let_go(&world);
        let job = ended(&world, &id);
        assert_eq!(job["state"], "succeeded", "{how:?}: {job}");
        assert_eq!(
            world.run(&["job", "logs", &id]).stdout,
            "begun\nended\n",
            "{how:?}"
        );
        fs::remove_file(world.path().join("go")).unwrap();
    }
}

#[test]
fn a_reader_that_closes_its_end_cancels_nothing() {
    let world = World::new();
    let line = format!(
        "{} job run --wait --shell 'yes | head -c 3000000; touch done' | head -c 2",
        crate::harness::program().display()
    );
    let mut command = world.command(&[]);
    command = {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).current_dir(world.path());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell
    };
    let client = crate::job_stage::finish_bytes(&world, command);
    assert_eq!(client.stdout, b"y\n", "{client:?}");
    wait_for("the job to be done", || world.path().join("done").exists());
    assert_eq!(ended(&world, "last")["state"], "succeeded");
}

#[test]
fn a_job_that_is_not_to_be_repeated_fails_when_its_daemon_is_killed() {
    let world = World::new();
    let mut client = held(&world, &[]);
    let id = shown(&world, "last")["id"].as_str().unwrap().to_owned();
    world.kill();
    wait_for("nothing of the job to be left", || {
        left_behind(&world).iter().all(|pid| *pid == client.pid())
    });
    client.wait_for_stderr("note: the daemon is gone; waiting for it to come back\n");
    world.run(&["up"]).expect(0);
    let job = ended(&world, &id);
    assert_eq!(
        (&job["state"], &job["reason"]),
        (&json!("failed"), &json!("interrupted")),
        "{job}"
    );
    assert_eq!(
        events(&job),
        ["submitted", "claimed", "interrupted", "failed"],
        "{job}"
    );
    assert_eq!(client.wait_code(), 1);
    let (stdout, stderr) = client.said();
    assert_eq!(stdout, "begun\n");
    assert!(stderr.contains("was interrupted and won't run again"), "{stderr}");
    // What it had said is still there.
    assert_eq!(world.run(&["job", "logs", &id]).stdout, "begun\n");
}

#[test]
fn a_job_that_may_be_repeated_runs_again_after_its_daemon_was_killed() {
    let world = World::new();
    let mut client = held(&world, &["--repeat"]);
    let id = shown(&world, "last")["id"].as_str().unwrap().to_owned();
    world.kill();
    world.run(&["up"]).expect(0);
    wait_for_state(&world, &id, "running");
    let_go(&world);
    // Whoever waits misses nothing and hears nothing twice.
    assert_eq!(client.wait_code(), 0);
    assert_eq!(client.said().0, "begun\nbegun\nended\n");
    let job = ended(&world, &id);
    assert_eq!(
        (&job["attempts"], &job["interruptions"]),
        (&json!(2), &json!(1)),
        "{job}"
    );
    assert_eq!(
        events(&job),
        ["submitted", "claimed", "interrupted", "claimed", "succeeded"],
        "{job}"
    );
    assert_eq!(left_behind(&world), NOBODY);
}

#[test]
fn what_waits_is_still_there_after_its_daemon_was_killed() {
    let world = World::new();
    world.run(&["job", "workers", "0"]).expect(0);
    let waiting: Vec<String> = (0..5)
        .map(|number| submit(&world, &[], &["touch", &format!("ran-{number}")]))
        .collect();
    world.kill();
    world.run(&["job", "workers", "4"]).expect(0);
    for (number, id) in waiting.iter().enumerate() {
        let job = ended(&world, id);
        assert_eq!(
            (&job["state"], &job["attempts"]),
            (&json!("succeeded"), &json!(1)),
            "{job}"
        );
        assert!(world.path().join(format!("ran-{number}")).exists());
    }
}

#[test]
fn a_daemon_that_is_told_to_stop_lets_short_jobs_end() {
    let world = World::new();
    let id = submit(
        &world,
        &[],
        &["sh", "-c", "echo begun > begun; sleep 1; echo ended > ended"],
    );
    wait_for("it to begin", || world.path().join("begun").exists());
    let next = submit(&world, &["--delay", "1h"], &["true"]);
    world.run(&["down"]).expect(0);
    assert!(world.path().join("ended").exists(), "it was not waited for");
    assert_eq!(left_behind(&world), NOBODY);
    assert_eq!(shown(&world, &id)["state"], "succeeded");
    assert_eq!(shown(&world, &next)["state"], "queued");
}

#[test]
fn a_daemon_that_is_told_to_stop_interrupts_long_jobs_and_leaves_nothing() {
    let world = World::new();
    let tree = "sleep 600 & setsid sleep 600 & echo begun; wait";
    let long = submit(&world, &[], &["sh", "-c", tree]);
    let again = submit(&world, &["--repeat"], &["sh", "-c", tree]);
    for id in [&long, &again] {
        wait_for_state(&world, id, "running");
    }
    world.run(&["down", "--timeout", "50s"]).expect(0);
    assert_eq!(left_behind(&world), NOBODY);
    let job = shown(&world, &long);
    assert_eq!(
        (&job["state"], &job["reason"]),
        (&json!("failed"), &json!("interrupted")),
        "{job}"
    );
    wait_for_state(&world, &again, "running");
    let job = shown(&world, &again);
    assert_eq!(job["attempts"], 2, "{job}");
    world.run(&["job", "cancel", &again, "--wait"]).expect(0);
    assert_eq!(left_behind(&world), NOBODY);
}
