//! The lifecycle of servers: who is up, who is on the way, and what happens in between.
//!
//! [`LifecycleManager`] keeps one entry per [`ServerKey`]. An entry is there from the first wish on and is never taken
//! away while it is in use: 'restarting', 'stopping' and 'failed' are states that callers can see and wait on. The
//! decisions are pure and stand in `state.rs`, `transitions.rs`, `wishes.rs` and `reports.rs`; `work.rs` carries them
//! out, one task for each.
//!
//! **Who owns the state:** one [`kernel::Slot`] per key. A step is read, decided and written under the generation
//! that was read; who comes too late looks again. No lock is held while a server is started or stopped.
//!
//! **What must not happen here:** processes, sockets, the protocol. How a server is launched is [`Launch`]'s
//! business, and the manager is the same for a process, a connection and a script in a test.

mod changes;
mod error;
mod failure;
mod key;
mod launch;
mod lease;
mod manager;
mod reports;
mod seen;
mod settings;
mod state;
#[cfg(test)]
mod state_model;
mod status;
mod transitions;
mod wait;
mod wishes;
mod work;

pub use changes::Changes;
pub use error::LifecycleError;
pub use failure::{EndReason, Failure, LaunchFailure, ServerExit};
pub use key::{ServerGeneration, ServerKey};
pub use launch::{Launch, RunningServer, Spawn};
pub use lease::{ClientLease, CurrentServer};
pub use manager::{LifecycleManager, LifecycleOptions, Patience, Probe, StoppedAll};
pub use seen::Seen;
pub use settings::{AfterCrash, LifecycleSettings};
pub use status::{Health, ProbeResult, ServerState, ServerStatus, StoppedBy};
