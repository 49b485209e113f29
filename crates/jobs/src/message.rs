//! What the dispatcher is told and asked.

use std::sync::Arc;

use eventlog::Version;
use protocol::{JobId, JobState};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    answers::WaitingFor,
    attempt::Payload,
    dispatch::Lane,
    job::{Job, OutputEnd, Pool},
    state::End,
};

/// A message to the dispatcher.
#[derive(Debug)]
pub(crate) enum Message {
    /// A job was submitted here, and is on disk.
    Submitted { job: Box<Job>, payload: Payload },
    /// Jobs that are queued, as a scan of the log has found them.
    Found(Vec<Job>),
    /// A job that runs, and whose worker is dead.
    Dead { job: Box<Job>, text: String },
    /// A job that runs here, as a scan of the log has found it.
    Held(Box<Job>),
    /// A lane, as a scan of the log has found it.
    Lane { name: Arc<str>, lane: Lane },
    /// A lane that was known at this version is not in the log: nothing runs in it, and it was collected.
    LaneGone { name: Arc<str>, seen: Version },
    /// Somebody has changed a job: it is cancelled, or is to be.
    Cancelled(Box<Job>),
    /// An attempt has ended.
    Finished(Box<Finished>),
    /// A job that others wait for is like this; `None` if it is gone.
    Looked { id: JobId, state: Option<JobState> },
    /// So many may run at once.
    MaxWorkers(usize),
    /// Why do they not run?
    Why {
        ids: Vec<JobId>,
        answer: oneshot::Sender<Vec<Option<WaitingFor>>>,
    },
    /// Which jobs do others wait for?
    WaitedFor { answer: oneshot::Sender<Vec<JobId>> },
    /// Which lanes do jobs wait for, because they are full?
    FullLanes {
        answer: oneshot::Sender<Vec<(Arc<str>, Version)>>,
    },
    /// Begin to claim.
    Open,
    /// Claim nothing more.
    Close,
    /// Stop what still runs.
    Interrupt,
    /// Go away: nothing is left to be done, and nobody will ask for more.
    End,
    /// Tell when nothing runs and everything is written.
    Idle { answer: oneshot::Sender<()> },
}

/// How an attempt ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) job: JobId,
    pub(crate) attempt: u32,
    pub(crate) pool: Pool,
    /// `None` if the job is no longer this worker's.
    pub(crate) end: Option<End>,
    pub(crate) text: String,
    pub(crate) result: Value,
    pub(crate) output: OutputEnd,
}
