//! Runs the scenarios of `features/*.feature`, each file as one test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[path = "../../../crates/kernel/tests/subjects/mod.rs"]
mod subjects;

mod cancellation;
mod circuit_breaker;
mod conditional_commit;
mod engines;
mod runner;
