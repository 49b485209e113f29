//! Storms: two workers on one log that are killed, stand still and come back, while jobs are submitted and cancelled.
//!
//! What is done is drawn from a seed, which is printed; `TIDELOCK_STORM_SEED` plays it again, and
//! `TIDELOCK_STORM_CASES` says how many storms there are. What comes of it is checked in `storm_rules`, on the
//! histories in the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use eventlog::{HeadsOrder, HeadsQuery, Log, Sequence, SqliteOptions};
use jobs::{Jobs, ListQuery};
use kernel::SystemClock;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use protocol::{HomeId, JobId, JobIfInterrupted};
use tempfile::TempDir;

use crate::{
    play::{Answer, Asked, Order, Part, PartEnd, Place, open},
    storm_daemons::{Daemon, Ground},
    storm_database::Database,
    storm_rules::{Seen, faults_between_jobs, faults_of_job},
};

/// How long a worker may be silent. Short, so that a storm need not wait long for those who were killed.
const LEASE: Duration = Duration::from_millis(300);
/// So long a worker stands still that loses its lease by it.
const STALL: Duration = Duration::from_millis(450);
/// How long it may take until every job has ended. It takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(90);
const PAGE: u32 = 500;

/// One of the two workers.
type Who = usize;

/// Something that is done in a storm.
#[derive(Clone, Debug)]
enum Deed {
    /// A job is submitted, which may wait for one of those before.
    Submit(Who, Asked, Option<prop::sample::Index>),
    Cancel(Who, prop::sample::Index),
    Workers(Who, usize),
    Kill(Who, Return),
    Stall(Who),
    Pause(u64),
}

/// As whom a worker comes back that was killed.
#[derive(Clone, Copy, Debug)]
enum Return {
    /// In its home, so that it knows at once that the one before is dead.
    Home,
    /// As a stranger, so that somebody has to find that out.
    Elsewhere,
}

fn parts() -> impl Strategy<Value = Part> {
    let ends = prop_oneof![
        8 => Just(PartEnd::Succeeds),
        1 => Just(PartEnd::Panics),
        1 => Just(PartEnd::GivesUp),
    ];
    let fails = prop_oneof![3 => Just(0), 1 => 1_u32..4];
    let takes = prop_oneof![2 => Just(0), 4 => 1_u64..15, 1 => 20_u64..80];
    (fails, takes, 0_u8..3, ends).prop_map(|(fails_first, takes_ms, says_lines, end)| Part {
        fails_first,
        takes_ms,
        says_lines,
        end,
    })
}

fn asked() -> impl Strategy<Value = Asked> {
    let delay = prop_oneof![3 => Just(0), 1 => 1_u64..20];
    let limit = prop_oneof![6 => Just(None), 1 => (5_u64..30).prop_map(Some)];
    let lane = prop_oneof![2 => Just(None), 3 => (0_u16..3).prop_map(Some)];
    let fate = prop_oneof![Just(JobIfInterrupted::Fail), Just(JobIfInterrupted::Repeat)];
    (-10_i64..=10, lane, 0_u16..4, delay, limit, fate, parts()).prop_map(
        |(priority, lane, max_retries, delay_ms, time_limit_ms, if_interrupted, part)| Asked {
            priority,
            lane,
            max_retries,
            delay_ms,
            time_limit_ms,
            if_interrupted,
            after: None,
            part,
        },
    )
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let who = 0_usize..2;
    let after = prop::option::weighted(0.1, any::<prop::sample::Index>());
    let deed = prop_oneof![
        60 => (who.clone(), asked(), after).prop_map(|(who, asked, after)| Deed::Submit(who, asked, after)),
        12 => (who.clone(), any::<prop::sample::Index>()).prop_map(|(who, which)| Deed::Cancel(who, which)),
        6 => (who.clone(), 0_usize..5).prop_map(|(who, count)| Deed::Workers(who, count)),
        4 => (who.clone(), prop_oneof![Just(Return::Home), Just(Return::Elsewhere)])
            .prop_map(|(who, back)| Deed::Kill(who, back)),
        1 => who.prop_map(Deed::Stall),
        17 => (0_u64..40).prop_map(Deed::Pause),
    ];
    prop::collection::vec(deed, 60..140)
}

/// What a storm was like.
#[derive(Debug, Default)]
struct Tally {
    jobs: usize,
    kills: usize,
    stalls: usize,
    interrupted: u32,
    begun: usize,
}

/// Two workers, and all that they have taken.
struct Storm<'a> {
    ground: &'a Ground,
    places: [Place; 2],
    daemons: [Option<Daemon>; 2],
    taken: Vec<String>,
    tally: Tally,
}

impl Storm<'_> {
    fn tell(&mut self, who: Who, order: Order) -> Answer {
        self.daemons[who].as_mut().unwrap().tell(order)
    }

    fn do_it(&mut self, deed: Deed) {
        match deed {
            Deed::Submit(who, mut asked, after) => {
                if let Some(after) = after.filter(|_| !self.taken.is_empty()) {
                    asked.after = Some(after.get(&self.taken).clone());
                }
                match self.tell(who, Order::Submit(asked)) {
                    Answer::Taken(id) => self.taken.push(id),
                    other => panic!("it was not taken: {other:?}"),
                }
            }
            Deed::Cancel(who, which) => {
                if !self.taken.is_empty() {
                    let id = which.get(&self.taken).clone();
                    // It may have ended.
                    self.tell(who, Order::Cancel(id));
                }
            }
            Deed::Workers(who, count) => {
                self.tell(who, Order::Workers(count));
            }
            Deed::Kill(who, back) => {
                self.daemons[who].take().unwrap().kill();
                self.tally.kills += 1;
                if let Return::Elsewhere = back {
                    self.places[who].home = HomeId::generate();
                }
                self.daemons[who] = Some(Daemon::start(self.ground, &self.places[who]));
            }
            Deed::Stall(who) => {
                self.daemons[who].as_mut().unwrap().stall(STALL);
                self.tally.stalls += 1;
            }
            Deed::Pause(ms) => std::thread::sleep(Duration::from_millis(ms)),
        }
    }
}

/// All jobs, from newest to oldest.
async fn all_jobs(jobs: &Jobs) -> Vec<jobs::Job> {
    let mut all: Vec<jobs::Job> = Vec::new();
    loop {
        let query = ListQuery {
            state: None,
            before: all.last().map(|job| job.id),
            limit: PAGE,
        };
        let page = jobs.list(query).await.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

async fn seen(jobs: &Jobs, job: jobs::Job, diary: &BTreeMap<JobId, Vec<u32>>) -> Seen {
    let payload = jobs.payload(job.id).await.unwrap().unwrap();
    Seen {
        id: job.id,
        moments: jobs.timeline(job.id, Sequence::START).await.unwrap(),
        record: job.record,
        part: serde_json::from_slice(&payload).unwrap(),
        begun: diary.get(&job.id).cloned().unwrap_or_default(),
    }
}

fn read_diary(path: &Path) -> BTreeMap<JobId, Vec<u32>> {
    let mut diary: BTreeMap<JobId, Vec<u32>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
        let (id, attempt) = line.split_once(' ').unwrap();
        let attempts = diary.entry(id.parse().unwrap()).or_default();
        attempts.push(attempt.parse().unwrap());
    }
    diary
}

/// The lanes in which somebody is said to run.
async fn busy_lanes(log: &Log) -> Vec<String> {
    let query = HeadsQuery {
        kind: "job-lane".into(),
        status: Some("busy".into()),
        after: None,
        limit: PAGE,
        order: HeadsOrder::OldestFirst,
    };
    let heads = log.heads(query).await.unwrap();
    let words = |stored: &eventlog::StoredHead| String::from_utf8_lossy(&stored.head.body).into_owned();
    heads.iter().map(words).collect()
}

/// Waits until everything has ended, and returns what is wrong.
async fn end_of(storm: &mut Storm<'_>, log: &Log, diary: &Path) -> Vec<String> {
    // Somebody who looks and never works.
    let looker = Place {
        home: HomeId::generate(),
        max_workers: 0,
        ..storm.places[0].clone()
    };
    let jobs = open(log.clone(), &looker).await.unwrap();
    let begun_at = Instant::now();
    let all = loop {
        let all = all_jobs(&jobs).await;
        let is_over = all.iter().all(|job| job.record.state.is_terminal());
        if is_over || begun_at.elapsed() > PATIENCE {
            break all;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let found: BTreeSet<String> = all.iter().map(|job| job.id.to_string()).collect();
    let lost = storm.taken.iter().filter(|id| !found.contains(*id));
    let mut faults: Vec<String> = lost.map(|id| format!("{id}: it was taken and is lost")).collect();
    let diary = read_diary(diary);
    let mut histories = Vec::new();
    for job in all {
        histories.push(seen(&jobs, job, &diary).await);
    }
    faults.extend(histories.iter().flat_map(faults_of_job));
    faults.extend(faults_between_jobs(&histories));
    let busy = busy_lanes(log).await;
    faults.extend(
        busy.iter()
            .map(|lane| format!("nobody runs, and a lane is busy: {lane}")),
    );
    storm.tally.jobs = histories.len();
    storm.tally.interrupted = histories.iter().map(|seen| seen.record.interruptions).sum();
    storm.tally.begun = diary.values().map(Vec::len).sum();
    faults
}

/// Lets one storm pass over two workers.
fn play(seed: u64, ground: &Ground, log: &Log, runtime: &tokio::runtime::Runtime) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let deeds = deeds().new_tree(&mut runner).unwrap().current();
    let directory = TempDir::new().unwrap();
    let diary = directory.path().join("diary");
    let places = [1, 3].map(|max_workers| Place {
        home: HomeId::generate(),
        diary: diary.clone(),
        lease: LEASE,
        max_workers,
    });
    let daemons = places.each_ref().map(|place| Some(Daemon::start(ground, place)));
    let mut storm = Storm {
        ground,
        places,
        daemons,
        taken: Vec::new(),
        tally: Tally::default(),
    };
    println!("the storm of seed {seed}: {} deeds", deeds.len());
    let begun_at = Instant::now();
    for deed in deeds {
        storm.do_it(deed);
    }
    for who in 0..2 {
        storm.tell(who, Order::Workers(4));
    }
    let deeds_took = begun_at.elapsed();
    let faults = runtime.block_on(end_of(&mut storm, log, &diary));
    for daemon in &mut storm.daemons {
        daemon.take().unwrap().kill();
    }
    println!(
        "{:?}, done after {deeds_took:?}, over after {:?}",
        storm.tally,
        begun_at.elapsed()
    );
    assert!(faults.is_empty(), "the storm of seed {seed}: {faults:#?}");
}

/// The seeds of so many storms, unless somebody wants others.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (first, count) = match number("TIDELOCK_STORM_SEED") {
        Some(seed) => (seed, number("TIDELOCK_STORM_CASES").unwrap_or(1)),
        None => (
            u64::from(now.subsec_nanos()) << 16,
            number("TIDELOCK_STORM_CASES").unwrap_or(usual),
        ),
    };
    first..first + count
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn two_workers_on_one_file_end_every_job_once() {
    for seed in seeds(6) {
        let directory = TempDir::new().unwrap();
        let options = SqliteOptions {
            path: directory.path().join("log.sqlite3"),
        };
        let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
        let ground = Ground::Here { log: log.clone() };
        play(seed, &ground, &log, &runtime());
    }
}

#[test]
fn two_programs_on_one_database_end_every_job_once() {
    for seed in seeds(4) {
        let Some(database) = Database::new() else {
            return;
        };
        let runtime = runtime();
        let log = runtime.block_on(Log::open_postgres(&database.options())).unwrap();
        let ground = Ground::There { database };
        play(seed, &ground, &log, &runtime);
        drop(log);
    }
}
