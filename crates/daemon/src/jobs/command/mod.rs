//! The handler that runs commands.
//!
//! - `payload` is a command as stored in a job, validated when it is submitted; `title` is its one-line summary for
//!   people.
//! - `handler` starts it as a child of this daemon, and turns an attempt into an outcome.
//! - `sandbox` enters and leaves the sandbox of a plan.
//! - `attempt` supervises one child: input, output, stop, end. `streams` and `feed` carry the bytes, `outcome` has the
//!   texts.
//!
//! **Invariant:** when an attempt has returned, none of its processes are running, except those that couldn't even be
//! killed, and the outcome names them.
//!
//! **Boundary:** it knows processes, blobs and sandboxes, but not HTTP, queues or retries.

mod attempt;
#[cfg(test)]
mod bench;
mod feed;
mod handler;
mod outcome;
mod payload;
mod sandbox;
#[cfg(test)]
mod sandbox_tests;
mod streams;
#[cfg(test)]
mod tests;
mod title;

#[cfg(test)]
pub(crate) use bench::keeper as test_keeper;
pub(crate) use handler::{CommandHandler, Tool};
pub(crate) use payload::{CommandLine, CommandPayload, PlanSite};
pub(crate) use sandbox::SandboxAccess;
