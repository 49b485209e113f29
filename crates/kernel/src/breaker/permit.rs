//! The permission to make one call, and the report of how it ended.

use std::{borrow::Borrow, time::Duration};

use super::{
    Circuit,
    state::{CallOutcome, Grant, Role},
};

/// A call was refused because the circuit is open.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the circuit is open")]
pub struct CircuitOpen {
    /// The longest time until calls are let through again. `None` means that somebody has to reset the circuit.
    pub retry_after: Option<Duration>,
}

/// Permission to make one call. Reporting consumes the permit, so it reports at most once. If it is dropped
/// without a report, for example because the call was cancelled or panicked, it counts as neither a success nor a
/// failure.
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

    /// Reports that the call succeeded.
    #[inline]
    pub fn success(mut self) {
        self.is_settled = true;
        if !self.circuit.borrow().is_success_a_no_op(self.grant.generation) {
            self.report(CallOutcome::Success);
        }
    }

    /// Reports that the call failed.
    pub fn failure(mut self) {
        self.is_settled = true;
        self.report(CallOutcome::Failure { retry_after: None });
    }

    /// Reports that the call failed and that the server asked to be left alone for this long. The circuit opens
    /// at once, for all callers, and stays open at least that long, up to the maximum cooldown of the settings.
    pub fn failure_retry_after(mut self, retry_after: Duration) {
        self.is_settled = true;
        self.report(CallOutcome::Failure {
            retry_after: Some(retry_after),
        });
    }

    #[cold]
    fn report(&self, outcome: CallOutcome) {
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
