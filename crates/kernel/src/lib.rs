//! The concurrency kernel: the only crate with atomics, locks that have waiters, and hand-written futures.
//!
//! Every race that Tidelock was built to prevent is the same mistake: a decision is made on a snapshot and
//! carried out after the state has changed. The types here make that mistake impossible to write:
//!
//! - [`Slot`] is a state with a generation. A write names the [`Generation`] it saw and is refused if that is no
//!   longer the current one. [`Slots`] keeps one slot per key for as long as anyone uses it.
//! - [`CancellationToken`] gives each run of some work a [`Scope`]. A cancellation belongs to one run, and a
//!   later [`reset`](CancellationToken::reset) never revives work that was already cancelled.
//! - [`CircuitBreaker`] hands out a [`Permit`] per call. A report from a generation that has ended changes
//!   nothing, and at most one probe runs at a time.
//! - [`Clock`] and [`Deadline`] make time a parameter, so tests don't have to wait for it.
//!
//! **Who owns the state:** whoever holds the value. The only global is the thread behind [`SystemClock`], which
//! sleeps unless a deadline is pending.
//!
//! **What must not happen here:** tokio, serde, files, sockets. All waiting goes through [`std::task::Waker`], so
//! any executor, or a plain thread, can wait. No lock is held while a waker, a user's destructor or a user's
//! closure runs, and no lock is taken while another one is held.
//!
//! The models under `tests/models` explore all interleavings of two or three threads. `CONTRIBUTING.md` explains
//! how to run and add them.

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
    BreakerSettings, BreakerSettingsError, BreakerSnapshot, Circuit, CircuitBreaker, CircuitOpen,
    CircuitSnapshot, CircuitState, Permit, StaleCircuit,
};
pub use cancellation::{CancellationToken, Cause, ResetRefused, Scope, WaitForCancellation};
pub use clock::{Alarm, Clock, ManualClock, SystemClock};
pub use deadline::{Deadline, DeadlineExceeded, PastDeadline, WaitForDeadline};
pub use generation::Generation;
pub use slot::{Seen, Slot, Stale, WaitError, WaitUntil};
pub use slots::{HeldSlot, Slots};
