//! Random histories of a queue, compared with a list that is searched from end to end.

use std::{collections::BTreeMap, num::NonZeroU16, sync::Arc};

use eventlog::Version;
use proptest::prelude::*;
use protocol::JobId;

use super::{DependencyEnd, Entry, Queue, tests};
use crate::{
    answers::WaitingFor,
    job::{Attempt, Job, Lane, Pool, Priority, State, Worker},
};
use eventlog::UnixMs;

const LANES: [&str; 3] = ["cargo", "npm", "make"];
/// How many jobs come and go, and how many others they may wait for.
const JOBS: usize = 12;
const OTHERS: usize = 4;
/// The reason for waiting if there is no other.
const WORKER_BUSY: WaitingFor = WaitingFor::Worker { running: 1, limit: 2 };

#[derive(Clone, Debug)]
enum Action {
    Insert {
        number: usize,
        age: Age,
        shape: Shape,
    },
    /// The job is no longer queued.
    InsertRunning {
        number: usize,
    },
    Remove {
        number: usize,
    },
    Take,
    /// One of the jobs that were taken is put back, or has ended.
    GiveBack {
        nth: usize,
    },
    TakenEnds {
        nth: usize,
    },
    LaneSet {
        lane: usize,
        running: u32,
    },
    LaneFreed {
        lane: usize,
    },
    DependencyEnded {
        number: usize,
        end: DependencyEnd,
    },
    Pass {
        ms: u64,
    },
}

/// The version of a job that is inserted.
#[derive(Clone, Copy, Debug)]
enum Age {
    New,
    Same,
    Old,
}

#[derive(Clone, Debug)]
struct Shape {
    since: u64,
    level: i64,
    lane: Option<(usize, u16)>,
    not_before: Option<u64>,
    deadline: Option<u64>,
    unfinished: Vec<usize>,
}

/// An entry of the list.
#[derive(Clone, Debug)]
struct Line {
    job: Job,
    unfinished: Vec<JobId>,
    arrival: u64,
}

#[derive(Debug, Default)]
struct List {
    lines: Vec<Line>,
    taken: Vec<(Line, Entry)>,
    lanes: BTreeMap<Arc<str>, u32>,
    arrivals: u64,
    now: u64,
}

impl Line {
    fn not_before(&self) -> u64 {
        match self.job.record.state {
            State::Queued { not_before, .. } => not_before.map_or(0, |moment| moment.0),
            _ => panic!("only queued jobs are kept"),
        }
    }

    fn rank(&self) -> (i128, u64) {
        let State::Queued { since, .. } = self.job.record.state else {
            panic!("only queued jobs are kept");
        };
        let level = i128::from(self.job.record.facts.priority.level());
        (i128::from(since.0) - level * 60_000, self.arrival)
    }

    fn deadline(&self) -> Option<u64> {
        self.job.record.facts.deadline.map(|deadline| deadline.0)
    }
}

impl List {
    fn is_expired(&self, line: &Line) -> bool {
        line.deadline().is_some_and(|deadline| deadline <= self.now)
    }

    fn is_ready(&self, line: &Line) -> bool {
        !self.is_expired(line) && line.unfinished.is_empty() && line.not_before() <= self.now
    }

    fn has_room(&self, line: &Line) -> bool {
        let lane = line.job.record.facts.lane.as_ref();
        lane.is_none_or(|lane| self.running(&lane.name) < u32::from(lane.limit.get()))
    }

    fn running(&self, lane: &str) -> u32 {
        self.lanes.get(lane).copied().unwrap_or(0)
    }

    fn why(&self, line: &Line) -> WaitingFor {
        if self.is_expired(line) {
            WORKER_BUSY
        } else if !line.unfinished.is_empty() {
            let mut unfinished = line.unfinished.clone();
            unfinished.sort();
            unfinished.dedup();
            WaitingFor::Jobs(unfinished)
        } else if line.not_before() > self.now {
            WaitingFor::Time(UnixMs(line.not_before()))
        } else if self.has_room(line) {
            WORKER_BUSY
        } else {
            WaitingFor::Lane
        }
    }

    fn next_due(&self) -> Option<UnixMs> {
        let live = self.lines.iter().filter(|line| !self.is_expired(line));
        let deadlines = live.clone().filter_map(Line::deadline);
        let starts = live
            .filter(|line| line.unfinished.is_empty())
            .map(Line::not_before)
            .filter(|moment| *moment > self.now);
        deadlines.chain(starts).min().map(UnixMs)
    }

    fn position(&self, id: JobId) -> Option<usize> {
        self.lines.iter().position(|line| line.job.id == id)
    }

    fn insert(&mut self, job: Job, unfinished: Vec<JobId>) {
        let mut arrival = None;
        if let Some(position) = self.position(job.id) {
            if self.lines[position].job.version > job.version {
                return;
            }
            arrival = Some(self.lines.remove(position).arrival);
        }
        if !matches!(job.record.state, State::Queued { .. }) {
            return;
        }
        let arrival = arrival.unwrap_or_else(|| {
            self.arrivals += 1;
            self.arrivals
        });
        self.lines.push(Line {
            job,
            unfinished,
            arrival,
        });
    }

    fn take(&mut self) -> Option<Line> {
        let may_start = |line: &&Line| self.is_ready(line) && self.has_room(line);
        let best = self
            .lines
            .iter()
            .filter(may_start)
            .min_by_key(|line| line.rank())?;
        let line = self.lines.remove(self.position(best.job.id)?);
        if let Some(lane) = &line.job.record.facts.lane {
            *self.lanes.entry(lane.name.clone()).or_default() += 1;
        }
        Some(line)
    }

    fn freed(&mut self, lane: &str) {
        if let Some(running) = self.lanes.get_mut(lane) {
            *running = running.saturating_sub(1);
        }
    }
}

#[derive(Debug)]
struct World {
    /// Created once, because it takes a while.
    ids: Vec<JobId>,
    queue: Queue,
    list: List,
    versions: u64,
    /// The newest version of each job so far.
    newest: BTreeMap<usize, u64>,
}

impl World {
    fn new() -> Self {
        Self {
            ids: (0..JOBS + OTHERS).map(tests::id).collect(),
            queue: Queue::default(),
            list: List::default(),
            versions: 0,
            newest: BTreeMap::new(),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Insert { number, age, shape } => self.insert(number, age, &shape),
            Action::InsertRunning { number } => {
                let mut job = self.job(number, Age::New);
                job.record.state = State::Running { attempt: attempt() };
                self.queue.insert(&job, []);
                self.list.insert(job, Vec::new());
            }
            Action::Remove { number } => {
                let id = tests::id(number);
                let expected = self
                    .list
                    .position(id)
                    .map(|position| self.list.lines.remove(position));
                let removed = self.queue.remove(id).map(|entry| entry.id);
                assert_eq!(removed, expected.map(|line| line.job.id));
            }
            Action::Take => self.take(),
            Action::GiveBack { nth } => self.put_back(nth),
            Action::TakenEnds { nth } => {
                let Some((line, entry)) = self.pick(nth) else {
                    return;
                };
                if let Some(lane) = &entry.lane {
                    self.queue.lane_freed(&lane.name);
                    self.list.freed(&lane.name);
                }
                assert_eq!(line.job.id, entry.id);
            }
            Action::LaneSet { lane, running } => {
                let lane: Arc<str> = Arc::from(LANES[lane]);
                self.queue.lane_set(&lane, running);
                self.list.lanes.insert(lane, running);
            }
            Action::LaneFreed { lane } => {
                self.queue.lane_freed(&Arc::from(LANES[lane]));
                self.list.freed(LANES[lane]);
            }
            Action::DependencyEnded { number, end } => self.dependency_ended(tests::id(number), end),
            Action::Pass { ms } => self.list.now += ms,
        }
        self.compare();
    }

    fn job(&mut self, number: usize, age: Age) -> Job {
        let newest = self.newest.get(&number).copied();
        let version = match (newest, age) {
            (Some(version), Age::Same) => version,
            // This includes jobs that have been taken, inserted by a caller that doesn't know that yet.
            (Some(version), Age::Old) => version - 1,
            _ => {
                self.versions += 10;
                self.versions
            }
        };
        self.newest.insert(number, version.max(newest.unwrap_or(0)));
        tests::job(number, Version::from_u64(version))
    }

    fn insert(&mut self, number: usize, age: Age, shape: &Shape) {
        let mut job = self.job(number, age);
        let facts = &mut job.record.facts;
        facts.priority = Priority::new(shape.level).unwrap();
        facts.deadline = shape.deadline.map(UnixMs);
        facts.lane = shape.lane.map(|(lane, limit)| Lane {
            name: Arc::from(LANES[lane]),
            limit: NonZeroU16::new(limit).unwrap(),
        });
        job.record.state = State::Queued {
            since: UnixMs(shape.since),
            not_before: shape.not_before.map(UnixMs),
            last: None,
        };
        let unfinished: Vec<_> = shape.unfinished.iter().copied().map(tests::id).collect();
        self.queue.insert(&job, unfinished.clone());
        self.list.insert(job, unfinished);
    }

    fn take(&mut self) {
        let taken = self.queue.take(Pool::Workers, UnixMs(self.list.now));
        let expected = self.list.take();
        let found = taken.as_ref().map(|entry| (entry.id, entry.version));
        assert_eq!(
            found,
            expected.as_ref().map(|line| (line.job.id, line.job.version))
        );
        self.list.taken.extend(expected.zip(taken));
    }

    fn pick(&mut self, nth: usize) -> Option<(Line, Entry)> {
        let count = self.list.taken.len();
        (count > 0).then(|| self.list.taken.remove(nth % count))
    }

    fn put_back(&mut self, nth: usize) {
        let Some((line, entry)) = self.pick(nth) else {
            return;
        };
        if let Some(lane) = &entry.lane {
            self.list.freed(&lane.name);
        }
        self.queue.put_back(entry);
        match self.list.position(line.job.id) {
            Some(position) if self.list.lines[position].job.version >= line.job.version => {}
            Some(position) => self.list.lines[position] = line,
            None => self.list.lines.push(line),
        }
    }

    fn dependency_ended(&mut self, id: JobId, end: DependencyEnd) {
        let waits = |line: &&mut Line| line.unfinished.contains(&id);
        let mut doomed = Vec::new();
        for line in self.list.lines.iter_mut().filter(waits) {
            match end {
                DependencyEnd::Succeeded => line.unfinished.retain(|other| *other != id),
                DependencyEnd::NotSucceeded => doomed.push(line.job.id),
            }
        }
        doomed.sort();
        assert_eq!(self.queue.dependency_ended(id, end), doomed);
    }

    fn compare(&mut self) {
        let (queue, list) = (&mut self.queue, &self.list);
        let now = UnixMs(list.now);
        queue.advance(now);
        let ready = list.lines.iter().filter(|line| list.is_ready(line)).count();
        assert_eq!((queue.len(), queue.ready_len()), (list.lines.len(), ready));
        assert_eq!(queue.next_due(), list.next_due());

        let expired = list.lines.iter().filter(|line| list.is_expired(line));
        let mut expired: Vec<_> = expired.map(|line| line.job.id).collect();
        expired.sort();
        assert_eq!(queue.expired(now, usize::MAX), expired);
        assert_eq!(
            queue.expired(now, 1),
            expired.into_iter().take(1).collect::<Vec<_>>()
        );

        let mut waited_for: Vec<_> = list
            .lines
            .iter()
            .flat_map(|line| line.unfinished.clone())
            .collect();
        waited_for.sort();
        waited_for.dedup();
        assert_eq!(queue.waits_for().collect::<Vec<_>>(), waited_for);

        for id in self.ids.iter().copied() {
            let line = list.position(id).map(|position| &list.lines[position]);
            assert_eq!(
                queue.why(id, now, |_| (1, 2)),
                line.map(|line| list.why(line)),
                "{id}"
            );
            assert_eq!(queue.get(id).is_some(), line.is_some());
            assert_eq!(queue.is_waited_for(id), waited_for.contains(&id));
            let version = queue.get(id).map(|entry| entry.version);
            assert_eq!(version, line.map(|line| line.job.version));
        }
        for lane in LANES {
            assert_eq!(queue.lane_running(lane), list.running(lane));
        }
    }

    /// Everything that can be taken comes out in the order of the list.
    fn empty(&mut self) {
        while !self.list.taken.is_empty() {
            self.act(Action::TakenEnds { nth: 0 });
        }
        loop {
            let count = self.list.taken.len();
            self.act(Action::Take);
            if self.list.taken.len() == count {
                return;
            }
        }
    }
}

fn attempt() -> Attempt {
    Attempt {
        number: 1,
        worker: Worker {
            lease_key: Arc::from("job-worker/a"),
            lease_token: 1,
            home: Arc::from("a"),
        },
        claimed_at: UnixMs(1),
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    // Few distinct times, so that some are equal, and priority steps that are worth about as much.
    let since = prop_oneof![Just(100_000_u64), 100_000_u64..250_000];
    let lane = prop_oneof![2 => Just(None), 3 => (0..LANES.len(), 1_u16..4).prop_map(Some)];
    let not_before = prop_oneof![3 => Just(None), 1 => (0_u64..300).prop_map(Some)];
    let deadline = prop_oneof![4 => Just(None), 1 => (0_u64..500).prop_map(Some)];
    let unfinished = prop_oneof![
        3 => Just(Vec::new()),
        1 => prop::collection::vec(0..JOBS + OTHERS, 1..4),
    ];
    (since, -2_i64..3, lane, not_before, deadline, unfinished).prop_map(
        |(since, level, lane, not_before, deadline, unfinished)| Shape {
            since,
            level,
            lane,
            not_before,
            deadline,
            unfinished,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let age = prop_oneof![4 => Just(Age::New), 1 => Just(Age::Same), 1 => Just(Age::Old)];
    let end = prop_oneof![3 => Just(DependencyEnd::Succeeded), 1 => Just(DependencyEnd::NotSucceeded)];
    prop_oneof![
        10 => (0..JOBS, age, shape()).prop_map(|(number, age, shape)| Action::Insert { number, age, shape }),
        1 => (0..JOBS).prop_map(|number| Action::InsertRunning { number }),
        1 => (0..JOBS).prop_map(|number| Action::Remove { number }),
        8 => Just(Action::Take),
        2 => any::<usize>().prop_map(|nth| Action::GiveBack { nth }),
        3 => any::<usize>().prop_map(|nth| Action::TakenEnds { nth }),
        1 => (0..LANES.len(), 0_u32..5).prop_map(|(lane, running)| Action::LaneSet { lane, running }),
        1 => (0..LANES.len()).prop_map(|lane| Action::LaneFreed { lane }),
        4 => (0..JOBS + OTHERS, end).prop_map(|(number, end)| Action::DependencyEnded { number, end }),
        3 => (0_u64..60).prop_map(|ms| Action::Pass { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_as_in_the_list(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = World::new();
        for action in actions {
            world.act(action);
        }
        world.empty();
    }
}
