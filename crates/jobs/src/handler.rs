//! What does the work of a job.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::BlobId;
use kernel::Scope;
use protocol::JobId;
use serde_json::Value;

use crate::output::Output;

/// Does the work of jobs of one name.
#[async_trait]
pub trait Handler: Send + Sync + std::fmt::Debug {
    /// Does the work. When this returns, nothing of it runs any more: whoever is told that a job was cancelled can
    /// rely on that. It must end soon once `work.scope` is cancelled, and then answers [`Verdict::Stopped`]; if the
    /// work was done before it noticed, it answers how it went.
    async fn run(&self, work: Work) -> Outcome;
}

/// One attempt of a job, as its handler sees it.
#[derive(Debug)]
pub struct Work {
    /// The job.
    pub job: JobId,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What it is, for people.
    pub title: String,
    /// Who submitted it.
    pub submitted_by: String,
    /// The work, in the words of the handler.
    pub payload: Arc<[u8]>,
    /// The blobs that came with it.
    pub blobs: Vec<BlobId>,
    /// The jobs that it waited for.
    pub after: Vec<JobId>,
    /// Cancelled when the attempt shall end: by somebody's wish, by a time limit, because the worker lost its lease,
    /// or because the daemon ends.
    pub scope: Scope,
    /// Where its output and progress go.
    pub output: Output,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it went.
    pub verdict: Verdict,
    /// What is to be said of it, in one line, for people.
    pub text: String,
    /// The same for programs, and more; at most [`RESULT_LIMIT_BYTES`](crate::RESULT_LIMIT_BYTES).
    pub result: Value,
}

/// How an attempt went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The work is done.
    Succeeded,
    /// It is not, and trying again may help.
    Failed,
    /// It is not, and trying again does not help.
    Hopeless,
    /// It was stopped, because the scope was cancelled.
    Stopped,
}
