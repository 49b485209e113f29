//! The lifecycle of servers: which are up, which are starting or stopping, and what happens in between.
//!
//! [`LifecycleManager`] keeps one entry per [`ServerKey`]. An entry is created by the first request and is never
//! removed while it is in use: "restarting", "stopping" and "failed" are states that callers can see and wait on.
//! The decisions are pure functions in `state.rs`, `transitions.rs`, `requests.rs` and `reports.rs`; `work.rs`
//! carries them out, with one task per effect.
//!
//! **Who owns the state:** one [`kernel::Slot`] per key. A step is read, decided and written under the generation
//! that was read; a step that comes too late is decided again. No lock is held while a server is started or
//! stopped.
//!
//! **What must not happen here:** processes, sockets, protocols. A [`Launch`] knows how to launch a server, so
//! the manager is the same for a process, a connection and a test script.

mod changes;
mod error;
mod expected;
mod failure;
mod key;
mod launch;
mod lease;
mod manager;
mod reports;
mod requests;
mod settings;
mod state;
#[cfg(test)]
mod state_model;
mod status;
mod transitions;
mod wait;
mod work;

pub use changes::Changes;
pub use error::LifecycleError;
pub use expected::ExpectedProcess;
pub use failure::{EndReason, Failure, LaunchFailure, ServerExit};
pub use key::{ServerGeneration, ServerKey};
pub use launch::{Launch, RunningServer, Spawn};
pub use lease::{ClientLease, CurrentServer};
pub use manager::{LifecycleManager, LifecycleOptions, Patience, Probe, StoppedAll};
pub use settings::{AfterCrash, LifecycleSettings};
pub use status::{Health, ProbeResult, ServerState, ServerStatus, StoppedBy};
