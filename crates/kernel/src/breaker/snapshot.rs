//! What a breaker shows of itself.

use std::{sync::Arc, time::Duration};

use crate::Generation;

/// All circuits of a breaker at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BreakerSnapshot {
    /// The circuits, by name.
    pub circuits: Vec<CircuitSnapshot>,
    /// How many calls were let through untracked because all names were in use.
    pub untracked: u64,
}

/// One circuit at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CircuitSnapshot {
    /// What the circuit protects.
    pub name: Arc<str>,
    /// What it does with calls.
    pub state: CircuitState,
    /// Goes up with each change of mode.
    pub generation: Generation,
    /// Failures in a row while closed.
    pub consecutive_failures: u32,
    /// All failures that counted.
    pub failures: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Reports that came after their generation had ended, and changed nothing.
    pub late_reports: u64,
    /// How often the circuit opened.
    pub times_opened: u64,
}

/// What a circuit does with calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CircuitState {
    /// It lets them through.
    Closed,
    /// It refuses them for a while.
    Open {
        /// How long it goes on refusing.
        retry_after: Duration,
    },
    /// The cooldown is over: one call at a time is let through as a probe.
    HalfOpen {
        /// Whether a probe is out.
        probing: bool,
    },
    /// It refuses them until somebody resets it.
    ForcedOpen,
    /// It lets them through whatever happens, until somebody resets it.
    ForcedClosed,
}

/// A reset was refused because the circuit is not what the caller saw.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StaleCircuit {
    /// There is no circuit of that name.
    #[error("there is no circuit of that name")]
    Unknown,
    /// It has moved on.
    #[error("the circuit has moved on to generation {}", .0.generation)]
    Moved(CircuitSnapshot),
}
