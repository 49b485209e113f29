//! Circuit breakers by name: calls to something that keeps failing are refused for a while.
//!
//! Invariants:
//!
//! 1. One lock guards the states of all circuits of a breaker. Every operation is one critical section, so each
//!    is atomic with respect to all others, [`CircuitBreaker::reset_all`] included.
//! 2. Beside each state stands one atomic *word*, written only while the lock is held: the generation, whether
//!    the circuit lets calls through, and whether failures are counted. Two answers are given by the word alone,
//!    because they change nothing: 'go ahead' when it lets calls through, and 'nothing to note' when a success
//!    of the current generation meets no counted failure.
//! 3. The generation goes up with each change of mode: open, probe, close, reset, force. A permit carries the
//!    generation it was given in; its report counts only while that is the current one, and is otherwise
//!    counted as late and nothing else.
//! 4. At most one probe is out. Its permit is the only one of its generation, so only it can close the circuit;
//!    dropped without a report it makes room for the next probe, and so does the end of its lease.
//! 5. An entry is evicted only while it is closed, has no failures counted, and nobody holds its circuit. A new
//!    holder can only come from the entry, under the lock, or from another holder. So there are never two
//!    circuits of one name in use.
//!
//! What is guaranteed: counts are exact, and every report is counted once, as a failure or as late. What is not:
//! calls that were let through before a circuit opened are not called back, and successes are not counted.
//!
//! The decisions are pure and stand in `state.rs`; here they get their lock, their clock and their jitter.

mod circuit;
mod permit;
mod registry;
mod settings;
mod snapshot;
mod state;

pub use circuit::Circuit;
pub use permit::{Open, Permit};
pub use registry::CircuitBreaker;
pub use settings::{BreakerSettings, BreakerSettingsError};
pub use snapshot::{BreakerSnapshot, CircuitSnapshot, CircuitState, StaleCircuit};
