//! The interface to the code that does the work of a job.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::BlobId;
use kernel::Scope;
use protocol::JobId;
use serde_json::Value;

use crate::output::Output;

/// Does the work of all jobs with one handler name.
#[async_trait]
pub trait Handler: Send + Sync + std::fmt::Debug {
    /// Does the work. When this returns, nothing of it may still be running: clients rely on that when a job is
    /// reported as cancelled. It must end soon after `work.scope` is cancelled, and then return
    /// [`AttemptVerdict::Stopped`]; if the work was done before it noticed, it returns the actual outcome.
    async fn run(&self, work: Work) -> AttemptOutcome;
}

/// One attempt of a job, as its handler sees it.
#[derive(Debug)]
pub struct Work {
    /// The job.
    pub job: JobId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// A description for users.
    pub title: String,
    /// Who submitted it.
    pub submitted_by: String,
    /// The payload, in the handler's own format.
    pub payload: Arc<[u8]>,
    /// The blobs that were submitted with it.
    pub blobs: Vec<BlobId>,
    /// The jobs that it waited for.
    pub after: Vec<JobId>,
    /// Cancelled when the attempt must end: on request, by a time limit, because the worker lost its lease, or
    /// because the daemon shuts down.
    pub scope: Scope,
    /// Receives output and progress.
    pub output: Output,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptOutcome {
    /// How it went.
    pub verdict: AttemptVerdict,
    /// A one-line summary, for users.
    pub text: String,
    /// The details for programs; at most [`RESULT_LIMIT_BYTES`](crate::RESULT_LIMIT_BYTES).
    pub result: Value,
}

/// How an attempt went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AttemptVerdict {
    /// The work is done.
    Succeeded,
    /// The work failed, and a retry may help.
    Failed,
    /// The work failed, and a retry won't help.
    FailedPermanently,
    /// The attempt was stopped because the scope was cancelled.
    Stopped,
}
