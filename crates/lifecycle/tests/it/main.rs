//! Tests of `lifecycle`.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[expect(
    dead_code,
    reason = "the algorithms that are compared are for the acceptance scenarios"
)]
#[path = "../subjects/mod.rs"]
mod subjects;

mod crashes;
mod manager;
mod scheduler;
mod schedules;
mod seen;
mod stage;
mod threads;
