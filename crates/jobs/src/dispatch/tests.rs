//! Messages that come in an order that cannot be forced from outside.

use std::{collections::BTreeMap, num::NonZeroU16, sync::Arc, time::Duration};

use async_trait::async_trait;
use eventlog::{Log, SqliteOptions, Version};
use kernel::{CancellationToken, Cause, JobId, Slot, SystemClock};
use process::Tasks;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use super::{Dispatcher, Lane, Parts};
use crate::{
    answers::{Counts, Submitted},
    attempt::Payload,
    handler::{Handler, Outcome, Verdict, Work},
    history,
    job::{Job, NewJob, StateName},
    message::Message,
    service::Sharing,
    submit::{self, Taken},
    worker::Identity,
};
use eventlog::WallClock;

const HANDLER: &str = "gate";

/// Tells that it was begun, and ends when the gate is opened.
#[derive(Debug)]
struct Gate {
    begun: mpsc::Sender<JobId>,
    opened: CancellationToken,
}

#[async_trait]
impl Handler for Gate {
    async fn run(&self, work: Work) -> Outcome {
        let opened = self.opened.scope();
        self.begun.send(work.job).await.unwrap();
        drop(opened.wait().await);
        Outcome {
            verdict: Verdict::Succeeded,
            text: String::new(),
            result: Value::Null,
        }
    }
}

/// A job that is on disk and that the dispatcher has not been told of.
async fn submitted(log: &Log, wall: &WallClock) -> (Job, Payload) {
    let new = NewJob::new(HANDLER, "a job", b"{}".to_vec(), "a test");
    let Taken {
        submitted, payload, ..
    } = submit::submit(log, new, wall.now()).await.unwrap();
    let Submitted::New(job) = submitted else {
        panic!("it is not new");
    };
    (job, payload)
}

/// A dispatcher that nobody runs yet, and its surroundings.
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
    let dispatcher = Dispatcher::new(Parts {
        log: log.clone(),
        sharing: Sharing::Alone,
        identity: Identity::new(Sharing::Alone, "home".to_owned(), "boot".to_owned()),
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
    dispatcher.hear(Message::Open);
    dispatcher.hear(Message::Lanes(vec![(Arc::clone(&name), lane(5, &["another"]))]));
    dispatcher.queue.lane_set(&name, 0);
    dispatcher.enqueue(job);
    assert!(dispatcher.plan().is_none(), "two would run");
    // What was read before is not taken for news.
    dispatcher.hear(Message::Lanes(vec![(Arc::clone(&name), lane(4, &[]))]));
    assert!(dispatcher.plan().is_none(), "two would run");
    dispatcher.hear(Message::Lanes(vec![(Arc::clone(&name), lane(6, &[]))]));
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
    inbox.send(Message::Found(vec![first.clone()])).await.unwrap();
    assert_eq!(all_begun.recv().await, Some(first.id));
    // Whoever submitted it was slow to say so. By now the job has another version.
    let job = Box::new(first.clone());
    inbox.send(Message::Submitted { job, payload }).await.unwrap();
    // When a second one has begun, everything before it is decided.
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
        let job = history::read(&log, id).await.unwrap().unwrap();
        let (state, attempts) = (job.record.state.name(), job.record.attempts);
        assert_eq!((state, attempts), (StateName::Succeeded, 1));
    }
}
