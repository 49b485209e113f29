//! What the service is asked with, and what it answers.

use eventlog::{ChangesEnd, StreamChanges};
use kernel::{Deadline, Scope};
use protocol::{JobId, JobState};

use crate::job::Job;
use crate::output::OutputSummary;
use eventlog::UnixMs;

/// A job was taken.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// It is new.
    New(Job),
    /// It was submitted before with the same idempotency key.
    Known(Job),
}

impl Submitted {
    /// The job, new or not.
    #[must_use]
    pub fn job(&self) -> &Job {
        match self {
            Self::New(job) | Self::Known(job) => job,
        }
    }
}

/// Which jobs to list, newest first.
#[derive(Clone, Copy, Debug)]
pub struct ListQuery {
    /// Only those that are doing this.
    pub state: Option<JobState>,
    /// Only those that are older than this one, to go on where a page ended.
    pub before: Option<JobId>,
    /// At most so many.
    pub limit: u32,
}

/// Who asks for something, and why.
#[derive(Clone, Debug)]
pub struct Requested {
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
}

/// Why a queued job does not run yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WaitingFor {
    /// For its turn: all places are taken, or it is about to be claimed.
    Worker {
        /// How many run where it will.
        running: usize,
        /// How many may run there.
        limit: usize,
    },
    /// For a time.
    Time(UnixMs),
    /// For other jobs to succeed.
    Jobs(Vec<JobId>),
    /// For others in its lane.
    Lane,
}

/// How many jobs there are, as this daemon knows it, and what it has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// How many wait, for whatever reason.
    pub queued: u64,
    /// How many run here that take the place of a worker.
    pub running: u64,
    /// How many run here beside those, because somebody works with them.
    pub foreground: u64,
    /// How many may run here at once.
    pub max_workers: u64,
    /// How many were claimed here.
    pub claimed: u64,
    /// How many claims were refused because somebody else was first.
    pub lost_claims: u64,
    /// How many ended here, by state.
    pub succeeded: u64,
    /// How many were given up here.
    pub failed: u64,
    /// How many were cancelled here.
    pub cancelled: u64,
    /// How many attempts failed and were queued again.
    pub retried: u64,
    /// How many lost their worker, or were stopped with it.
    pub interrupted: u64,
    /// How many late writes of a worker were refused.
    pub fenced: u64,
}

/// Tells of changes of any job or its output. Several changes may be told as one.
#[derive(Debug)]
pub struct JobChanges {
    pub(crate) jobs: StreamChanges,
    pub(crate) output: StreamChanges,
}

impl JobChanges {
    /// Waits until something has changed since it was last told.
    ///
    /// *Cancel safety*: dropped half-way, nothing is missed.
    ///
    /// # Errors
    /// If nothing changes before the deadline, or the scope is cancelled.
    pub async fn next(&mut self, deadline: Deadline, scope: &Scope) -> Result<(), ChangesEnd> {
        tokio::select! {
            biased;
            told = self.jobs.next(deadline.clone(), scope) => told,
            told = self.output.next(deadline, scope) => told,
        }
    }
}

/// What is known of a job now, beside what is written in it.
#[derive(Clone, Debug)]
pub struct SeenNow {
    /// Its output so far.
    pub output: OutputSummary,
    /// Why it does not run yet, if it is queued here.
    pub waiting: Option<WaitingFor>,
}
