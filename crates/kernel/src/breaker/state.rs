//! The decisions of one circuit, as pure transitions. Time and jitter are parameters.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{BreakerSettings, CircuitSnapshot, CircuitState};
use crate::Generation;

/// The state of one circuit.
#[derive(Debug)]
pub(super) struct State {
    mode: Mode,
    generation: Generation,
    failures: u64,
    refused: u64,
    late_reports: u64,
    times_opened: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Closed {
        consecutive_failures: u32,
    },
    /// From `retry_at` on, the next call becomes the probe.
    Open {
        retry_at: Instant,
    },
    Probing {
        lease_ends: Instant,
    },
    ForcedOpen,
    ForcedClosed,
}

/// A call was let through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Grant {
    pub(super) generation: Generation,
    pub(super) role: Role,
}

/// What a permitted call means for the circuit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// One of many calls while the circuit is closed.
    Call,
    /// The call that decides whether the circuit closes again.
    Probe,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CallOutcome {
    Success,
    /// A failure, with the server's `retry_after` if it sent one.
    Failure {
        retry_after: Option<Duration>,
    },
}

/// What a decision depends on besides the state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now<'a> {
    pub(super) time: Instant,
    pub(super) settings: &'a BreakerSettings,
    /// The jitter drawn for this decision: at least 0 and below 1.
    pub(super) fraction: f64,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            mode: Mode::Closed {
                consecutive_failures: 0,
            },
            generation: Generation::FIRST,
            failures: 0,
            refused: 0,
            late_reports: 0,
            times_opened: 0,
        }
    }

    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Whether calls are let through regardless of the time.
    pub(super) fn lets_calls_through(&self) -> bool {
        matches!(self.mode, Mode::Closed { .. } | Mode::ForcedClosed)
    }

    pub(super) fn counts_failures(&self) -> bool {
        matches!(
            self.mode,
            Mode::Closed {
                consecutive_failures: 1..
            }
        )
    }

    /// Whether the circuit could be dropped and created again without a difference.
    pub(super) fn is_idle(&self) -> bool {
        self.mode
            == Mode::Closed {
                consecutive_failures: 0,
            }
    }

    /// Lets a call through, as a probe if the cooldown is over. Otherwise returns how long to wait, or `None` if
    /// somebody has to reset the circuit first.
    pub(super) fn acquire(&mut self, now: Now<'_>) -> Result<Grant, Option<Duration>> {
        let grant = self.grant(now);
        if grant.is_err() {
            self.refused += 1;
        }
        grant
    }

    fn grant(&mut self, now: Now<'_>) -> Result<Grant, Option<Duration>> {
        if let Some(refusal) = self.refusal(now.time) {
            return Err(refusal);
        }
        let role = if self.lets_calls_through() {
            Role::Call
        } else {
            self.enter(Mode::Probing {
                lease_ends: now.time + now.settings.probe_lease,
            });
            Role::Probe
        };
        Ok(Grant {
            generation: self.generation,
            role,
        })
    }

    /// Whether a call would be refused now, and for how long at most.
    pub(super) fn refusal(&self, now: Instant) -> Option<Option<Duration>> {
        match self.mode {
            Mode::Closed { .. } | Mode::ForcedClosed => None,
            Mode::ForcedOpen => Some(None),
            Mode::Open { retry_at: end } | Mode::Probing { lease_ends: end } => {
                let rest = end.saturating_duration_since(now);
                if rest.is_zero() { None } else { Some(Some(rest)) }
            }
        }
    }

    /// Records how a permitted call ended. A report from an ended generation is only counted.
    pub(super) fn report(&mut self, generation: Generation, outcome: CallOutcome, now: Now<'_>) {
        if generation != self.generation {
            self.late_reports += 1;
            return;
        }
        match outcome {
            CallOutcome::Success => self.succeed(),
            CallOutcome::Failure { retry_after } => self.fail(retry_after, now),
        }
    }

    /// Records how a call without a permit ended, as if it had been let through now.
    pub(super) fn report_without_permit(&mut self, outcome: CallOutcome, now: Now<'_>) {
        match self.grant(now) {
            Ok(grant) => self.report(grant.generation, outcome, now),
            Err(_) => self.late_reports += 1,
        }
    }

    fn succeed(&mut self) {
        match &mut self.mode {
            Mode::Closed { consecutive_failures } => *consecutive_failures = 0,
            Mode::Probing { .. } => self.enter(Mode::Closed {
                consecutive_failures: 0,
            }),
            // Open generations grant no permits, and forced modes ignore reports.
            Mode::Open { .. } | Mode::ForcedOpen | Mode::ForcedClosed => {}
        }
    }

    fn fail(&mut self, retry_after: Option<Duration>, now: Now<'_>) {
        self.failures += 1;
        let opens = match &mut self.mode {
            Mode::Closed { consecutive_failures } => {
                *consecutive_failures = consecutive_failures.saturating_add(1);
                // If a server says when to come back, nobody calls it before that.
                *consecutive_failures >= now.settings.failure_threshold || retry_after.is_some()
            }
            Mode::Probing { .. } => true,
            Mode::Open { .. } | Mode::ForcedOpen | Mode::ForcedClosed => false,
        };
        if opens {
            self.times_opened += 1;
            let cooldown = now.settings.cooldown_for(now.fraction, retry_after);
            self.enter(Mode::Open {
                retry_at: now.time + cooldown,
            });
        }
    }

    /// A probe ended without a report, so the next call may probe at once.
    pub(super) fn abandon(&mut self, generation: Generation, now: Instant) {
        if generation == self.generation && matches!(self.mode, Mode::Probing { .. }) {
            self.enter(Mode::Open { retry_at: now });
        }
    }

    pub(super) fn reset(&mut self) {
        self.enter(Mode::Closed {
            consecutive_failures: 0,
        });
    }

    pub(super) fn force_open(&mut self) {
        self.enter(Mode::ForcedOpen);
    }

    pub(super) fn force_closed(&mut self) {
        self.enter(Mode::ForcedClosed);
    }

    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.generation = self.generation.next();
    }

    pub(super) fn snapshot(&self, name: &Arc<str>, now: Instant) -> CircuitSnapshot {
        let (state, consecutive_failures) = match self.mode {
            Mode::Closed { consecutive_failures } => (CircuitState::Closed, consecutive_failures),
            Mode::Open { retry_at } => {
                let retry_after = retry_at.saturating_duration_since(now);
                let is_over = retry_after.is_zero();
                let state = if is_over {
                    CircuitState::HalfOpen { probing: false }
                } else {
                    CircuitState::Open { retry_after }
                };
                (state, 0)
            }
            Mode::Probing { lease_ends } => (
                CircuitState::HalfOpen {
                    probing: now < lease_ends,
                },
                0,
            ),
            Mode::ForcedOpen => (CircuitState::ForcedOpen, 0),
            Mode::ForcedClosed => (CircuitState::ForcedClosed, 0),
        };
        CircuitSnapshot {
            name: Arc::clone(name),
            state,
            generation: self.generation,
            consecutive_failures,
            failures: self.failures,
            refused: self.refused,
            late_reports: self.late_reports,
            times_opened: self.times_opened,
        }
    }
}
