//! Tests of `process` with real processes, under the keeper of `tests/bin/test_keeper.rs`.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod support;

mod confinement;
mod deaths;
mod ends;
mod failed_starts;
mod ledger;
mod listing;
mod stops;
mod terminals;
mod trees;
mod view_ends;
mod view_escapes;
mod view_makes;
mod view_support;
mod views;
