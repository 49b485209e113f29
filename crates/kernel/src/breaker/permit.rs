//! The right to make one call, and the duty to say how it ended.

use std::{borrow::Borrow, time::Duration};

use super::{
    Circuit,
    state::{Grant, Outcome, Role},
};

/// A call was refused: the circuit is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the circuit is open")]
pub struct Open {
    /// How long it goes on refusing at most; `None` means until somebody resets it.
    pub retry_after: Option<Duration>,
}

/// One call that was let through. It reports at most once, because reporting uses it up. Dropped without a
/// report, for example by a cancelled call or a panic, it counts as neither success nor failure.
#[derive(Debug)]
#[must_use = "a permit that is dropped reports nothing"]
pub struct Permit<C: Borrow<Circuit>> {
    circuit: C,
    grant: Grant,
    is_settled: bool,
}

impl<C: Borrow<Circuit>> Permit<C> {
    pub(super) fn new(circuit: C, grant: Grant) -> Self {
        Self {
            circuit,
            grant,
            is_settled: false,
        }
    }

    /// Whether this call decides if the circuit closes again.
    pub fn is_probe(&self) -> bool {
        self.grant.role == Role::Probe
    }

    /// The call went well.
    #[inline]
    pub fn success(mut self) {
        self.is_settled = true;
        if !self.circuit.borrow().has_nothing_to_note(self.grant.generation) {
            self.report(Outcome::Success);
        }
    }

    /// The call failed.
    pub fn failure(mut self) {
        self.is_settled = true;
        self.report(Outcome::Failure { retry_after: None });
    }

    /// The call failed, and the server named the time after which it wants to be asked again. The circuit opens
    /// at once and for at least that long (up to the longest cooldown of the settings), for all callers.
    pub fn failure_retry_after(mut self, retry_after: Duration) {
        self.is_settled = true;
        self.report(Outcome::Failure {
            retry_after: Some(retry_after),
        });
    }

    #[cold]
    fn report(&self, outcome: Outcome) {
        let circuit = self.circuit.borrow();
        circuit
            .breaker
            .report(&circuit.core, self.grant.generation, outcome);
    }
}

impl<C: Borrow<Circuit>> Drop for Permit<C> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_settled && self.is_probe() {
            let circuit = self.circuit.borrow();
            circuit.breaker.abandon(&circuit.core, self.grant.generation);
        }
    }
}
