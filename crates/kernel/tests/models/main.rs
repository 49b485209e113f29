//! Every interleaving of two or three threads, one question a model.
//!
//! `RUSTFLAGS="--cfg tidelock_model" cargo test -p kernel --release --test models` runs them; without that cfg
//! this binary is empty. A model that is handed a faulty algorithm must fail: those tests say `should_panic`.
#![cfg(tidelock_model)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed step is a failed test"
)]

#[path = "../subjects/mod.rs"]
mod subjects;

mod breaker;
mod cancellation;
mod cancellation_tree;
mod slots;

/// Explores a model: all of its interleavings, without a bound on preemptions.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    loom::model::Builder::new().check(model);
}

/// Runs a second thread beside this one, and both to their ends.
fn together(one: impl FnOnce() + Send + 'static, other: impl FnOnce() + Send + 'static) {
    let thread = loom::thread::spawn(one);
    other();
    thread.join().unwrap();
}
