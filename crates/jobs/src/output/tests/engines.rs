//! The logs that the tests run on, with one job in them.

use std::{collections::BTreeMap, io::Write as _, time::Duration};

use eventlog::{Commit, Lease, Log, PostgresOptions, Sequence, SqliteOptions, Version, Write};
use kernel::{CancellationToken, SystemClock};
use process::Tasks;
use protocol::{JobChannel, JobId, JobProgress};
use tempfile::TempDir;

use crate::{
    NewJob, UnixMs, history,
    job::{Ending, Job, OutputEnd, State},
    output::{FollowEnd, Output, OutputItem, OutputOptions, OutputTail},
    state,
};

/// The URL of the test server.
const URL_VARIABLE: &str = "TIDELOCK_TEST_POSTGRES_URL";
/// Where to report a skip.
const REPORT_VARIABLE: &str = "TIDELOCK_SKIP_REPORT";
/// All tests share it: ids are unique, and no test trims.
const SCHEMA: &str = "tidelock_test_job_output";

/// How long a test waits for something that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
const LEASE: Duration = Duration::from_secs(600);

/// A log with a running job.
pub(super) struct Bench {
    pub(super) log: Log,
    pub(super) lease: Lease,
    pub(super) tasks: Tasks,
    pub(super) job: JobId,
    /// The job, as it was last written.
    written: Job,
    _directory: Option<TempDir>,
}

/// What was read, with adjacent pieces of one channel joined.
pub(super) type Told = Vec<(JobChannel, String)>;

pub(super) async fn sqlite() -> Bench {
    let directory = TempDir::new().unwrap();
    let options = SqliteOptions {
        path: directory.path().join("log.sqlite3"),
    };
    let log = Log::open_sqlite(&options, SystemClock::shared()).unwrap();
    Bench::new(log, Some(directory)).await
}

/// `None` if there is no server to test with; the skip is reported.
pub(super) async fn postgres() -> Option<Bench> {
    let Ok(url) = std::env::var(URL_VARIABLE) else {
        skip();
        return None;
    };
    let options = PostgresOptions {
        schema: SCHEMA.to_owned(),
        ..PostgresOptions::new(url)
    };
    let log = Log::open_postgres(&options).await.unwrap();
    Some(Bench::new(log, None).await)
}

fn skip() {
    let reason = format!("SKIPPED: no Postgres server, since {URL_VARIABLE} is not set");
    let may_skip = std::env::var("CI").map_or(true, |ci| ci != "true");
    assert!(may_skip, "{reason}");
    println!("{reason}");
    if let Some(report) = std::env::var_os(REPORT_VARIABLE) {
        let report = std::fs::OpenOptions::new().append(true).create(true).open(report);
        report
            .unwrap()
            .write_all(format!("{reason}\n").as_bytes())
            .unwrap();
    }
}

impl Bench {
    async fn new(log: Log, directory: Option<TempDir>) -> Self {
        let job = JobId::generate();
        let lease = log.lease(&format!("worker of {job}"), "test", LEASE).await;
        let new = NewJob::new("test", "a job", Vec::new(), "a test");
        let (record, _) = state::submitted(new.facts, Duration::ZERO, UnixMs(1));
        let mut bench = Self {
            lease: lease.unwrap(),
            log,
            tasks: Tasks::default(),
            job,
            written: Job::new(job, record),
            _directory: directory,
        };
        bench.move_job().await;
        bench
    }

    /// Writes the job unchanged, with an event.
    pub(super) async fn move_job(&mut self) {
        let write = Write {
            events: vec![history::submitted_event("a test", b"", Vec::new()).unwrap()],
            ..self.written.write(&[]).unwrap()
        };
        self.written.commit(&self.log, Commit::one(write)).await.unwrap();
    }

    /// Ends the job, as a worker does after it has finished the output.
    pub(super) async fn end_job(&mut self) -> Job {
        let ending = Ending {
            home: None,
            attempt: 1,
            started_at: UnixMs(2),
            ended_at: UnixMs(3),
            text: String::new(),
            result: serde_json::Value::Null,
            output: OutputEnd::default(),
        };
        self.written.record.state = State::Succeeded { ending };
        self.move_job().await;
        self.written.clone()
    }

    pub(super) fn options(&self, attempt: u32, limit_bytes: u64) -> OutputOptions {
        OutputOptions {
            log: self.log.clone(),
            lease: Some(self.lease.clone()),
            lease_scope: CancellationToken::new().scope(),
            job: self.job,
            attempt,
            limit_bytes,
            tasks: self.tasks.clone(),
            clock: SystemClock::shared(),
        }
    }

    pub(super) fn output(&self, attempt: u32, limit_bytes: u64) -> Output {
        Output::new(self.options(attempt, limit_bytes))
    }

    pub(super) fn follow(&self, after: u64) -> OutputTail {
        let scope = CancellationToken::new().scope();
        OutputTail::new(&self.log, self.job, Sequence::from_u64(after).into(), &scope)
    }

    /// Everything in the stream.
    pub(super) async fn told(&self) -> (Told, Vec<JobProgress>) {
        // Only a durable commit guarantees that readers see everything acknowledged before.
        let flush = Write {
            stream: eventlog::StreamId::new(&format!("flush/{}", JobId::generate())).unwrap(),
            expected: Version::NONE,
            ..self.written.write(&[]).unwrap()
        };
        self.log.commit(Commit::one(flush)).await.unwrap();
        let mut items = Vec::new();
        let mut after = Sequence::START;
        loop {
            let page = self
                .log
                .read(&history::output_stream(self.job), after, 256)
                .await
                .unwrap();
            let Some(last) = page.events.last() else {
                return joined(&items);
            };
            after = last.sequence;
            items.extend(
                page.events
                    .iter()
                    .filter_map(|event| super::super::stream::item(event).unwrap()),
            );
        }
    }
}

pub(super) fn joined(items: &[OutputItem]) -> (Told, Vec<JobProgress>) {
    let (mut pieces, mut said): (Vec<(JobChannel, Vec<u8>)>, _) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            OutputItem::Piece(piece) => match pieces.last_mut() {
                Some((last, bytes)) if *last == piece.channel && piece.channel != JobChannel::Note => {
                    bytes.extend_from_slice(&piece.bytes);
                }
                _ => pieces.push((piece.channel, piece.bytes.to_vec())),
            },
            OutputItem::Progress { progress, .. } => said.push(progress.clone()),
            OutputItem::Resync { .. } | OutputItem::End(..) => panic!("unexpected: {item:?}"),
        }
    }
    let text = |(channel, bytes)| (channel, String::from_utf8(bytes).unwrap());
    (pieces.into_iter().map(text).collect(), said)
}

pub(super) fn by_channel(told: &Told) -> BTreeMap<&'static str, String> {
    let mut channels: BTreeMap<&str, String> = BTreeMap::new();
    for (channel, text) in told {
        let name = channel.as_str();
        channels.entry(name).or_default().push_str(text);
    }
    channels
}

/// The next item, which must arrive.
pub(super) async fn next(tail: &mut OutputTail) -> Result<OutputItem, FollowEnd> {
    in_time(tail.next()).await
}

/// All items up to the end of the job, and the job.
pub(super) async fn until_end(tail: &mut OutputTail) -> (Vec<OutputItem>, Job) {
    let mut items = Vec::new();
    loop {
        match next(tail).await.unwrap() {
            OutputItem::End(job, _) => return (items, *job),
            item => items.push(item),
        }
    }
}

pub(super) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, future).await;
    done.expect("this takes milliseconds")
}

pub(super) fn progress(done: u64, total: Option<u64>, text: &str) -> JobProgress {
    let text = text.to_owned();
    JobProgress { done, total, text }
}

/// Turns a check into one test per engine.
macro_rules! on_every_engine {
    ($($check:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $check() {
                    super::$check(super::super::engines::sqlite().await).await;
                }
            )+
        }

        mod postgres {
            $(
                #[tokio::test]
                async fn $check() {
                    if let Some(bench) = super::super::engines::postgres().await {
                        super::$check(bench).await;
                    }
                }
            )+
        }
    };
}
pub(super) use on_every_engine;
