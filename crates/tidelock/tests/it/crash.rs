//! Daemons that were killed, sockets that were left behind, and homes that were taken away.

use std::fs;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use daemon::Liveness;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Running, World, halt, processes_of, signal, wait_for};

#[test]
fn after_a_kill_the_next_command_starts_a_new_daemon() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let killed = world.pid();
    world.kill();
    assert!(
        world.home().socket().exists(),
        "a killed daemon cleans nothing up"
    );

    let stopped = world.run(&["status", "--json"]).expect(3).json();
    assert_eq!(stopped, json!({ "state": "stopped" }));
    let doctor = world.run(&["doctor", "--json"]).expect(0).json();
    let state = |id: &str| {
        let checks = doctor["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()["state"].clone()
    };
    assert_eq!(
        (state("lock"), state("socket"), state("daemon")),
        (json!("warning"), json!("warning"), json!("ok"))
    );

    world.run(&["breaker", "list"]).expect(0);
    assert_ne!(world.pid(), killed);
    world.run(&["status"]).expect(0);
}

#[test]
fn down_after_a_kill_finds_nothing_to_stop() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    world.kill();
    let down = world.run(&["down", "--json"]).expect(0).json();
    assert_eq!(down, json!({ "state": "stopped", "was_running": false }));
}

#[test]
fn a_socket_that_nobody_answers_is_replaced() {
    let world = World::new();
    world.home().prepare().unwrap();
    drop(UnixListener::bind(world.home().socket()).unwrap());
    world.run(&["status"]).expect(3);
    world.run(&["up"]).expect(0);
    world.run(&["status"]).expect(0);
}

#[test]
fn a_daemon_without_its_socket_is_found_through_its_lock_and_can_be_stopped() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let pid = world.pid();
    fs::remove_file(world.home().socket()).unwrap();

    let status = world.run(&["status", "--json"]).expect(3).json();
    assert_eq!(status["error"]["code"], "daemon_unreachable");
    assert!(
        status["error"]["message"]
            .as_str()
            .unwrap()
            .contains(&format!("pid {pid}")),
        "{status}"
    );
    let doctor = world.run(&["doctor", "--json"]).expect(1).json();
    assert_eq!(doctor["state"], "failed");

    world.run(&["down"]).expect(0);
    assert_eq!(processes_of(&world), [] as [u32; 0]);
    world.run(&["up"]).expect(0);
}

#[test]
fn a_term_signal_drains_a_daemon_in_the_background() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let owner = world.owner().unwrap();
    signal(owner.pid, Signal::TERM);
    wait_for("the daemon to be gone", || owner.liveness() == Liveness::Gone);
    assert!(!world.home().socket().exists());
    let log = fs::read_to_string(world.home().log_file()).unwrap();
    assert!(log.contains("draining"), "{log}");
}

#[test]
fn a_daemon_that_is_stuck_is_named_and_the_wait_for_its_end_is_bounded() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let pid = world.pid();
    halt(pid);
    let down = world.run(&["down", "--timeout", "200ms", "--json"]);
    signal(pid, Signal::CONT);
    let failure = down.expect(1).json();
    assert_eq!(failure["error"]["code"], "stop_timeout");
    assert!(
        failure["error"]["message"]
            .as_str()
            .unwrap()
            .contains(&format!("pid {pid}")),
        "{failure}"
    );
}

#[test]
fn an_interrupt_ends_a_client_that_waits() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    halt(world.pid());
    let mut waiting = Running(world.command(&["down"]).stdout(Stdio::null()).spawn().unwrap());
    signal(waiting.0.id(), Signal::INT);
    // A shell reports this as 130.
    assert_eq!(waiting.0.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    signal(world.pid(), Signal::CONT);
}
