//! What a job is: what was asked for, and what has become of it.

use std::{num::NonZeroU16, sync::Arc, time::Duration};

use eventlog::{BlobId, Entity, EntityRecord, UnixMs};
use protocol::{JobId, JobIfInterrupted, JobState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::Happening;

/// A job to be submitted. [`NewJob::new`] has the usual choices.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id, if it is taken.
    pub id: JobId,
    /// What is asked for, as it stands in every list.
    pub facts: Facts,
    /// The work itself, in the words of its handler; at most [`PAYLOAD_LIMIT_BYTES`](crate::PAYLOAD_LIMIT_BYTES).
    pub payload: Vec<u8>,
    /// Blobs that the payload refers to. They are kept as long as the job is.
    pub blobs: Vec<BlobId>,
    /// How long to wait before the first attempt.
    pub delay: Duration,
    /// What another submission with the same idempotency key must have in common with this one to be the same; the
    /// payload if nothing is given.
    pub essence: Option<Vec<u8>>,
    /// A job that is submitted with this one, in one commit, and starts when this one has ended, however it did.
    pub then: Option<Box<NewJob>>,
}

impl NewJob {
    /// A job for a handler, with the usual choices.
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

/// What was asked for. It never changes.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Who does the work.
    pub handler: Arc<str>,
    /// What it is, in one line, for people.
    pub title: String,
    /// Which of several goes first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub priority: Priority,
    /// With which others it shares a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Jobs that must have ended before it starts, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<JobId>,
    /// How those must have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub waits_until: WaitsUntil,
    /// When it must have ended, attempts and pauses included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<UnixMs>,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ms: Option<u64>,
    /// What happens after an attempt that failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub retry: RetryPolicy,
    /// What happens when its worker dies.
    pub if_interrupted: JobIfInterrupted,
    /// A second submission with the same key is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The job that this one does again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<JobId>,
    /// How much of its output is kept.
    pub output_limit_bytes: u64,
    /// The home whose daemon must do it; nothing if any may.
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
    /// Whether it only deals with the end of another job. Such a job is not listed: it belongs to the other one.
    #[must_use]
    pub fn is_follower(&self) -> bool {
        self.waits_until == WaitsUntil::End
    }
}

/// Which limit a job counts against while it runs.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// The number of workers, which is small: this is work that waits its turn.
    #[default]
    Workers,
    /// [`FOREGROUND_LIMIT`](crate::FOREGROUND_LIMIT): agents, terminals, and commands that somebody watches. They stay as
    /// long as somebody works with them and submit jobs of their own, so they must not hold the workers that those need.
    Foreground,
}

/// How the jobs must have ended that a job waits for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsUntil {
    /// They succeeded. If one does not, the job is given up.
    #[default]
    Success,
    /// They ended in any way.
    End,
}

/// Which of several jobs goes first: -10 is last, 0 is usual, 10 is first. Waiting counts too: each step is worth
/// [`AGEING_MS`](crate::AGEING_MS) of it, so nothing waits for ever.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(i8);

impl Priority {
    /// The last.
    pub const LOWEST: Self = Self(-10);
    /// The first.
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

/// Jobs of one lane run at most so many at once, over all daemons that share the log.
///
/// [`protocol::JobLane`] is a lane as somebody asks for it. This one has been checked, so no lane stands still forever, and
/// its name is shared by the record and the queue.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The name that they share, for example `cargo:/home/me/project`.
    pub name: Arc<str>,
    /// A job starts while fewer than this run in its lane.
    pub limit: NonZeroU16,
}

/// What happens after an attempt that failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How many more attempts there are after the first.
    pub max_retries: u16,
    /// The pause before the first of them. It doubles each time, and a part of it is left to chance.
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
    /// What was asked for.
    pub facts: Facts,
    /// When it was submitted.
    pub submitted_at: UnixMs,
    /// How many attempts were claimed. The number of an attempt fences off all earlier ones.
    pub attempts: u32,
    /// How many of them failed.
    pub failures: u32,
    /// How many of them lost their worker.
    pub interruptions: u32,
    /// Who wants it to be cancelled, once somebody does. It stays, also if the wish came too late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// What it is doing.
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

/// A wish that a job be cancelled. On the wire, its time is a text.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct CancelRequest {
    /// Who.
    pub by: String,
    /// Why, in their words; may be empty.
    pub why: String,
    /// When.
    pub at: UnixMs,
}

/// What a job is doing.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// It waits for its turn.
    Queued {
        /// Since when, which counts for its turn.
        since: UnixMs,
        /// Not to be started before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<UnixMs>,
        /// How the attempt before ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<Ending>,
    },
    /// A worker has it.
    Running {
        /// Whose it is.
        attempt: Attempt,
    },
    /// It was done.
    Succeeded {
        /// How the last attempt ended.
        ending: Ending,
    },
    /// It was given up; this is the dead letter.
    Failed {
        /// Why.
        reason: FailReason,
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
    /// Somebody wanted it to be cancelled, and it was. Nothing of it runs any more.
    Cancelled {
        /// How the last attempt ended, if there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<Ending>,
    },
}

impl State {
    /// The word for it, by which jobs are listed.
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

    /// Whether it is over for good.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.name().is_terminal()
    }
}

/// One claim of a job: who has it, and which claim it is.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The how-manieth claim of the job it is. No two have the same number.
    pub number: u32,
    /// The worker that made it.
    pub worker: Worker,
    /// When it was made.
    pub claimed_at: UnixMs,
}

/// A worker: one life of a daemon, as long as it holds its lease.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Worker {
    /// The key of the lease that says that it lives.
    pub lease_key: Arc<str>,
    /// The token of that lease. A daemon that lost its lease and took it again is another worker.
    pub lease_token: u64,
    /// The home of the daemon. A home has one daemon at a time.
    pub home: Arc<str>,
}

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// Which attempt.
    pub attempt: u32,
    /// The home whose daemon ran it. Nothing if it was never started; earlier versions did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<Arc<str>>,
    /// When it was claimed.
    pub started_at: UnixMs,
    /// When it ended.
    pub ended_at: UnixMs,
    /// What is to be said of it, in one line; empty if it succeeded and there is nothing to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the handler has to say, for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// What became of its output.
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: OutputEnd,
}

/// What became of the output of an attempt.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct OutputEnd {
    /// How much the job has written, over all attempts, as the log acknowledged it. If there is less in the log, it could not
    /// bring the rest to disk after all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u64,
    /// Why some of it was not kept; nothing if all of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl Ending {
    /// Why some of what the attempt said cannot be read any more, given what there is of it; nothing if all of it is there.
    #[must_use]
    pub fn lost_output(&self, kept: &crate::OutputSummary) -> Option<&str> {
        let is_short = kept.bytes < self.output.bytes;
        let taken_back = is_short.then_some("the log could not bring it to disk");
        self.output.lost.as_deref().or(taken_back)
    }
}

/// Why a job was given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// The last attempt failed, and there was no other one left.
    AttemptFailed,
    /// The last attempt took too long, and there was no other one left.
    TimedOut,
    /// The job as a whole was not done in time.
    DeadlinePassed,
    /// Its worker died, and it is not to be repeated, or that has happened too often.
    Interrupted,
    /// A job that it waited for did not succeed.
    DependencyFailed,
    /// No handler of that name is registered.
    NoHandler,
}

impl FailReason {
    /// The word.
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
