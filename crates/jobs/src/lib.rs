//! Durable jobs: claimed once, cancelled for sure, never stuck.
//!
//! - [`Jobs`] is the service: submit, list, follow, wait, cancel, retry, collect.
//! - [`Handler`] does the work of the jobs of one name. This crate does not know what that is.
//! - [`Output`] takes what an attempt says, and [`OutputTail`] reads it, while it is said or later.
//!
//! **Who owns the state:** the log. A job is a stream, and every change of it is a commit that names the version it
//! saw. A claim is such a commit, so exactly one wins. One task of each daemon (`service`) keeps the queue in memory
//! and makes the claims; it is a copy, and the log refuses what it gets wrong.
//!
//! **Invariant:** only the worker that claimed a running job moves it, and only while it holds its lease. The number
//! of the attempt fences off every earlier one. Anybody may ask for a cancellation, which is written into the job, and
//! which the worker must honour.
//!
//! **Invariant:** what is terminal is final. One commit makes a job terminal, and it carries the one terminal event.
//!
//! **What must not happen here:** any knowledge of what a job does; HTTP; a lock that is held while anything is waited
//! for.

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
mod scout;
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

pub use answers::{Counts, JobMoves, ListQuery, Requested, SeenNow, Submitted, WaitingFor};
pub use collect::GcPolicy;
pub use error::{ChangeError, OpenJobsError, SubmitError};
pub use eventlog::UnixMs;
pub use handler::{Handler, Outcome, Verdict, Work};
pub use history::{Happening, Moment, unreadable_head};
pub use job::{
    Attempt, CancelRequest, Ending, Facts, FailReason, Job, Lane, NewJob, OutputEnd, Pool, Priority, Record,
    RetryPolicy, State, WaitsUntil, Worker,
};
pub use output::{FollowEnd, Output, OutputError, OutputItem, OutputSummary, OutputTail, Piece};
pub use service::{Jobs, JobsOptions, Sharing};

/// The largest payload of a job. It is one event of the log.
pub const PAYLOAD_LIMIT_BYTES: usize = 512 * 1024;
/// The largest result of an attempt. It stands in the head of the job, which is read with every list.
pub const RESULT_LIMIT_BYTES: usize = 16 * 1024;
/// How many jobs of [`Pool::Foreground`] run at once. Each is a process that somebody started by hand or an agent, so this
/// only stops a program that starts them in a loop; who comes then waits, and is told so.
pub const FOREGROUND_LIMIT: usize = 256;
/// How much waiting one step of priority is worth.
pub const AGEING_MS: u64 = 60_000;
/// How much of a job's output is kept unless it asks for something else.
pub const DEFAULT_OUTPUT_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
