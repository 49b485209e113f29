//! The handler that runs commands.
//!
//! - `payload` is a command as a job carries it, checked when it is submitted; `title` is its one line for people.
//! - `handler` makes it a child of this daemon, and an attempt of it an outcome.
//! - `sandbox` lets it into the sandbox of a plan, and sees it out.
//! - `attempt` sees one child through: input, output, stop, end. `streams` and `feed` carry the bytes, `outcome` has the words.
//!
//! **Invariant:** when an attempt has been answered, nothing of its tree runs any more, but for what could not even be
//! killed, and that is named.
//!
//! **Boundary:** it knows processes, blobs and sandboxes, and nothing of HTTP, queues or retries.

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
