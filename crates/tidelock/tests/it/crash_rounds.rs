//! A daemon that is killed again and again while people change breakers by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use daemon::Home;
use serde_json::Value;

use crate::harness::World;
use crate::requests::{self, events, send};

/// How many times the daemon is killed, unless `TIDELOCK_CRASH_ROUNDS` says so.
const USUAL_ROUNDS: usize = 15;
/// The breakers, each changed by several clients at once.
const NAMES: [&str; 3] = ["a", "b", "c"];
const CLIENTS: usize = 6;

/// A sequence of numbers that looks random. Its start is printed, so that a failure can be played again.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Changes breakers until the daemon is gone, and returns what was acknowledged.
fn change_until_it_is_gone(home: &Home, client: usize) -> Vec<(String, &'static str)> {
    let mut acknowledged = Vec::new();
    for number in client.. {
        let name = NAMES[number % NAMES.len()];
        let answer = match (number / NAMES.len()) % 3 {
            0 => requests::force(home, name, "open"),
            1 => requests::force(home, name, "closed"),
            _ => requests::reset(home, name),
        };
        match answer {
            Ok(answer) if answer.status == 200 => acknowledged.push((answer.request_id, name)),
            // Nobody has used the breaker yet.
            Ok(answer) if answer.status == 404 => {}
            Ok(answer) => panic!("{answer:?}"),
            Err(_) => return acknowledged,
        }
    }
    unreachable!("a daemon is killed sooner or later")
}

/// What must be true of a daemon that has just started, whatever happened to those before it.
fn check(home: &Home, acknowledged: &BTreeMap<String, &'static str>) -> usize {
    let mut count = 0;
    let mut written = BTreeSet::new();
    for name in NAMES {
        let events = events(home, name);
        let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{name}");
        for event in &events {
            let request_id = event.by.as_ref().unwrap().request_id.clone();
            assert!(
                written.insert((request_id, name)),
                "twice in the history: {event:?}"
            );
        }
        count += events.len();
        let answer = send(home, "GET", &format!("/v1/breakers/{name}"), "").unwrap();
        let expected = match events.last().map(|event| event.kind.as_str()) {
            Some("forced_open") => ("forced_open", 200),
            Some("forced_closed") => ("forced_closed", 200),
            // A breaker that decides by itself is not known to a new daemon.
            _ => ("", 404),
        };
        let state = answer.body["state"].as_str().unwrap_or_default();
        assert_eq!((state, answer.status), expected, "{name}: {:?}", events.last());
    }
    for (request_id, name) in acknowledged {
        let is_written = written.contains(&(request_id.clone(), *name));
        assert!(is_written, "acknowledged and lost: {request_id} on {name}");
    }
    count
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_doubled_however_often_the_daemon_is_killed() {
    let rounds = match std::env::var("TIDELOCK_CRASH_ROUNDS") {
        Ok(rounds) => rounds.parse().unwrap(),
        Err(_) => USUAL_ROUNDS,
    };
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    println!("the seed is {seed}");
    let mut numbers = Numbers(seed);
    let world = World::new();
    let home = world.home();
    let mut acknowledged = BTreeMap::new();
    for _ in 0..rounds {
        world.run(&["up"]).expect(0);
        check(&home, &acknowledged);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let home = home.clone();
                thread::spawn(move || change_until_it_is_gone(&home, client))
            })
            .collect();
        thread::sleep(Duration::from_millis(5 + numbers.below(120))); // tidy: the moment of the kill is the point
        world.kill();
        for client in clients {
            acknowledged.extend(client.join().unwrap());
        }
    }
    world.run(&["up"]).expect(0);
    let count = check(&home, &acknowledged);
    println!(
        "{} changes were acknowledged, {count} are in the history",
        acknowledged.len()
    );
    assert!(acknowledged.len() > rounds, "next to nothing was acknowledged");

    let boots = send(&home, "GET", "/v1/boots?limit=100", "").unwrap().body;
    let states: Vec<&str> = boots["boots"]
        .as_array()
        .unwrap()
        .iter()
        .map(|boot: &Value| boot["state"].as_str().unwrap())
        .collect();
    assert_eq!(states[0], "running");
    assert_eq!(states[1..], vec!["crashed"; rounds.min(99)]);
    let doctor = world.run(&["doctor", "--deep", "--json"]).expect(0).json();
    assert_ne!(doctor["state"], "failed", "{doctor}");
}
