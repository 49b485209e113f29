//! The life of a daemon: one way, from starting to stopped.
//!
//! The phase is a [`Slot`], so that every change names the phase that it replaces. The stop is a [`CancellationToken`],
//! so that everything in the daemon can wait for it and see who asked, and why.

use std::sync::Arc;

use kernel::{CancellationToken, Cause, Scope, Slot};

/// Where a daemon is in its life.
#[derive(Clone, Debug)]
pub enum Phase {
    /// It is starting up and doesn't accept work.
    Starting,
    /// It accepts work.
    Ready,
    /// It finishes work in flight and accepts no new work.
    Draining {
        /// Who stopped it, and why.
        cause: Arc<Cause>,
    },
    /// Nothing is left to do.
    Stopped,
}

impl Phase {
    /// The name of the phase, for people and metrics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining { .. } => "draining",
            Self::Stopped => "stopped",
        }
    }

    fn order(&self) -> u8 {
        match self {
            Self::Starting => 0,
            Self::Ready => 1,
            Self::Draining { .. } => 2,
            Self::Stopped => 3,
        }
    }
}

impl From<&Phase> for protocol::Phase {
    fn from(phase: &Phase) -> Self {
        match phase {
            Phase::Starting => Self::Starting,
            Phase::Ready => Self::Ready,
            Phase::Draining { .. } => Self::Draining,
            Phase::Stopped => Self::Stopped,
        }
    }
}

/// The phase and stop of one daemon. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    phase: Slot<Phase>,
    stop: CancellationToken,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self {
            phase: Slot::new(Phase::Starting),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn phase(&self) -> Arc<Phase> {
        self.phase.read().state
    }

    /// The scope of this daemon's work. It is cancelled when the daemon begins to stop, never before.
    pub(crate) fn scope(&self) -> Scope {
        self.stop.scope()
    }

    pub(crate) fn become_ready(&self) {
        self.advance(&Phase::Ready);
    }

    /// Stops the daemon. The first cause counts; later calls change nothing.
    pub(crate) fn stop(&self, cause: Cause) {
        self.stop.cancel(cause);
        if let Some(cause) = self.stop.cause() {
            self.advance(&Phase::Draining { cause });
        }
    }

    pub(crate) fn become_stopped(&self) {
        self.advance(&Phase::Stopped);
    }

    /// Moves forward to `next`, unless that or a later phase has been reached already. Each failed attempt means that
    /// another caller moved forward, so there are at most as many attempts as phases.
    fn advance(&self, next: &Phase) {
        let mut seen = self.phase.read();
        while seen.state.order() < next.order() {
            match self.phase.transition(seen.generation, next.clone()) {
                Ok(_) => return tracing::info!(phase = next.name(), "the daemon has entered a phase"),
                Err(stale) => seen = stale.current,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_goes_one_way_and_keeps_its_first_cause() {
        let life = Life::new();
        assert!(matches!(*life.phase(), Phase::Starting));
        life.become_ready();
        assert!(matches!(*life.phase(), Phase::Ready));
        life.stop(Cause::new("first", "reason"));
        life.stop(Cause::new("second", "reason"));
        life.become_ready();
        match &*life.phase() {
            Phase::Draining { cause } => assert_eq!(cause.to_string(), "first: reason"),
            other => panic!("{other:?}"),
        }
        life.become_stopped();
        life.become_ready();
        assert!(matches!(*life.phase(), Phase::Stopped));
    }
}
