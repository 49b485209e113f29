//! The service on a real log, with handlers that do what a test says.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[path = "../bin/storm_worker/play.rs"]
mod play;
#[path = "../subjects/mod.rs"]
mod subjects;

mod service_ends;
mod service_leaving;
mod service_order;
mod service_processes;
mod service_restart;
mod service_shared;
mod service_storms;
mod service_submit;
mod storm;
mod storm_daemons;
mod storm_database;
mod storm_lanes;
mod storm_rules;
mod support;
