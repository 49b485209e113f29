//! Breakers and circuits at one point in time, for display.

use std::{sync::Arc, time::Duration};

use crate::Generation;

/// All circuits of a breaker at one point in time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BreakerSnapshot {
    /// The circuits, by name.
    pub circuits: Vec<CircuitSnapshot>,
    /// How many calls were let through untracked because all names were in use.
    pub untracked: u64,
}

/// One circuit at one point in time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CircuitSnapshot {
    /// The name of what the circuit protects.
    pub name: Arc<str>,
    /// Whether calls are let through.
    pub state: CircuitState,
    /// Goes up with each change of mode.
    pub generation: Generation,
    /// Failures in a row while closed.
    pub consecutive_failures: u32,
    /// All failures that counted.
    pub failures: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Reports that arrived after their generation had ended and so had no effect.
    pub late_reports: u64,
    /// How often the circuit opened.
    pub times_opened: u64,
}

/// What a circuit does with calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CircuitState {
    /// Calls go through.
    Closed,
    /// Calls are refused for a while.
    Open {
        /// How long calls will still be refused.
        retry_after: Duration,
    },
    /// The cooldown is over: one call at a time goes through as a probe.
    HalfOpen {
        /// Whether a probe is running.
        probing: bool,
    },
    /// Calls are refused until somebody resets the circuit.
    ForcedOpen,
    /// Calls go through, whatever they report, until somebody resets the circuit.
    ForcedClosed,
}

/// A reset was refused because the circuit has changed since the caller looked.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StaleCircuit {
    /// There is no circuit of that name.
    #[error("there is no circuit with that name")]
    Unknown,
    /// The circuit is in a later generation.
    #[error("the circuit has moved on to generation {}", .0.generation)]
    Moved(CircuitSnapshot),
}
