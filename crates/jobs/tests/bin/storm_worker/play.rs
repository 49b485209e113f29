//! What the jobs of a storm are, what their handler does, and how a service is opened that has it.

use std::{
    collections::BTreeMap,
    error::Error,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    num::NonZeroU16,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use eventlog::Log;
use jobs::{
    AttemptOutcome, AttemptVerdict, Handler, Jobs, JobsOptions, Lane, NewJob, Priority, Requested,
    RetryPolicy, Sharing, Work,
};
use kernel::{Clock, Deadline, SystemClock};
use process::Tasks;
use protocol::{BootId, HomeId, JobChannel, JobIfInterrupted};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const HANDLER: &str = "play";

/// What a worker is told, a line each. It answers each with a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    Submit(Asked),
    Cancel(String),
    Workers(usize),
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Ready,
    Taken(String),
    Done,
    Refused(String),
}

/// A job that is asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) priority: i64,
    /// The lane of this number; it takes one more than that at once.
    pub(crate) lane: Option<u16>,
    pub(crate) max_retries: u16,
    pub(crate) delay_ms: u64,
    pub(crate) time_limit_ms: Option<u64>,
    pub(crate) if_interrupted: JobIfInterrupted,
    /// The id of a job that must have succeeded before.
    pub(crate) after: Option<String>,
    pub(crate) part: Part,
}

/// What the handler does in the attempts of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// So many attempts fail, whatever the end is.
    pub(crate) fails_first: u32,
    pub(crate) takes_ms: u64,
    pub(crate) says_lines: u8,
    pub(crate) end: PartEnd,
}

/// What the handler does in the end.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) enum PartEnd {
    Succeeds,
    Panics,
    GivesUp,
}

impl Part {
    /// Whether the work is done in this attempt, if nobody stops it.
    pub(crate) fn succeeds_in(&self, attempt: u32) -> bool {
        self.end == PartEnd::Succeeds && attempt > self.fails_first
    }
}

impl Asked {
    pub(crate) fn new_job(&self) -> NewJob {
        let payload = serde_json::to_vec(&self.part).unwrap_or_default();
        let mut new = NewJob::new(HANDLER, "a part in a storm", payload, "a storm");
        new.delay = Duration::from_millis(self.delay_ms);
        let facts = &mut new.facts;
        facts.priority = Priority::new(self.priority).unwrap_or_default();
        facts.lane = self.lane.map(|number| Lane {
            name: format!("lane {number}").into(),
            limit: NonZeroU16::MIN.saturating_add(number),
        });
        facts.after = self.after.iter().filter_map(|id| id.parse().ok()).collect();
        facts.time_limit_ms = self.time_limit_ms;
        facts.retry = RetryPolicy {
            max_retries: self.max_retries,
            first_pause_ms: 2,
            longest_pause_ms: 8,
        };
        facts.if_interrupted = self.if_interrupted;
        new
    }
}

/// Plays the parts. It writes down which attempts it has begun, in a file that all workers share.
#[derive(Debug)]
pub(crate) struct Player {
    diary: File,
    clock: Arc<dyn Clock>,
}

impl Player {
    fn open(diary: &Path) -> io::Result<Self> {
        let diary = OpenOptions::new().append(true).create(true).open(diary)?;
        let clock = SystemClock::shared();
        Ok(Self { diary, clock })
    }
}

#[async_trait]
impl Handler for Player {
    async fn run(&self, work: Work) -> AttemptOutcome {
        // One short write to a file that is only ever added to: it is there whole, whoever else writes.
        let line = format!("{} {}\n", work.job, work.attempt);
        let Ok(()) = (&self.diary).write_all(line.as_bytes()) else {
            return outcome(AttemptVerdict::FailedPermanently);
        };
        let Ok(part) = serde_json::from_slice::<Part>(&work.payload) else {
            return outcome(AttemptVerdict::FailedPermanently);
        };
        for number in 0..part.says_lines {
            drop(
                work.output
                    .write(JobChannel::Stdout, format!("{number}\n").as_bytes())
                    .await,
            );
        }
        let done = Deadline::after(&self.clock, Duration::from_millis(part.takes_ms));
        tokio::select! {
            biased;
            _ = work.scope.wait() => return outcome(AttemptVerdict::Stopped),
            () = done.passed() => {}
        }
        if part.succeeds_in(work.attempt) {
            return outcome(AttemptVerdict::Succeeded);
        }
        match part.end {
            // No hook is called for this, so that a storm is not told twice.
            PartEnd::Panics => resume_unwind(Box::new("as it was told to")),
            PartEnd::GivesUp => outcome(AttemptVerdict::FailedPermanently),
            PartEnd::Succeeds => outcome(AttemptVerdict::Failed),
        }
    }
}

fn outcome(verdict: AttemptVerdict) -> AttemptOutcome {
    AttemptOutcome {
        verdict,
        text: format!("{verdict:?}"),
        result: Value::Null,
    }
}

/// Where and how a worker works.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) home: HomeId,
    pub(crate) diary: PathBuf,
    pub(crate) lease: Duration,
    pub(crate) max_workers: usize,
}

/// Opens a service that shares the log with others.
pub(crate) async fn open(log: Log, place: &Place) -> Result<Jobs, Box<dyn Error + Send + Sync>> {
    let player: Arc<dyn Handler> = Arc::new(Player::open(&place.diary)?);
    let options = JobsOptions {
        log,
        sharing: Sharing::WithOthers,
        home_id: place.home,
        boot_id: BootId::generate(),
        handlers: BTreeMap::from([(Arc::from(HANDLER), player)]),
        max_workers: place.max_workers,
        lease: place.lease,
        tasks: Tasks::default(),
        clock: SystemClock::shared(),
    };
    Ok(Jobs::open(options).await?)
}

/// Does what a worker is told.
pub(crate) async fn obey(jobs: &Jobs, order: Order) -> Answer {
    match order {
        Order::Submit(asked) => match jobs.submit(asked.new_job()).await {
            Ok(submitted) => Answer::Taken(submitted.job().id.to_string()),
            Err(error) => Answer::Refused(error.to_string()),
        },
        Order::Cancel(id) => {
            let Ok(id) = id.parse() else {
                return Answer::Refused("that is no id".to_owned());
            };
            let request = Requested {
                by: "a storm".to_owned(),
                why: String::new(),
            };
            match jobs.cancel(id, request).await {
                Ok(_) => Answer::Done,
                Err(error) => Answer::Refused(error.to_string()),
            }
        }
        Order::Workers(count) => {
            jobs.set_max_workers(count).await;
            Answer::Done
        }
    }
}
