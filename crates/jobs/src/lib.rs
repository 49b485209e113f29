//! Durable jobs: each is claimed once, can always be cancelled, and never gets stuck.
//!
//! - [`Jobs`] is the service: submit, list, follow, wait, cancel, retry, collect.
//! - [`Handler`] does the work of the jobs of one name. This crate doesn't know what that is.
//! - [`Output`] receives the output of an attempt, and [`OutputTail`] reads it, live or later.
//!
//! **Who owns the state:** the log. A job is a stream, and every change of it is a commit that names the version
//! it saw. A claim is such a commit, so exactly one wins. One task of each daemon (`dispatch`) keeps the queue in
//! memory and makes the claims. The queue is a copy, and the log refuses what it gets wrong.
//!
//! **Invariant:** only the worker that claimed a running job changes it, and only while it holds its lease. The
//! number of the attempt fences off every earlier one. Anyone may ask for a cancellation, which is stored in the
//! job, and which the worker must honor.
//!
//! **Invariant:** terminal states are final. One commit makes a job terminal, and it carries the one terminal
//! event.
//!
//! **What must not happen here:** any knowledge of what a job does; HTTP; a lock held across a wait.

mod answers;
mod attempt;
mod collect;
mod dispatch;
mod error;
mod handler;
mod history;
#[cfg(test)]
mod history_cases;
mod job;
mod message;
mod output;
mod pools;
mod queue;
mod recover;
mod remote_watch;
mod service;
mod state;
#[cfg(test)]
mod state_cases;
#[cfg(test)]
mod state_model;
#[cfg(test)]
mod stored_forms;
mod submit;
mod wait;
mod worker;

pub use answers::{Counts, JobChanges, ListQuery, Requested, SeenNow, Submitted, WaitingFor};
pub use collect::GcPolicy;
pub use error::{ChangeError, OpenJobsError, SubmitError};
pub use eventlog::UnixMs;
pub use handler::{AttemptOutcome, AttemptVerdict, Handler, Work};
pub use history::{Happening, Moment, unreadable_head};
pub use job::{
    Attempt, CancelRequest, Ending, Facts, FailReason, Job, Lane, NewJob, OutputEnd, Pool, Priority, Record,
    RetryPolicy, State, WaitsUntil, Worker,
};
pub use output::{FollowEnd, Output, OutputError, OutputItem, OutputSummary, OutputTail, Piece};
pub use service::{Jobs, JobsOptions, Sharing};

/// The size limit for the payload of a job. It is one event of the log.
pub const PAYLOAD_LIMIT_BYTES: usize = 512 * 1024;
/// The size limit for the result of an attempt. It is part of the head of the job, which is read with every list.
pub const RESULT_LIMIT_BYTES: usize = 16 * 1024;
/// How many jobs of [`Pool::Foreground`] run at once. Each is a process that a user or an agent started, so this
/// only stops a program that starts them in a loop. Further jobs wait, and say so.
pub const FOREGROUND_LIMIT: usize = 256;
/// How much waiting time one step of priority is worth.
pub const AGEING_MS: u64 = 60_000;
/// How much of a job's output is kept by default.
pub(crate) const DEFAULT_OUTPUT_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
