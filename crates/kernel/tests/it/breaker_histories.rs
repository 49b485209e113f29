//! Random histories of one circuit, against a model with whole seconds and plain fields.

use std::{sync::Arc, time::Duration};

use kernel::{BreakerSettings, Circuit, CircuitBreaker, CircuitState, Permit};
use proptest::prelude::*;

use crate::support::manual_clock;

const NAME: &str = "search";
const THRESHOLD: u32 = 3;
const COOLDOWN: u64 = 30;
const LEASE: u64 = 60;

#[derive(Clone, Debug)]
enum Step {
    Acquire,
    Settle { index: usize, outcome: Outcome },
    Record(Outcome),
    Advance(u64),
    Reset,
    ForceOpen,
    ForceClosed,
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    Success,
    Failure,
    RetryAfter(u64),
    Dropped,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let outcome = prop_oneof![
        3 => Just(Outcome::Success),
        6 => Just(Outcome::Failure),
        1 => (0_u64..100).prop_map(Outcome::RetryAfter),
        2 => Just(Outcome::Dropped),
    ];
    let settle =
        (any::<usize>(), outcome.clone()).prop_map(|(index, outcome)| Step::Settle { index, outcome });
    let step = prop_oneof![
        10 => Just(Step::Acquire),
        10 => settle,
        4 => outcome.prop_map(Step::Record),
        4 => (1_u64..70).prop_map(Step::Advance),
        1 => Just(Step::Reset),
        1 => Just(Step::ForceOpen),
        1 => Just(Step::ForceClosed),
    ];
    prop::collection::vec(step, 1..120)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Closed(u32),
    Open { until: u64 },
    Probing { until: u64 },
    ForcedOpen,
    ForcedClosed,
}

struct Model {
    now: u64,
    mode: Mode,
    /// Goes up with each change of mode; a permit with an older one is late.
    epoch: u64,
    failures: u64,
    refused: u64,
    late: u64,
}

impl Model {
    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.epoch += 1;
    }

    fn grant(&mut self) -> Option<u64> {
        match self.mode {
            Mode::Closed(_) | Mode::ForcedClosed => {}
            Mode::Open { until } | Mode::Probing { until } if until <= self.now => {
                self.enter(Mode::Probing {
                    until: self.now + LEASE,
                });
            }
            _ => return None,
        }
        Some(self.epoch)
    }

    fn settle(&mut self, epoch: u64, outcome: Outcome) {
        let (fails, retry_after) = match outcome {
            Outcome::Dropped => {
                if epoch == self.epoch && matches!(self.mode, Mode::Probing { .. }) {
                    self.enter(Mode::Open { until: self.now });
                }
                return;
            }
            Outcome::Success => (false, None),
            Outcome::Failure => (true, None),
            Outcome::RetryAfter(seconds) => (true, Some(seconds)),
        };
        if epoch != self.epoch {
            self.late += 1;
            return;
        }
        self.failures += u64::from(fails);
        let open = Mode::Open {
            until: self.now + COOLDOWN.max(retry_after.unwrap_or(0)),
        };
        match (self.mode, fails) {
            (Mode::Closed(_), false) => self.mode = Mode::Closed(0),
            (Mode::Closed(count), true) if count + 1 < THRESHOLD && retry_after.is_none() => {
                self.mode = Mode::Closed(count + 1);
            }
            (Mode::Closed(_) | Mode::Probing { .. }, true) => self.enter(open),
            (Mode::Probing { .. }, false) => self.enter(Mode::Closed(0)),
            _ => {}
        }
    }

    fn state(&self) -> (CircuitState, u32) {
        let seconds = |until: u64| Duration::from_secs(until.saturating_sub(self.now));
        match self.mode {
            Mode::Closed(count) => (CircuitState::Closed, count),
            Mode::Open { until } if until <= self.now => (CircuitState::HalfOpen { probing: false }, 0),
            Mode::Open { until } => (
                CircuitState::Open {
                    retry_after: seconds(until),
                },
                0,
            ),
            Mode::Probing { until } => (
                CircuitState::HalfOpen {
                    probing: self.now < until,
                },
                0,
            ),
            Mode::ForcedOpen => (CircuitState::ForcedOpen, 0),
            Mode::ForcedClosed => (CircuitState::ForcedClosed, 0),
        }
    }
}

fn settle(permit: Permit<Circuit>, outcome: Outcome) {
    match outcome {
        Outcome::Success => permit.success(),
        Outcome::Failure => permit.failure(),
        Outcome::RetryAfter(seconds) => permit.failure_retry_after(Duration::from_secs(seconds)),
        Outcome::Dropped => drop(permit),
    }
}

fn check(steps: Vec<Step>) {
    let (clock, shared) = manual_clock();
    let settings = BreakerSettings {
        failure_threshold: THRESHOLD,
        jitter: 0.0,
        ..BreakerSettings::default()
    };
    let breaker = CircuitBreaker::new(settings, shared).unwrap();
    let circuit = breaker.circuit(NAME);
    let mut model = Model {
        now: 0,
        mode: Mode::Closed(0),
        epoch: 0,
        failures: 0,
        refused: 0,
        late: 0,
    };
    let mut permits = Vec::new();
    for step in steps {
        match step {
            Step::Acquire => match (circuit.clone().acquire_owned(), model.grant()) {
                (Ok(permit), Some(epoch)) => permits.push((permit, epoch)),
                (Err(_), None) => model.refused += 1,
                (permit, epoch) => panic!("the circuit says {permit:?}, the model {epoch:?}"),
            },
            Step::Settle { index, outcome } if !permits.is_empty() => {
                let (permit, epoch) = permits.swap_remove(index % permits.len());
                settle(permit, outcome);
                model.settle(epoch, outcome);
            }
            Step::Record(outcome) => {
                match outcome {
                    Outcome::Success => breaker.record_success(NAME),
                    Outcome::Failure => breaker.record_failure(NAME),
                    Outcome::RetryAfter(seconds) => {
                        breaker.record_failure_retry_after(NAME, Duration::from_secs(seconds));
                    }
                    Outcome::Dropped => continue,
                }
                match model.grant() {
                    Some(epoch) => model.settle(epoch, outcome),
                    None => model.late += 1,
                }
            }
            Step::Advance(seconds) => {
                clock.advance(Duration::from_secs(seconds));
                model.now += seconds;
            }
            Step::Reset => {
                assert!(breaker.reset(NAME));
                model.enter(Mode::Closed(0));
            }
            Step::ForceOpen => {
                assert!(breaker.force_open(NAME));
                model.enter(Mode::ForcedOpen);
            }
            Step::ForceClosed => {
                assert!(breaker.force_closed(NAME));
                model.enter(Mode::ForcedClosed);
            }
            Step::Settle { .. } => {}
        }
        let seen = breaker.get(NAME).unwrap();
        assert_eq!((seen.state, seen.consecutive_failures), model.state());
        assert_eq!(
            (seen.failures, seen.refused, seen.late_reports),
            (model.failures, model.refused, model.late)
        );
        assert_eq!(seen.name, Arc::from(NAME));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_as_the_model_says(steps in steps()) {
        check(steps);
    }
}
