//! A job: its parameters, and its state.

use std::{num::NonZeroU16, sync::Arc, time::Duration};

use eventlog::{BlobId, Entity, EntityRecord, UnixMs};
use protocol::{JobId, JobIfInterrupted, JobState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::Happening;

/// A job to submit. [`NewJob::new`] fills in the defaults.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The id it gets if it is accepted.
    pub id: JobId,
    /// Its parameters, which are part of every list.
    pub facts: Facts,
    /// The work itself, in the handler's own format; at most [`PAYLOAD_LIMIT_BYTES`](crate::PAYLOAD_LIMIT_BYTES).
    pub payload: Vec<u8>,
    /// Blobs that the payload refers to. They are kept as long as the job is.
    pub blobs: Vec<BlobId>,
    /// How long to wait before the first attempt.
    pub delay: Duration,
    /// What another submission with the same idempotency key must have in common with this one to count as the
    /// same; by default the payload.
    pub essence: Option<Vec<u8>>,
    /// A job that is submitted with this one, in one commit, and starts when this one has ended, in whatever way.
    pub then: Option<Box<NewJob>>,
}

impl NewJob {
    /// Creates a job for a handler, with the defaults.
    #[must_use]
    pub fn new(handler: &str, title: &str, payload: Vec<u8>, submitted_by: &str) -> Self {
        Self {
            id: JobId::generate(),
            facts: Facts {
                handler: Arc::from(handler),
                title: title.to_owned(),
                priority: Priority::default(),
                lane: None,
                after: Vec::new(),
                deadline: None,
                time_limit_ms: None,
                retry: RetryPolicy::default(),
                if_interrupted: JobIfInterrupted::Fail,
                idempotency_key: None,
                retry_of: None,
                output_limit_bytes: crate::DEFAULT_OUTPUT_LIMIT_BYTES,
                home: None,
                pool: Pool::Workers,
                waits_until: WaitsUntil::Success,
                followed_by: None,
                submitted_by: submitted_by.to_owned(),
            },
            payload,
            blobs: Vec::new(),
            delay: Duration::ZERO,
            essence: None,
            then: None,
        }
    }
}

/// The parameters of a job. They never change.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// The handler that does the work.
    pub handler: Arc<str>,
    /// A one-line description, for users.
    pub title: String,
    /// Its priority among queued jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// The lane, which limits how many such jobs run at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Jobs that must end before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<JobId>,
    /// How those jobs must end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waits_until: WaitsUntil,
    /// When it must have ended, including attempts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UnixMs>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// What happens after a failed attempt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: RetryPolicy,
    /// What happens when its worker dies.
    pub if_interrupted: JobIfInterrupted,
    /// A second submission with the same key is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The job that this one retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<JobId>,
    /// How much of its output is kept.
    pub output_limit_bytes: u64,
    /// The home of the daemon that must run it; `None` if any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Arc<str>>,
    /// Which limit it counts against while it runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pool: Pool,
    /// The job that was submitted with it, to start when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed_by: Option<JobId>,
    /// Who submitted it.
    pub submitted_by: String,
}

impl Facts {
    /// Whether it only handles the end of another job. Such a job isn't listed: it belongs to the other one.
    #[must_use]
    pub fn is_follower(&self) -> bool {
        self.waits_until == WaitsUntil::End
    }
}

/// Which limit a job counts against while it runs.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The number of workers, which is small: this is work that can wait.
    #[default]
    Workers,
    /// [`FOREGROUND_LIMIT`](crate::FOREGROUND_LIMIT): agents, terminals, and commands that a user watches. They run as
    /// long as someone uses them and submit their own jobs, so they must not hold the workers that those jobs need.
    Foreground,
}

/// How the jobs that a job waits for must end.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsUntil {
    /// They succeeded. If one doesn't, the job fails.
    #[default]
    Success,
    /// They ended in any way.
    End,
}

/// The priority of a job: -10 is lowest, 0 is the default, 10 is highest. Waiting counts too: each step is worth
/// [`AGEING_MS`](crate::AGEING_MS) of it, so nothing waits forever.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(i8);

impl Priority {
    /// The lowest priority.
    pub const LOWEST: Self = Self(-10);
    /// The highest priority.
    pub const HIGHEST: Self = Self(10);

    /// A priority from -10 to 10; `None` for anything else.
    #[must_use]
    pub fn new(level: i64) -> Option<Self> {
        let level = i8::try_from(level).ok()?;
        (Self::LOWEST.0..=Self::HIGHEST.0)
            .contains(&level)
            .then_some(Self(level))
    }

    /// The number.
    #[must_use]
    pub fn level(self) -> i8 {
        self.0
    }
}

/// Limits how many jobs with the same lane run at once, across all daemons that share the log.
///
/// [`protocol::JobLane`] is a lane as a client requests it. This one has been validated, so no lane is blocked forever,
/// and its name is shared by the record and the queue.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The shared name, for example `cargo:/home/me/project`.
    pub name: Arc<str>,
    /// A job starts while fewer than this run in its lane.
    pub limit: NonZeroU16,
}

/// What happens after a failed attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How many retries there are after the first attempt.
    pub max_retries: u16,
    /// The pause before the first retry. It doubles each time, and part of it is random.
    pub first_pause_ms: u64,
    /// The longest pause.
    pub longest_pause_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 0,
            first_pause_ms: 1_000,
            longest_pause_ms: 60_000,
        }
    }
}

/// A job as it was when it was read.
pub type Job = Entity<Record>;

/// The head of a job's stream.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Its parameters.
    pub facts: Facts,
    /// When it was submitted.
    pub submitted_at: UnixMs,
    /// How many attempts were claimed. The number of an attempt fences off all earlier ones.
    pub attempts: u32,
    /// How many of them failed.
    pub failures: u32,
    /// How many of them lost their worker.
    pub interruptions: u32,
    /// The request to cancel it, if any. It stays even if it came too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// Its state.
    pub state: State,
}

impl EntityRecord for Record {
    const KIND: &'static str = "job";
    type Id = JobId;
    type Event = Happening;

    fn status(&self) -> Arc<str> {
        self.state.name().as_str().into()
    }
}

/// A request to cancel a job. On the wire, its time is a string.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Who made it.
    pub by: String,
    /// The reason; may be empty.
    pub why: String,
    /// When it was made.
    pub at: UnixMs,
}

/// The state of a job.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It is waiting to run.
    Queued {
        /// Since when; decides its position in the queue.
        since: UnixMs,
        /// It must not start before this time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<UnixMs>,
        /// How the previous attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Ending>,
    },
    /// A worker is running it.
    Running {
        /// The current attempt.
        attempt: Attempt,
    },
    /// It succeeded.
    Succeeded {
        /// How the last attempt ended.
        ending: Ending,
    },
    /// It failed for good; this is the dead letter.
    Failed {
        /// The reason.
        reason: FailReason,
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
    /// It was cancelled on request. Nothing of it is running anymore.
    Cancelled {
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
}

impl State {
    /// The name of the state, by which jobs are listed.
    #[must_use]
    pub fn name(&self) -> JobState {
        match self {
            Self::Queued { .. } => JobState::Queued,
            Self::Running { .. } => JobState::Running,
            Self::Succeeded { .. } => JobState::Succeeded,
            Self::Failed { .. } => JobState::Failed,
            Self::Cancelled { .. } => JobState::Cancelled,
        }
    }

    /// Whether the state is final.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }
}

/// One claim of a job: its worker and its number.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The number of the claim, counted per job. No two claims have the same number.
    pub number: u32,
    /// The worker that made it.
    pub worker: Worker,
    /// When it was made.
    pub claimed_at: UnixMs,
}

/// A worker: one boot of a daemon, for as long as it holds its lease.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Worker {
    /// The key of the lease that proves that it is alive.
    pub lease_key: Arc<str>,
    /// The token of that lease. A daemon that lost its lease and took it again is a different worker.
    pub lease_token: u64,
    /// The home of the daemon. A home has one daemon at a time.
    pub home: Arc<str>,
}

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// The number of the attempt.
    pub attempt: u32,
    /// The home of the daemon that ran it. `None` if it never started, or in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Arc<str>>,
    /// When it was claimed.
    pub started_at: UnixMs,
    /// When it ended.
    pub ended_at: UnixMs,
    /// A one-line summary; may be empty if it succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The handler's result, for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// What happened to its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: OutputEnd,
}

/// What happened to the output of an attempt.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputEnd {
    /// How much the job has written, over all attempts, as acknowledged by the log. If the log has less, it failed to
    /// write the rest to disk after all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u64,
    /// Why some of it wasn't kept; `None` if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl Ending {
    /// Why some of the attempt's output can no longer be read, given what was kept; `None` if all of it can.
    #[must_use]
    pub fn lost_output(&self, kept: &crate::OutputSummary) -> Option<&str> {
        let is_short = kept.bytes < self.output.bytes;
        let taken_back = is_short.then_some("the log could not bring it to disk");
        self.output.lost.as_deref().or(taken_back)
    }
}

/// Why a job failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// The last attempt failed, and no retries were left.
    AttemptFailed,
    /// The last attempt took too long, and no retries were left.
    TimedOut,
    /// The job as a whole wasn't done in time.
    DeadlinePassed,
    /// Its worker died, and the job isn't repeatable, or that has happened too often.
    Interrupted,
    /// A job that it waited for didn't succeed.
    DependencyFailed,
    /// No handler of that name is registered.
    NoHandler,
}

impl FailReason {
    /// The name of the reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AttemptFailed => "attempt_failed",
            Self::TimedOut => "timed_out",
            Self::DeadlinePassed => "deadline_passed",
            Self::Interrupted => "interrupted",
            Self::DependencyFailed => "dependency_failed",
            Self::NoHandler => "no_handler",
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
