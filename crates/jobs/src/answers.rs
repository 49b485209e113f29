//! Requests to the service, and its answers.

use eventlog::{ChangesEnd, StreamChanges};
use kernel::{Deadline, Scope};
use protocol::{JobId, JobState};

use crate::job::Job;
use crate::output::OutputSummary;
use eventlog::UnixMs;

/// An accepted job.
#[derive(Clone, Debug)]
pub enum Submitted {
    /// The job is new.
    New(Job),
    /// A job that was submitted before with the same idempotency key.
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
    /// Only jobs in this state.
    pub state: Option<JobState>,
    /// Only jobs older than this one, to continue after a page.
    pub before: Option<JobId>,
    /// The maximum number of jobs.
    pub limit: u32,
}

/// Who requests something, and why.
#[derive(Clone, Debug)]
pub struct Requested {
    /// Who.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
}

/// Why a queued job doesn't run yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WaitingFor {
    /// It waits for a free worker: all of them are busy, or the job is about to be claimed.
    Worker {
        /// How many jobs run in its pool.
        running: usize,
        /// How many jobs may run in its pool.
        limit: usize,
    },
    /// It waits for a time.
    Time(UnixMs),
    /// It waits for other jobs to succeed.
    Jobs(Vec<JobId>),
    /// It waits for other jobs in its lane.
    Lane,
}

/// The number of jobs, as far as this daemon knows, and what it has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// How many jobs are queued, for whatever reason.
    pub queued: u64,
    /// How many jobs running here occupy a worker.
    pub running: u64,
    /// How many jobs run here in the foreground pool, because someone is using them.
    pub foreground: u64,
    /// How many jobs may run here at once.
    pub max_workers: u64,
    /// How many jobs were claimed here.
    pub claimed: u64,
    /// How many claims were refused because another daemon was first.
    pub lost_claims: u64,
    /// How many jobs succeeded here.
    pub succeeded: u64,
    /// How many jobs failed here for good.
    pub failed: u64,
    /// How many jobs were cancelled here.
    pub cancelled: u64,
    /// How many attempts failed and were queued again.
    pub retried: u64,
    /// How many attempts lost their worker, or were stopped with it.
    pub interrupted: u64,
    /// How many late writes by a worker were refused.
    pub fenced: u64,
}

/// Signals changes of any job or its output. Several changes may be reported as one.
#[derive(Debug)]
pub struct JobChanges {
    pub(crate) jobs: StreamChanges,
    pub(crate) output: StreamChanges,
}

impl JobChanges {
    /// Waits until something has changed since the last call.
    ///
    /// *Cancel safety*: if the future is dropped, nothing is missed.
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

/// What is known about a job right now, besides what is stored in it.
#[derive(Clone, Debug)]
pub struct SeenNow {
    /// Its output so far.
    pub output: OutputSummary,
    /// Why it doesn't run yet, if it is queued here.
    pub waiting: Option<WaitingFor>,
}
