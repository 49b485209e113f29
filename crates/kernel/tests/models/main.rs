//! Every interleaving of two or three threads, one question a model.
//!
//! `RUSTFLAGS="--cfg tidelock_model" cargo test -p kernel --test models` runs them; without that cfg
//! this binary is empty. A model that is handed a faulty algorithm must fail: those tests say `should_panic`.
//!
//! Two things to know when you add one. Loom sees only its own types: state that lives in others (a `OnceLock`,
//! the count of an `Arc`) is not reordered, so keep it behind `kernel`'s `sync` module. And it remembers one last
//! access per atomic: a thread that reads an atomic before it writes it hides the reads of others. The code under
//! test therefore decides by what its lock guards, and only writes the atomic. Break the code and see the model
//! fail before you trust it.
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
