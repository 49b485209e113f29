//! A history that is followed while daemons come and go.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Running, World, signal};
use crate::requests::force;

/// The next line within a time that nothing takes.
fn next(lines: &mpsc::Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(30)).expect("another line")
}

fn follow(world: &World, arguments: &[&str]) -> (Running, mpsc::Receiver<String>) {
    let mut command = world.command(&["breaker", "history", "a", "--follow"]);
    let command = command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            drop(sender.send(line));
        }
    });
    (Running(child), receiver)
}

#[test]
fn a_follower_misses_nothing_and_hears_nothing_twice_across_kills_and_stops() {
    let world = World::new();
    world.run(&["breaker", "force", "a", "open"]).expect(0);
    // It is started again while the follower waits, so the follower does not start one itself.
    let (mut follower, lines) = follow(&world, &["--json"]);
    let mut expected = 1;
    let mut check = |count: u64| {
        for _ in 0..count {
            let event: Value = serde_json::from_str(&next(&lines)).unwrap();
            assert_eq!(event["sequence"], expected, "{event}");
            expected += 1;
        }
    };
    check(1);
    for round in 0..4 {
        for state in ["closed", "open", "closed"] {
            assert_eq!(force(&world.home(), "a", state).unwrap().status, 200);
        }
        check(3);
        // These may be told by this daemon or by the next.
        assert_eq!(force(&world.home(), "a", "open").unwrap().status, 200);
        if round % 2 == 0 {
            world.kill();
        } else {
            world.run(&["down"]).expect(0);
        }
        world.run(&["up"]).expect(0);
        check(1);
    }
    signal(follower.0.id(), Signal::INT);
    // A shell reports this as 130.
    assert_eq!(follower.0.wait().unwrap().signal(), Some(Signal::INT.as_raw()));
    assert_eq!(
        lines.recv(),
        Err(mpsc::RecvError),
        "something was told that did not happen"
    );
}

#[test]
fn a_follower_starts_where_it_is_told_to_and_speaks_to_people() {
    let world = World::new();
    for state in ["open", "closed", "open"] {
        world.run(&["breaker", "force", "a", state]).expect(0);
    }
    let (_follower, lines) = follow(&world, &["--after", "1"]);
    for (number, what) in [
        ("2  20", "  forced closed  req_"),
        ("3  20", "  forced open  req_"),
    ] {
        let line = next(&lines);
        assert!(line.starts_with(number) && line.contains(what), "{line}");
    }
    world.run(&["breaker", "reset", "a"]).expect(0);
    let line = next(&lines);
    assert!(
        line.starts_with("4  20") && line.contains("  reset  req_"),
        "{line}"
    );
}
