//! Messages to the dispatcher.

use std::sync::Arc;

use eventlog::Version;
use protocol::{JobId, JobState};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::answers::WaitingFor;
use crate::attempt::Payload;
use crate::dispatch::Lane;
use crate::job::{Job, OutputEnd, Pool};
use crate::state::End;

#[derive(Debug)]
pub(crate) enum Message {
    /// A job was submitted here, and is on disk.
    Submitted {
        job: Box<Job>,
        payload: Payload,
    },
    /// Queued jobs that a scan of the log has found.
    QueuedFound(Vec<Job>),
    /// A running job with a dead worker.
    WorkerDead {
        job: Box<Job>,
        text: String,
    },
    /// A job that runs here according to a scan of the log.
    RunningHere(Box<Job>),
    /// A lane that a scan of the log has read.
    Lane {
        name: Arc<str>,
        lane: Lane,
    },
    /// A lane that was known at this version isn't in the log: nothing runs in it, and it was collected.
    LaneGone {
        name: Arc<str>,
        seen: Version,
    },
    /// A job was cancelled, or a cancellation was requested.
    Cancelled(Box<Job>),
    Finished(Box<Finished>),
    /// The state of a job that others wait for; `None` if it no longer exists.
    DependencyState {
        id: JobId,
        state: Option<JobState>,
    },
    /// Changes how many jobs may run at once.
    MaxWorkers(usize),
    /// Asks why these jobs don't run.
    Why {
        ids: Vec<JobId>,
        answer: oneshot::Sender<Vec<Option<WaitingFor>>>,
    },
    /// Asks which jobs others wait for.
    Dependencies {
        answer: oneshot::Sender<Vec<JobId>>,
    },
    /// Asks which lanes are full and have waiting jobs.
    FullLanes {
        answer: oneshot::Sender<Vec<(Arc<str>, Version)>>,
    },
    /// Start claiming.
    Open,
    /// Stop claiming.
    Close,
    /// Stop the attempts that still run.
    Interrupt,
    /// Exit: nothing is left to do, and no more messages will follow.
    End,
    /// Reply when nothing is running and everything is written.
    Idle {
        answer: oneshot::Sender<()>,
    },
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) pool: Pool,
    /// `None` if the job no longer belongs to this worker.
    pub(crate) end: Option<End>,
    pub(crate) text: String,
    pub(crate) result: Value,
    pub(crate) output: OutputEnd,
}
