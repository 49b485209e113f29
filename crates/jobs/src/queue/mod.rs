//! The order in which waiting jobs are started: pure, in memory, no clock.
//!
//! It is a copy of the log. If it is wrong, the log refuses the claim, which names the version in its [`Entry`].
//!
//! - `entry.rs`: what is stored about a job, and its rank.
//! - `ready.rs`: jobs that only wait for their turn, by rank, behind the limits of their lanes.
//! - `waiting.rs`: [`Queue`], which also has the jobs that wait for a time or for other jobs.
//!
//! **Who owns the state:** the dispatcher task.

mod entry;
#[cfg(test)]
mod model;
mod ready;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use entry::Entry;
pub(crate) use waiting::{DependencyEnd, QUEUE_LIMIT, Queue};
