//! The order in which jobs that wait are started: pure, in memory, no clock.
//!
//! It is a copy of what the log says. What it gets wrong, the log refuses, since a claim names the version that stands
//! in its [`Entry`].
//!
//! - `entry.rs`: what is kept of a job, and its rank.
//! - `ready.rs`: those that only wait for their turn, by rank, behind the limits of their lanes.
//! - `waiting.rs`: [`Queue`], which also has those that wait for a time or for other jobs.
//!
//! **Who owns the state:** the one task of the service that has the queue.

mod entry;
#[cfg(test)]
mod model;
mod ready;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use entry::Entry;
pub(crate) use waiting::{DependencyEnd, QUEUE_LIMIT, Queue};
