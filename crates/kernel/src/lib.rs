//! The concurrency kernel: the only home of atomics, locks with waiters, and hand-made waiting.
//!
//! Every race that Tidelock was founded on is one mistake: a decision made on a snapshot is carried out
//! after the state has moved. The types here make that mistake impossible to write, each at its own scale:
//!
//! - [`Slot`] is a state with a generation. A write names the [`Generation`] it saw and is refused when that
//!   is no longer the current one. [`Slots`] keeps one slot per key for as long as anybody uses it.
//! - [`CancellationToken`] gives each run of some work a [`Scope`]. A cancellation belongs to the run it was
//!   meant for, and no later [`reset`](CancellationToken::reset) can take it back.
//! - [`CircuitBreaker`] hands out a [`Permit`] per call. A report from a generation that has ended changes
//!   nothing, and only one probe runs at a time.
//! - [`Clock`] and [`Deadline`] are time as a parameter, so that tests do not wait for it.
//!
//! **Who owns the state:** whoever holds the value. Nothing here is global but the thread behind
//! [`SystemClock`], which sleeps unless a deadline is pending.
//!
//! **What must not happen here:** tokio, serde, files, sockets. Waiting is done through [`std::task::Waker`],
//! so that any executor, and a plain thread, can wait. No lock is held while a waker, a destructor of a user's
//! type or a user's closure runs, and no lock is taken while another one is held.
//!
//! All interleavings of two or three threads are explored by the models under `tests/models`; see
//! `CONTRIBUTING.md` for how to run them and how to add one.

mod block_on;
mod breaker;
mod cancellation;
mod clock;
mod deadline;
mod generation;
mod random;
mod slot;
mod slots;
mod sync;
mod waiters;

pub use block_on::block_on;
pub use breaker::{
    BreakerSettings, BreakerSettingsError, BreakerSnapshot, Circuit, CircuitBreaker, CircuitSnapshot,
    CircuitState, Open, Permit, StaleCircuit,
};
pub use cancellation::{CancellationToken, Cause, ResetRefused, Scope, Wait};
pub use clock::{Alarm, Clock, ManualClock, SystemClock};
pub use deadline::{Deadline, DeadlineExceeded, Passed, PastDeadline};
pub use generation::Generation;
pub use slot::{Seen, Slot, Stale, WaitError, WaitUntil};
pub use slots::{Held, Slots};
