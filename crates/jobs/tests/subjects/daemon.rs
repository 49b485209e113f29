//! Daemons as the service sees them: a runtime of their own, which can be killed with everything that runs in it.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{Commit, CommitError, Committed, Log, Sequence, StreamId, Version, Write};
use jobs::{
    CancelRequest, Counts, Facts, Job, Jobs, JobsOptions, NewJob, Record, Requested, Sharing, State,
    Submitted,
};
use kernel::{CancellationToken, Clock, Deadline, SystemClock};
use process::Tasks;
use protocol::{BootId, HomeId, JobId, JobState};
use tokio::runtime::Runtime;

use super::board::{Board, HANDLER, PATIENCE, Script};

/// How long a worker may be silent.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) log: Log,
    pub(crate) sharing: Sharing,
    pub(crate) home: HomeId,
    pub(crate) max_workers: usize,
    pub(crate) lease: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) board: Board,
}

/// A daemon that has jobs and nothing else.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) jobs: Jobs,
    runtime: Option<Runtime>,
}

impl Daemon {
    /// Starts one. It has one thread, so that a handler which holds that thread stalls the whole daemon.
    pub(crate) async fn start(setting: &Setting) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let handler = setting.board.handler(setting.name);
        let options = JobsOptions {
            log: setting.log.clone(),
            sharing: setting.sharing,
            home_id: setting.home,
            boot_id: BootId::generate(),
            handlers: BTreeMap::from([(Arc::from(HANDLER), handler)]),
            max_workers: setting.max_workers,
            lease: setting.lease,
            tasks: Tasks::default(),
            clock: Arc::clone(&setting.clock),
        };
        let jobs = within("the daemon starts", runtime.spawn(Jobs::open(options))).await;
        Self {
            jobs: jobs.unwrap().unwrap(),
            runtime: Some(runtime),
        }
    }

    /// Ends it without a word. Its tasks are gone when this returns.
    pub(crate) async fn kill(mut self) {
        let runtime = self.runtime.take().expect("it is killed once");
        // A runtime that is dropped waits for its thread, and must not be dropped by a task.
        let gone = tokio::task::spawn_blocking(move || drop(runtime));
        within("the daemon is gone", gone).await.unwrap();
    }
}

impl Daemon {
    /// Drops the handle on its jobs, and hands over the runtime in which they may still run.
    pub(crate) fn leave(mut self) -> Runtime {
        self.runtime.take().expect("it is left once")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A job with a script, with the usual choices.
pub(crate) fn job(title: &str, script: Script) -> NewJob {
    NewJob::new(HANDLER, title, script.payload(), "a test")
}

/// The same, changed.
pub(crate) fn job_with(title: &str, script: Script, change: impl FnOnce(&mut Facts)) -> NewJob {
    let mut new = job(title, script);
    change(&mut new.facts);
    new
}

/// Submits a job that must be new.
pub(crate) async fn submit(jobs: &Jobs, new: NewJob) -> JobId {
    match jobs.submit(new).await.unwrap() {
        Submitted::New(job) => job.id,
        Submitted::Known(job) => panic!("{} is not new", job.id),
    }
}

pub(crate) fn by_a_test() -> Requested {
    Requested {
        by: "a test".to_owned(),
        why: "it can".to_owned(),
    }
}

pub(crate) async fn get(jobs: &Jobs, id: JobId) -> Job {
    jobs.get(id).await.unwrap().expect("there is such a job")
}

/// Waits until a job has ended.
pub(crate) async fn ended(jobs: &Jobs, id: JobId) -> Job {
    let deadline = Deadline::after(&SystemClock::shared(), PATIENCE);
    let scope = CancellationToken::new().scope();
    let job = jobs.wait(id, &deadline, &scope).await.unwrap();
    assert!(
        job.record.state.is_terminal(),
        "{} has not ended: {:?}",
        id,
        job.record
    );
    job
}

/// The words of a job's history.
pub(crate) async fn history(jobs: &Jobs, id: JobId) -> Vec<&'static str> {
    let moments = jobs.timeline(id, Sequence::START).await.unwrap();
    moments.iter().map(|moment| moment.happening.name()).collect()
}

/// How many of these words mean that a job is over.
pub(crate) fn terminal(history: &[&str]) -> usize {
    let is_terminal = |word: &&&str| ["succeeded", "failed", "cancelled"].contains(*word);
    history.iter().filter(is_terminal).count()
}

/// Waits until a job is in a state.
pub(crate) async fn in_state(jobs: &Jobs, id: JobId, state: JobState) -> Job {
    until(&format!("the job is {}", state.as_str()), || async {
        let job = get(jobs, id).await;
        (job.record.state.name() == state).then_some(job)
    })
    .await
}

/// Waits until the service counts as is wanted. It counts after it has written, so a little late.
pub(crate) async fn counted(jobs: &Jobs, is_as_wanted: impl Fn(Counts) -> bool) {
    let begun = Instant::now();
    while !is_as_wanted(jobs.counts()) {
        assert!(
            begun.elapsed() < PATIENCE,
            "it is counted otherwise: {:?}",
            jobs.counts()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Looks again and again until there is an answer.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = look().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: this has not happened");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits for something that comes soon.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.unwrap_or_else(|_| panic!("{what}: this has not happened"))
}

/// Writes the head of a job behind the back of its service, as another daemon would: on the version that it saw.
pub(crate) async fn rival(
    log: &Log,
    seen: &Job,
    happened: &str,
    change: impl FnOnce(&mut Record),
) -> Result<Version, CommitError> {
    let mut record = seen.record.clone();
    change(&mut record);
    let committed = write_record(log, seen.id, seen.version, &record, happened).await?;
    Ok(committed[0].version)
}

/// Writes a wish to cancel behind the back of the service that has the job.
pub(crate) async fn rival_cancel(log: &Log, seen: &Job) -> Version {
    let wish = serde_json::json!({ "event": "cancel_requested", "by": "a rival", "why": "it may" });
    let cancel = |record: &mut Record| {
        record.cancel = Some(CancelRequest {
            by: "a rival".to_owned(),
            why: "it may".to_owned(),
            at: record.submitted_at,
        });
    };
    rival(log, seen, &wish.to_string(), cancel).await.unwrap()
}

pub(crate) async fn write_record(
    log: &Log,
    id: JobId,
    expected: Version,
    record: &Record,
    happened: &str,
) -> Result<Vec<Committed>, CommitError> {
    let happened: serde_json::Value = serde_json::from_str(happened).unwrap();
    let write = Write {
        stream: stream(id),
        expected,
        head: Some(eventlog::Head {
            kind: "job".into(),
            status: record.state.name().as_str().into(),
            body: serde_json::to_vec(record).unwrap().into(),
            blobs: Vec::new(),
        }),
        events: vec![eventlog::NewEvent {
            kind: happened["event"].as_str().unwrap().into(),
            body: serde_json::to_vec(&happened).unwrap().into(),
            blobs: Vec::new(),
        }],
    };
    log.commit(Commit::one(write)).await
}

pub(crate) fn stream(id: JobId) -> StreamId {
    StreamId::new(&format!("job/{id}")).unwrap()
}

/// The attempt of a job that runs.
pub(crate) fn attempt(job: &Job) -> &jobs::Attempt {
    match &job.record.state {
        State::Running { attempt } => attempt,
        state => panic!("it does not run: {state:?}"),
    }
}
