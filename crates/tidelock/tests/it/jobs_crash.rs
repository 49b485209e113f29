//! Jobs whose daemon, keepers and commands are killed at random: each that was acknowledged ends once, and none is lost.
//!
//! `TIDELOCK_JOBS` says how many there are, and `TIDELOCK_JOBS_SEED` plays a run again as far as chance is ours.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use daemon::Home;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::crash_rounds::Numbers;
use crate::harness::{World, processes_of, signal};
use crate::requests::{Answer, send};

/// How many jobs there are, unless `TIDELOCK_JOBS` says so.
const USUAL_JOBS: usize = 300;
/// How many clients submit them.
const CLIENTS: usize = 3;
/// How long anything may take of which it is not known how long it takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one job may take at most on a machine that has other things to do.
const PATIENCE_PER_JOB: Duration = Duration::from_millis(200);
/// How long it is looked for something to kill. With nothing left to do there is nothing.
const STRIKE_WITHIN: Duration = Duration::from_secs(1);
const TERMINAL: [&str; 3] = ["succeeded", "failed", "cancelled"];

/// What a job does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Nothing.
    Bare,
    /// It leaves a mark, and must not do it twice.
    Once,
    /// It leaves a mark, and may do it again.
    Again,
    /// It leaves a mark, and then takes a while with a process of its own.
    Slow,
    /// It leaves a mark and fails, and is tried once more.
    Failing,
}

impl Kind {
    fn of(number: usize) -> Self {
        match number % 8 {
            0 => Self::Bare,
            1 | 2 => Self::Once,
            3 | 4 => Self::Again,
            5 => Self::Slow,
            _ => Self::Failing,
        }
    }

    fn body(self, number: usize, directory: &str) -> Value {
        let mark = format!("echo {number} >> marks");
        let command = match self {
            Self::Bare => json!({ "argv": ["/bin/true"], "directory": directory }),
            Self::Once | Self::Again => json!({ "shell": mark, "directory": directory }),
            Self::Slow => {
                json!({ "shell": format!("{mark}; sleep 0.2 & wait"), "directory": directory })
            }
            Self::Failing => json!({ "shell": format!("{mark}; exit 3"), "directory": directory }),
        };
        let is_repeatable = matches!(self, Self::Again | Self::Slow);
        json!({
            "command": command,
            "title": number.to_string(),
            "idempotency_key": format!("key of {number}"),
            "max_retries": if self == Self::Failing { 1 } else { 0 },
            "retry_pause_ms": 1,
            "if_interrupted": if is_repeatable { "repeat" } else { "fail" },
        })
    }
}

/// What has been acknowledged so far: the id of each job by its number. All clients write it.
type Acknowledged = Mutex<BTreeMap<usize, String>>;

/// Submits every `CLIENTS`-th job, and each until it is acknowledged. The key makes that harmless.
fn submit_all(home: &Home, directory: &str, jobs: usize, client: usize, acknowledged: &Acknowledged) {
    for number in (client..jobs).step_by(CLIENTS) {
        let body = Kind::of(number).body(number, directory).to_string();
        let begun = Instant::now();
        let answer = loop {
            match send(home, "POST", "/v1/jobs", &body) {
                Ok(answer) if answer.status < 300 => break answer,
                // The daemon is not there, or not yet, or no longer.
                Ok(Answer { status: 503, .. }) | Err(_) => {}
                Ok(answer) => panic!("{answer:?}"),
            }
            assert!(begun.elapsed() < PATIENCE, "{number} is not taken");
            thread::sleep(Duration::from_millis(5)); // tidy: the daemon is being started again
        };
        let id = answer.body["job"]["id"].as_str().unwrap().to_owned();
        acknowledged.lock().unwrap().insert(number, id);
    }
}

/// How often each number stands in the file of marks.
fn marks(world: &World) -> BTreeMap<usize, u64> {
    let mut marks = BTreeMap::new();
    let text = fs::read_to_string(world.path().join("marks")).unwrap_or_default();
    for line in text.lines() {
        *marks.entry(line.parse().unwrap()).or_default() += 1;
    }
    marks
}

fn get(home: &Home, path: &str) -> Value {
    let answer = send(home, "GET", path, "").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// All jobs.
fn list(home: &Home, query: &str) -> Vec<Value> {
    let (mut jobs, mut before) = (Vec::new(), String::new());
    loop {
        let page = get(home, &format!("/v1/jobs?limit=500{query}{before}"));
        jobs.extend(page["jobs"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next_before"].as_str() else {
            return jobs;
        };
        before = format!("&before={next}");
    }
}

/// Kills the daemon again and again while there is work, and sometimes one of the processes that it keeps.
struct Killer<'a> {
    world: &'a World,
    numbers: Numbers,
    kills: usize,
    strikes: usize,
}

impl Killer<'_> {
    /// Kills something that the daemon keeps, waits until so many marks are there, and kills the daemon.
    fn kill_after(&mut self, marks_left: usize) {
        let begun = Instant::now();
        self.strike();
        while marks(self.world).values().sum::<u64>() < marks_left as u64 {
            assert!(begun.elapsed() < PATIENCE, "nothing is done any more");
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(self.numbers.below(60))); // tidy: the moment of the kill is the point
        self.world.kill();
        self.kills += 1;
        self.world.run(&["up"]).expect(0);
    }

    /// Kills a keeper or a command, if there is one soon.
    fn strike(&mut self) {
        let (daemon, begun) = (self.world.pid(), Instant::now());
        while begun.elapsed() < STRIKE_WITHIN {
            let victims = processes_of(self.world);
            let victims: Vec<u32> = victims.into_iter().filter(|pid| *pid != daemon).collect();
            let drawn = self.numbers.below(victims.len().max(1) as u64);
            if let Some(victim) = victims.get(usize::try_from(drawn).unwrap()) {
                signal(*victim, Signal::KILL);
                self.strikes += 1;
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// What came of all jobs, counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    succeeded: usize,
    failed_by_themselves: usize,
    interrupted_for_good: usize,
    interruptions: u64,
    repeated: usize,
    /// Attempts that ended and did not do what they should have: somebody has killed them.
    struck: u64,
}

/// What is wrong with a job, and what it adds to the tally.
fn look_at(home: &Home, job: &Value, marks: u64, tally: &mut Tally) {
    let kind = Kind::of(job["title"].as_str().unwrap().parse().unwrap());
    let id = job["id"].as_str().unwrap();
    let (state, reason) = (job["state"].as_str().unwrap(), job["reason"].as_str());
    let (attempts, interruptions) = (
        job["attempts"].as_u64().unwrap(),
        job["interruptions"].as_u64().unwrap(),
    );
    let history = get(home, &format!("/v1/jobs/{id}/history"));
    let events: Vec<&str> = history["moments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|moment| moment["event"].as_str().unwrap())
        .collect();
    let of = |word: &str| events.iter().filter(|event| **event == word).count() as u64;
    let about = format!("{kind:?} with {marks} marks, {events:?}: {job}");
    assert_eq!(events.first(), Some(&"submitted"), "{about}");
    assert_eq!(events.last(), Some(&state), "{about}");
    let terminal = events.iter().filter(|event| TERMINAL.contains(event)).count();
    assert_eq!(terminal, 1, "{about}");
    assert_eq!(
        (of("claimed"), of("interrupted")),
        (attempts, interruptions),
        "{about}"
    );
    let given_up = of("retrying") + of("interrupted") + of("released");
    assert!(given_up == attempts || given_up + 1 == attempts, "{about}");
    assert!(of("retrying") <= 1, "{about}");
    assert!(marks <= attempts, "{about}");
    tally.interruptions += interruptions;
    match (kind, state, reason) {
        (Kind::Bare, "succeeded", None) => tally.succeeded += 1,
        (Kind::Once, "succeeded", None) => {
            assert_eq!((marks, attempts - of("released")), (1, 1), "{about}");
            tally.succeeded += 1;
        }
        (Kind::Again | Kind::Slow, "succeeded", None) => {
            assert!(marks >= 1, "{about}");
            tally.succeeded += 1;
            tally.repeated += usize::from(interruptions > 0);
        }
        (Kind::Failing, "failed", Some("attempt_failed")) => {
            assert_eq!((of("retrying"), interruptions), (1, 0), "{about}");
            tally.struck += 2 - marks;
            tally.failed_by_themselves += 1;
        }
        (_, "failed", Some("attempt_failed")) => tally.struck += 1,
        (Kind::Bare | Kind::Once | Kind::Failing, "failed", Some("interrupted")) => {
            assert_eq!(interruptions, 1, "{about}");
            tally.interrupted_for_good += 1;
        }
        _ => panic!("that must not be: {about}"),
    }
}

#[test]
fn every_job_that_was_acknowledged_ends_once_whoever_is_killed() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let jobs = number("TIDELOCK_JOBS").map_or(USUAL_JOBS, |jobs| usize::try_from(jobs).unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("TIDELOCK_JOBS_SEED").unwrap_or(now.as_secs());
    println!("the seed is {seed}");
    let world = World::new();
    let home = world.home();
    let directory = world.path().display().to_string();
    let acknowledged = Acknowledged::default();
    let kills = 4 + jobs / 150;
    let mut killer = Killer {
        world: &world,
        numbers: Numbers(seed),
        kills: 0,
        strikes: 0,
    };
    let begun = Instant::now();
    world.run(&["up"]).expect(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (home, directory, acknowledged) = (&home, &directory, &acknowledged);
            scope.spawn(move || submit_all(home, directory, jobs, client, acknowledged));
        }
        for kill in 0..kills {
            // Some jobs are interrupted before they leave a mark, so the last kills come well before the end.
            killer.kill_after(kill * jobs / (kills + 4));
        }
    });
    let submitted = begun.elapsed();
    let acknowledged = acknowledged.into_inner().unwrap();
    let patience = PATIENCE + PATIENCE_PER_JOB * u32::try_from(jobs).unwrap();
    for state in ["queued", "running"] {
        while let Some(job) = list(&home, &format!("&state={state}")).first() {
            assert!(begun.elapsed() < patience, "it does not end: {job}");
            thread::sleep(Duration::from_millis(100));
        }
    }
    let ended = begun.elapsed();

    let found = list(&home, "");
    let ids: BTreeSet<&str> = found.iter().map(|job| job["id"].as_str().unwrap()).collect();
    let expected: BTreeSet<&str> = acknowledged.values().map(String::as_str).collect();
    assert_eq!((found.len(), ids), (jobs, expected), "lost or doubled");
    let (marks, mut tally) = (marks(&world), Tally::default());
    for job in &found {
        let number: usize = job["title"].as_str().unwrap().parse().unwrap();
        assert_eq!(job["id"].as_str(), acknowledged.get(&number).map(String::as_str));
        look_at(&home, job, marks.get(&number).copied().unwrap_or(0), &mut tally);
    }
    println!(
        "{jobs} jobs, {} kills of the daemon, {} of other processes; submitted after {submitted:?}, ended after \
         {ended:?}; {tally:?}",
        killer.kills, killer.strikes
    );
    assert!(tally.struck <= killer.strikes as u64, "{tally:?}");
    assert_eq!(processes_of(&world), [world.pid()], "something is left");
    let doctor = world.run(&["doctor", "--deep", "--json"]).expect(0).json();
    assert_ne!(doctor["state"], "failed", "{doctor}");
}
