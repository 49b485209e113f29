//! The kernel as its users see it: one module a type, then random histories against simple models, then stress.
#![cfg(not(tidelock_model))]
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod breaker;
mod breaker_histories;
mod breaker_names;
mod cancellation;
mod cancellation_histories;
mod cancellation_tree;
mod clock;
mod slots;
mod stress;
mod support;
