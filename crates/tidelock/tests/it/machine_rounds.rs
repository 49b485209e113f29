//! Three machines on one database that work while everything between them fails: lines are cut, the database restarts,
//! crashes and falls silent, daemons are killed and stand still. Whatever was acknowledged ends, once; what may run once
//! runs once; one lane never has two; and all machines tell the same in the end.
//!
//! `TIDELOCK_MACHINE_SECONDS` is how long it is played, `TIDELOCK_CRASH_SEED` plays a run again as far as chance is ours.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use crate::crash_rounds::Numbers;
use crate::harness::{halt, signal, wait_for_within};
use crate::machine_stage::{Machine, Machines};
use crate::postgres_server::TestServer;
use crate::tools::skip;

/// How long it is played unless `TIDELOCK_MACHINE_SECONDS` says so.
const USUAL_SECONDS: u64 = 40;
const MACHINES: usize = 3;
/// How long it may take until everything has ended once nothing fails any more: a lease, and what waits in the queue.
const UNTIL_OVER: Duration = Duration::from_secs(120);

/// A job that was acknowledged.
#[derive(Debug)]
struct Acknowledged {
    id: String,
    kind: Kind,
    /// What the command itself wrote down.
    diary: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It may run once.
    Once,
    /// It may be repeated, on any machine.
    Anywhere,
    /// It may be repeated, and only one of its kind may run.
    InLane,
}

/// Where the commands of all machines write.
struct Diaries(PathBuf);

impl Diaries {
    /// The line of a job, and where it writes.
    fn job(&self, kind: Kind, number: &str) -> (PathBuf, String) {
        let diary = self.0.join(format!("diary-{number}"));
        let work = format!(
            "echo begin >> {diary}; i=1; while [ $i -le 8 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; echo end >> {diary}",
            diary = diary.display()
        );
        let line = match kind {
            Kind::Once | Kind::Anywhere => work,
            // A lock ends with whoever holds it, however that ends.
            Kind::InLane => format!(
                "exec 9>{lock}; flock -n 9 || echo two >> {two}; {work}",
                lock = self.0.join("lock").display(),
                two = self.0.join("two").display()
            ),
        };
        (diary, line)
    }

    fn marks(&self, diary: &Path) -> Vec<String> {
        let text = fs::read_to_string(diary).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// One machine submits jobs until it is told to stop. Those that were not acknowledged are none of ours.
fn work(
    (place, machine): (usize, &Machine),
    diaries: &Diaries,
    mut numbers: Numbers,
    over: &AtomicBool,
) -> Vec<Acknowledged> {
    let (mut jobs, mut failed) = (Vec::new(), 0);
    while !over.load(Ordering::Relaxed) {
        let kind = [Kind::Once, Kind::Anywhere, Kind::InLane][usize::try_from(numbers.below(3)).unwrap()];
        let (diary, line) = diaries.job(kind, &format!("{place}-{}", jobs.len() + failed));
        let options: &[&str] = match kind {
            Kind::Once => &[],
            Kind::Anywhere => &["--anywhere", "--repeat"],
            Kind::InLane => &["--repeat", "--lane", "narrow"],
        };
        let arguments = [&["job", "run", "--json"], options, &["--shell", &line]].concat();
        let said = machine.run(&arguments);
        if said.code == Some(0) {
            let id = said.json()["id"].as_str().unwrap().to_owned();
            jobs.push(Acknowledged { id, kind, diary });
        } else {
            assert!(
                !said.stdout.trim().is_empty(),
                "it failed without a word: {said:?}"
            );
            failed += 1;
        }
    }
    jobs
}

/// What goes wrong next. It is over when this returns.
fn fail(machines: &[Machine], server: &mut TestServer, numbers: &mut Numbers) {
    let which = usize::try_from(numbers.below(MACHINES as u64)).unwrap();
    let short = Duration::from_millis(500 + numbers.below(5_000));
    let long = Duration::from_millis(14_000 + numbers.below(5_000));
    let what = numbers.below(7);
    println!("fault {what} on {which}, {short:?} or {long:?}");
    let pause = |time| thread::sleep(time); // tidy: how long it lasts is the point
    match what {
        0 | 1 => {
            let line = &machines[which].line;
            line.cut();
            pause(if what == 0 { short } else { long });
            line.mend();
        }
        2 => server.restart_after(short),
        3 => server.crash(),
        4 => {
            server.signal("-STOP");
            pause(short);
            server.signal("-CONT");
        }
        5 => {
            let world = &machines[which].world;
            if world.owner().is_some() {
                world.kill();
            }
        }
        _ => {
            let world = &machines[which].world;
            if let Some(owner) = world.owner() {
                halt(owner.pid);
                pause(if numbers.below(2) == 0 { short } else { long });
                signal(owner.pid, Signal::CONT);
            }
        }
    }
}

/// The state of each job, as one machine tells it.
fn states(machine: &Machine, jobs: &[Acknowledged]) -> BTreeMap<String, Value> {
    let state = |job: &Acknowledged| (job.id.clone(), machine.job(&job.id));
    jobs.iter().map(state).collect()
}

fn check(machines: &[Machine], diaries: &Diaries, jobs: &[Acknowledged]) {
    let told = states(&machines[0], jobs);
    for machine in &machines[1..] {
        let others = states(machine, jobs);
        for (id, job) in &told {
            assert_eq!(others[id]["state"], job["state"], "{id}");
        }
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for job in jobs {
        let shown = &told[&job.id];
        let state = shown["state"].as_str().unwrap();
        *counts.entry(format!("{:?} {state}", job.kind)).or_default() += 1;
        let marks = diaries.marks(&job.diary);
        let times = |mark: &str| marks.iter().filter(|line| *line == mark).count();
        if job.kind == Kind::Once {
            assert!(times("begin") <= 1, "it ran twice: {shown}");
        }
        if state == "succeeded" {
            assert!(times("end") >= 1, "it did not: {shown} {marks:?}");
            let said = machines[0].run(&["job", "logs", &job.id]);
            let lines: Vec<String> = (1..=8).map(|line| format!("line {line}")).collect();
            let is_whole = said.stdout.lines().eq(lines.iter().map(String::as_str));
            let is_told = shown["output_lost"].is_string() || job.kind != Kind::Once;
            assert!(is_whole || is_told, "silently lost: {shown} {said:?}");
        }
    }
    assert!(!diaries.0.join("two").exists(), "two ran in one lane");
    println!("{} jobs: {counts:?}", jobs.len());
}

#[test]
fn whatever_fails_between_machines_nothing_is_lost_or_doubled() {
    let Some(Machines { machines, mut server }) = Machines::start(MACHINES) else {
        return skip("Postgres is not installed");
    };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let chance = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("TIDELOCK_CRASH_SEED").unwrap_or_else(chance);
    let seconds = number("TIDELOCK_MACHINE_SECONDS").unwrap_or(USUAL_SECONDS);
    println!("TIDELOCK_CRASH_SEED={seed}, {seconds} s");
    let directory = tempfile::tempdir().unwrap();
    let diaries = Diaries(directory.path().to_owned());
    let over = AtomicBool::new(false);
    let jobs: Vec<Acknowledged> = thread::scope(|scope| {
        let workers: Vec<_> = machines
            .iter()
            .enumerate()
            .map(|(place, machine)| {
                let numbers = Numbers(seed ^ (place as u64 + 1));
                let (diaries, over) = (&diaries, &over);
                scope.spawn(move || work((place, machine), diaries, numbers, over))
            })
            .collect();
        let mut numbers = Numbers(seed);
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            thread::sleep(Duration::from_millis(numbers.below(3_000))); // tidy: a pause in which all is well
            fail(&machines, &mut server, &mut numbers);
        }
        over.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    for machine in &machines {
        machine.run(&["up"]).expect(0);
    }
    let one = &machines[0];
    wait_for_within("every job to end", UNTIL_OVER, || {
        jobs.iter().all(|job| one.job(&job.id)["ended_at"].is_string())
    });
    check(&machines, &diaries, &jobs);
}
