//! Runs the scenarios of `features/*.feature`, each file as one test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[path = "../../../crates/kernel/tests/subjects/mod.rs"]
mod subjects;

#[expect(
    dead_code,
    reason = "the tests of the crate tell its servers more than the scenarios do"
)]
#[path = "../../../crates/lifecycle/tests/subjects/mod.rs"]
mod lifecycle_subjects;

#[expect(
    dead_code,
    reason = "the tests of the crate use more of it than the scenarios do"
)]
#[path = "../../../crates/jobs/tests/subjects/mod.rs"]
mod job_subjects;

mod apply_faulty;
mod apply_feature;
mod apply_kill;
mod apply_world;
mod cancellation;
mod changesets_book;
mod changesets_faulty;
mod changesets_feature;
mod circuit_breaker;
mod conditional_commit;
mod context_faulty;
mod context_feature;
mod context_kit;
mod engines;
mod jobs_faulty;
mod jobs_feature;
mod jobs_steps;
mod lsp_restart;
mod lsp_restart_process;
mod lsp_restart_transport;
mod plans_kit;
mod runner;
mod sessions_faulty;
mod sessions_feature;
mod sessions_held;
mod sessions_runtime;
mod sessions_steps;
