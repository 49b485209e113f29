//! Many clients at once.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Barrier};
use std::thread;

use serde_json::Value;

use crate::harness::{Outcome, Running, World, processes_of, wait_for};

const CLIENTS: usize = 10;

fn all_at_once(world: &Arc<World>, arguments: &'static [&'static str]) -> Vec<Outcome> {
    let barrier = Arc::new(Barrier::new(CLIENTS));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (world, barrier) = (Arc::clone(world), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                world.run(arguments)
            })
        })
        .collect();
    clients.into_iter().map(|client| client.join().unwrap()).collect()
}

#[test]
fn ten_clients_at_once_start_one_daemon() {
    for _ in 0..3 {
        let world = Arc::new(World::new());
        let outcomes = all_at_once(&world, &["up", "--json"]);
        let answers: Vec<Value> = outcomes
            .into_iter()
            .map(|outcome| outcome.expect(0).json())
            .collect();
        let pids: BTreeSet<u64> = answers
            .iter()
            .map(|answer| answer["pid"].as_u64().unwrap())
            .collect();
        let started = answers.iter().filter(|answer| answer["started"] == true).count();
        assert_eq!((pids.len(), started), (1, 1), "{answers:?}");
        assert_eq!(processes_of(&world), [world.pid()]);
    }
}

#[test]
fn clients_that_come_while_a_daemon_stops_get_the_next_one() {
    let world = Arc::new(World::new());
    world.run(&["up"]).expect(0);
    let first = world.pid();
    let stopping = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.run(&["down"]))
    };
    // Each of them finds the old daemon at another moment of its end, and all of them are served.
    for outcome in all_at_once(&world, &["breaker", "list", "--json"]) {
        outcome.expect(0);
    }
    stopping.join().unwrap().expect(0);
    world.run(&["breaker", "list"]).expect(0);
    assert_ne!(world.pid(), first);
}

#[test]
fn a_client_waits_for_a_daemon_that_starts_in_the_foreground() {
    let world = World::new();
    let mut command = world.command(&["serve"]);
    let serving = Running(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    // As soon as it has the start lock, a client finds this daemon and no other.
    wait_for("the start to begin", || world.home().start_lock().exists());
    let up = world.run(&["up", "--json"]).expect(0).json();
    if up["started"] == false {
        assert_eq!(up["pid"], serving.0.id());
    }
    assert_eq!(up["pid"], world.pid());
}

#[test]
fn a_start_whose_client_was_killed_is_in_nobodys_way() {
    for _ in 0..10 {
        let world = World::new();
        world.home().prepare().unwrap();
        // A daemon that starts while nobody holds the start lock, as one whose client was killed does.
        let mut command = world.command(&["serve", "--background"]);
        let orphan = Running(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let up = world.run(&["up", "--json"]).expect(0).json();
        assert_eq!(up["pid"], world.pid());
        drop(orphan);
    }
}

#[test]
fn a_second_daemon_in_the_foreground_is_refused_and_told_who_the_first_is() {
    let world = World::new();
    world.run(&["up"]).expect(0);
    let pid = world.pid();
    let refused = world.run(&["serve", "--json"]).expect(3).json();
    assert_eq!(refused["error"]["code"], "already_running");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("pid {pid}")), "{message}");
    assert_eq!(world.pid(), pid);
}
