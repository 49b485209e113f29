//! Message orders that can't be forced from outside.

use std::{collections::BTreeMap, num::NonZeroU16, sync::Arc, time::Duration};

use async_trait::async_trait;
use eventlog::{Log, SqliteOptions, Version};
use kernel::{CancellationToken, Cause, Slot, SystemClock};
use process::Tasks;
use protocol::{JobId, JobState};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use super::{Dispatcher, DispatcherParts, Lane};
use crate::{
    answers::{Counts, Submitted},
    attempt::Payload,
    handler::{AttemptOutcome, AttemptVerdict, Handler, Work},
    job::{Job, NewJob},
    message::Message,
    recover::JobScan,
    service::Sharing,
    state::{self, Change},
    submit::{self, AcceptedJob},
    worker::WorkerIdentity,
};
use eventlog::WallClock;

const HANDLER: &str = "gate";

/// Signals when it has started, and ends when the gate is opened.
#[derive(Debug)]
struct Gate {
    begun: mpsc::Sender<JobId>,
    opened: CancellationToken,
}

#[async_trait]
impl Handler for Gate {
    async fn run(&self, work: Work) -> AttemptOutcome {
        let opened = self.opened.scope();
        self.begun.send(work.job).await.unwrap();
        drop(opened.wait().await);
        AttemptOutcome {
            verdict: AttemptVerdict::Succeeded,
            text: String::new(),
            result: Value::Null,
        }
    }
}

/// A job that is on disk, and that the dispatcher doesn't know about.
async fn submitted(log: &Log, wall: &WallClock) -> (Job, Payload) {
    let new = NewJob::new(HANDLER, "a job", b"{}".to_vec(), "a test");
    let AcceptedJob {
        submitted, payload, ..
    } = submit::submit(log, new, wall.now()).await.unwrap();
    let Submitted::New(job) = submitted else {
        panic!("it is not new");
    };
    (job, payload)
}

/// A dispatcher that isn't running yet, and its surroundings.
struct Stage {
    dispatcher: Dispatcher,
    inbox: mpsc::Sender<Message>,
    all_begun: mpsc::Receiver<JobId>,
    gate: CancellationToken,
    log: Log,
    wall: WallClock,
    tasks: Tasks,
    _directory: TempDir,
}

fn stage() -> Stage {
    let directory = TempDir::new().unwrap();
    let clock = SystemClock::shared();
    let options = SqliteOptions {
        path: directory.path().join("log.sqlite3"),
    };
    let log = Log::open_sqlite(&options, Arc::clone(&clock)).unwrap();
    let (begun, all_begun) = mpsc::channel(16);
    let opened = CancellationToken::new();
    let handler: Arc<dyn Handler> = Arc::new(Gate {
        begun,
        opened: opened.clone(),
    });
    let (inbox, messages) = mpsc::channel(16);
    let (wall, tasks) = (WallClock::of_machine(clock), Tasks::default());
    let dispatcher = Dispatcher::new(DispatcherParts {
        log: log.clone(),
        sharing: Sharing::Alone,
        identity: WorkerIdentity::new(Sharing::Alone, "home".to_owned(), "boot".to_owned()),
        handlers: BTreeMap::from([(Arc::from(HANDLER), handler)]),
        max_workers: 4,
        lease: Duration::from_secs(10),
        tasks: tasks.clone(),
        wall: wall.clone(),
        counts: Slot::new(Counts::default()),
        inbox: messages,
        report: inbox.downgrade(),
    });
    Stage {
        dispatcher,
        inbox,
        all_begun,
        gate: opened,
        log,
        wall,
        tasks,
        _directory: directory,
    }
}

#[tokio::test]
async fn the_limit_of_a_lane_holds_whatever_the_queue_counts() {
    let Stage {
        mut dispatcher,
        log,
        wall,
        ..
    } = stage();
    let (mut job, _) = submitted(&log, &wall).await;
    let name: Arc<str> = "narrow".into();
    job.record.facts.lane = Some(crate::job::Lane {
        name: Arc::clone(&name),
        limit: NonZeroU16::MIN,
    });
    let lane = |version: u64, running: &[&str]| Lane {
        version: Version::from_u64(version),
        running: running.iter().map(ToString::to_string).collect(),
    };
    dispatcher.handle(Message::Open);
    let heard = |lane: Lane| Message::Lane {
        name: Arc::clone(&name),
        lane,
    };
    dispatcher.handle(heard(lane(5, &["another"])));
    dispatcher.queue.lane_set(&name, 0);
    dispatcher.enqueue(job);
    assert!(dispatcher.plan().is_none(), "two would run");
    // An older read of the lane is ignored.
    dispatcher.handle(heard(lane(4, &[])));
    assert!(dispatcher.plan().is_none(), "two would run");
    // So is the removal of an older version.
    let seen = Version::from_u64(4);
    dispatcher.handle(Message::LaneGone {
        name: Arc::clone(&name),
        seen,
    });
    assert!(dispatcher.plan().is_none(), "two would run");
    dispatcher.handle(heard(lane(6, &[])));
    let flight = dispatcher.plan();
    assert_eq!(flight.map(|flight| flight.batch.claim_count()), Some(1));
}

#[tokio::test]
async fn a_job_that_a_scan_finds_before_its_submission_is_heard_is_begun_once() {
    let Stage {
        dispatcher,
        inbox,
        mut all_begun,
        gate,
        log,
        wall,
        tasks,
        _directory,
    } = stage();
    tasks.spawn("jobs", dispatcher.run());
    inbox.send(Message::Open).await.unwrap();

    let (first, payload) = submitted(&log, &wall).await;
    inbox
        .send(Message::QueuedFound(vec![first.clone()]))
        .await
        .unwrap();
    assert_eq!(all_begun.recv().await, Some(first.id));
    // The message about the submission came late. By now the job has another version.
    let job = Box::new(first.clone());
    inbox.send(Message::Submitted { job, payload }).await.unwrap();
    // When a second job has started, everything before it has been decided.
    let (second, payload) = submitted(&log, &wall).await;
    let job = Box::new(second.clone());
    inbox.send(Message::Submitted { job, payload }).await.unwrap();
    let mut later = vec![all_begun.recv().await.unwrap()];
    gate.cancel(Cause::new("a test", "the gate is opened"));
    let (answer, idle) = oneshot::channel();
    inbox.send(Message::Idle { answer }).await.unwrap();
    idle.await.unwrap();
    while let Ok(id) = all_begun.try_recv() {
        later.push(id);
    }
    assert_eq!(later, [second.id]);
    for id in [first.id, second.id] {
        let job = Job::read(&log, id).await.unwrap().unwrap();
        let (state, attempts) = (job.record.state.name(), job.record.attempts);
        assert_eq!((state, attempts), (JobState::Succeeded, 1));
    }
}

/// At a start, running and queued jobs are read concurrently, and another daemon queues a job again that this
/// home had run.
#[tokio::test]
async fn a_job_that_is_queued_again_while_it_is_found_to_be_dead_runs_once() {
    for is_found_queued in [true, false] {
        let Stage {
            mut dispatcher,
            inbox,
            mut all_begun,
            gate,
            log,
            wall,
            tasks,
            _directory,
        } = stage();
        let (queued, _) = submitted(&log, &wall).await;
        let claim = Change::Claim {
            worker: dispatcher.parts.identity.worker(),
            now: wall.now(),
        };
        let running = Job {
            version: Version::from_u64(queued.version.get() - 1),
            record: state::apply(&queued.record, claim).unwrap().record,
            ..queued.clone()
        };
        dispatcher.restore(JobScan {
            dead: vec![running],
            queued: is_found_queued.then_some(queued.clone()).into_iter().collect(),
            lanes: Vec::new(),
        });
        // Both are decided at once.
        dispatcher.handle(Message::Open);
        tasks.spawn("jobs", dispatcher.run());
        let begun = tokio::time::timeout(Duration::from_secs(10), all_begun.recv()).await;
        assert_eq!(begun, Ok(Some(queued.id)), "found queued: {is_found_queued}");
        gate.cancel(Cause::new("a test", "the gate is opened"));
        let (answer, idle) = oneshot::channel();
        inbox.send(Message::Idle { answer }).await.unwrap();
        idle.await.unwrap();
        let job = Job::read(&log, queued.id).await.unwrap().unwrap();
        let (state, attempts) = (job.record.state.name(), job.record.attempts);
        assert_eq!((state, attempts), (JobState::Succeeded, 1));
    }
}

/// A second scan reports that the worker of a job is dead, while the job is being queued again.
#[tokio::test]
async fn a_job_that_is_found_to_be_dead_twice_runs_once() {
    let Stage {
        mut dispatcher,
        inbox,
        mut all_begun,
        gate,
        log,
        wall,
        tasks,
        _directory,
    } = stage();
    let (mut running, _) = submitted(&log, &wall).await;
    let claim = Change::Claim {
        worker: dispatcher.parts.identity.worker(),
        now: wall.now(),
    };
    running.record = state::apply(&running.record, claim).unwrap().record;
    running.record.facts.if_interrupted = protocol::JobIfInterrupted::Repeat;
    running.save(&log, &[]).await.unwrap();
    dispatcher.restore(JobScan {
        dead: vec![running.clone(), running.clone()],
        ..JobScan::default()
    });
    dispatcher.handle(Message::Open);
    tasks.spawn("jobs", dispatcher.run());
    let dead = Message::WorkerDead {
        job: Box::new(running.clone()),
        text: "again".to_owned(),
    };
    inbox.send(dead).await.unwrap();
    let begun = tokio::time::timeout(Duration::from_secs(10), all_begun.recv()).await;
    assert_eq!(begun, Ok(Some(running.id)));
    gate.cancel(Cause::new("a test", "the gate is opened"));
    let (answer, idle) = oneshot::channel();
    inbox.send(Message::Idle { answer }).await.unwrap();
    idle.await.unwrap();
    let job = Job::read(&log, running.id).await.unwrap().unwrap();
    let (state, attempts) = (job.record.state.name(), job.record.attempts);
    assert_eq!((state, attempts), (JobState::Succeeded, 2));
}
