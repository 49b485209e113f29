//! What a queue guarantees whatever it contains: nothing starves, and size doesn't matter.

use std::{num::NonZeroU16, sync::Arc};

use eventlog::Version;
use protocol::JobId;

use super::{QUEUE_LIMIT, Queue};
use crate::{
    AGEING_MS,
    answers::WaitingFor,
    job::{Job, Lane, NewJob, Pool, Priority, Record, State},
};
use eventlog::UnixMs;

/// Enough to notice if a step visited all of them.
const JOBS: usize = QUEUE_LIMIT / 2;

pub(super) fn id(number: usize) -> JobId {
    format!("job_{number:026}").parse().unwrap()
}

/// A job that has waited since 1970.
pub(super) fn job(number: usize, version: Version) -> Job {
    let record = Record {
        facts: NewJob::new("command", "test", Vec::new(), "me").facts,
        submitted_at: UnixMs(0),
        attempts: 0,
        failures: 0,
        interruptions: 0,
        cancel: None,
        state: State::Queued {
            since: UnixMs(0),
            not_before: None,
            last: None,
        },
    };
    Job {
        version,
        ..Job::new(id(number), record)
    }
}

fn job_since(number: usize, since: UnixMs, priority: Priority) -> Job {
    let mut job = job(number, Version::from_u64(1));
    job.record.facts.priority = priority;
    job.record.state = State::Queued {
        since,
        not_before: None,
        last: None,
    };
    job
}

fn in_lane(mut job: Job, name: &str) -> Job {
    job.record.facts.lane = Some(Lane {
        name: Arc::from(name),
        limit: NonZeroU16::MIN,
    });
    job
}

#[test]
fn nothing_starves_under_a_steady_stream_of_what_is_more_urgent() {
    let mut queue = Queue::default();
    let start_ms = 1_000_000_000;
    queue.insert(&job_since(0, UnixMs(start_ms), Priority::LOWEST), []);
    let mut taken_after_ms = None;
    let steps = i64::from(Priority::HIGHEST.level()) - i64::from(Priority::LOWEST.level());
    let most_ms = u64::try_from(steps).unwrap() * AGEING_MS;
    // One worker that takes a second per job, and a new urgent job each second, so there is always one.
    for (next, passed_ms) in (1..).zip((0..).step_by(1_000)) {
        let now = UnixMs(start_ms + passed_ms);
        queue.insert(&job_since(next, now, Priority::HIGHEST), []);
        if queue.take(Pool::Workers, now).unwrap().id == id(0) {
            taken_after_ms = Some(passed_ms);
            break;
        }
        assert!(passed_ms <= most_ms, "it still waits after {passed_ms} ms");
    }
    // Waiting is worth exactly its head start, and no more.
    assert_eq!(taken_after_ms, Some(most_ms));
}

#[test]
fn equals_are_taken_in_the_order_in_which_they_came() {
    let mut queue = Queue::default();
    for number in [5, 3, 9, 1] {
        queue.insert(&job(number, Version::from_u64(1)), []);
    }
    // A newer version of a job keeps its position, and so does one that is put back.
    queue.insert(&job(3, Version::from_u64(2)), []);
    let first = queue.take(Pool::Workers, UnixMs(0)).unwrap();
    queue.put_back(first);
    let order: Vec<_> = std::iter::from_fn(|| queue.take(Pool::Workers, UnixMs(0)))
        .map(|entry| entry.id)
        .collect();
    assert_eq!(order, [5, 3, 9, 1].map(id));
}

/// This takes seconds if each step costs a logarithm, and hours if it visits all of them.
#[test]
fn a_long_queue_and_a_blocked_lane_slow_nobody_down() {
    let mut queue = Queue::default();
    let blocked: Arc<str> = Arc::from("blocked");
    queue.lane_set(&blocked, 1);
    for number in 0..JOBS {
        let since = UnixMs(1_000 + number as u64);
        let job = job_since(number, since, Priority::default());
        match number % 2 {
            0 => queue.insert(&in_lane(job, "blocked"), []),
            _ => queue.insert(&job, []),
        }
    }
    let now = UnixMs(10_000_000);
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(Pool::Workers, now))
        .map(|entry| entry.id)
        .collect();
    let free: Vec<_> = (0..JOBS).filter(|number| number % 2 == 1).map(id).collect();
    assert!(taken == free, "those without a lane, in their order");

    queue.lane_freed(&blocked);
    let mut from_lane = Vec::new();
    while let Some(entry) = queue.take(Pool::Workers, now) {
        assert_eq!(queue.take(Pool::Workers, now), None, "one at a time");
        from_lane.push(entry.id);
        queue.lane_freed(&blocked);
    }
    let in_lane: Vec<_> = (0..JOBS).filter(|number| number % 2 == 0).map(id).collect();
    assert!(from_lane == in_lane, "those of the lane, in their order");
    assert_eq!((queue.len(), queue.ready_len(), queue.next_due()), (0, 0, None));
}

#[test]
fn a_lane_without_jobs_leaves_nothing_behind() {
    let mut queue = Queue::default();
    for number in 0..100 {
        let name = format!("lane {number}");
        queue.insert(&in_lane(job(number, Version::from_u64(1)), &name), []);
    }
    while let Some(entry) = queue.take(Pool::Workers, UnixMs(0)) {
        queue.lane_freed(&entry.lane.unwrap().name);
    }
    assert_eq!(queue.lanes(), 0);
}

#[test]
fn why_is_answered_for_the_time_that_is_named() {
    let mut queue = Queue::default();
    let mut delayed = in_lane(job(0, Version::from_u64(1)), "cargo");
    delayed.record.state = State::Queued {
        since: UnixMs(0),
        not_before: Some(UnixMs(100)),
        last: None,
    };
    queue.insert(&delayed, []);
    let (lane, time) = (Arc::from("cargo"), WaitingFor::Time(UnixMs(100)));
    // The queue needn't be advanced to this time first.
    assert_eq!(queue.why(id(0), UnixMs(99), |_| (1, 2)), Some(time));
    assert_eq!(
        queue.why(id(0), UnixMs(100), |_| (1, 2)),
        Some(WaitingFor::Worker { running: 1, limit: 2 })
    );
    queue.lane_set(&lane, 1);
    assert_eq!(queue.why(id(0), UnixMs(100), |_| (1, 2)), Some(WaitingFor::Lane));
    assert_eq!(queue.why(id(1), UnixMs(100), |_| (1, 2)), None);
}
