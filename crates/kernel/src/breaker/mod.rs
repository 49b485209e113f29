//! Circuit breakers by name: calls to something that keeps failing are refused for a while.
//!
//! Invariants:
//!
//! 1. One lock guards the states of all circuits of a breaker. Every operation is one critical section, so each
//!    is atomic with respect to all others, [`CircuitBreaker::reset_all`] included.
//! 2. Each state is mirrored in one atomic *word*, written only while the lock is held: the generation, whether
//!    the circuit lets calls through, and whether there are counted failures. Two questions are answered from the
//!    word alone, because the answer changes nothing: "may I call" while the circuit lets calls through, and
//!    "must this success be recorded" while the current generation has no counted failure.
//! 3. The generation goes up with each change of mode: open, probe, close, reset, force. A permit carries the
//!    generation it was granted in. Its report takes effect only while that generation is current; otherwise it
//!    is only counted as late.
//! 4. At most one probe runs at a time. Its permit is the only one of its generation, so only the probe can close
//!    the circuit. A probe that is dropped without a report, or whose lease expires, makes room for the next one.
//! 5. An entry is evicted only while it is closed, has no counted failures, and nobody holds its circuit. A new
//!    holder can only come from the entry, under the lock, or from another holder. So two circuits of one name
//!    are never in use at the same time.
//!
//! Counts are exact, and every report is counted once, as a failure or as late. Successes aren't counted, and
//! calls that were let through before a circuit opened aren't aborted.
//!
//! The decisions are pure functions in `state.rs`; `registry.rs` adds the lock, the clock and the jitter.

mod circuit;
mod permit;
mod registry;
mod settings;
mod snapshot;
mod state;

pub use circuit::Circuit;
pub use permit::{CircuitOpen, Permit};
pub use registry::CircuitBreaker;
pub use settings::{BreakerSettings, BreakerSettingsError};
pub use snapshot::{BreakerSnapshot, CircuitSnapshot, CircuitState, StaleCircuit};
