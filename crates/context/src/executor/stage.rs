//! The progress of a strategy and its outcome, which is decided once.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Circuit, Permit};

use super::Ran;
use crate::answer::StrategyOutcome;
use crate::strategy::{Hit, StrategyName};

/// The progress of a strategy. The first to end it decides; everyone else is late.
#[derive(Debug)]
pub(super) struct Stage {
    strategy: StrategyName,
    /// The breaker's lock is taken while this one is held, and no lock is taken while the breaker's is held.
    now: Mutex<StageState>,
}

#[derive(Debug)]
enum StageState {
    /// It has no worker yet.
    Waiting,
    Looking(Looking),
    Ended(Ran),
}

#[derive(Debug)]
pub(super) struct Looking {
    pub(super) permit: Permit<Circuit>,
    pub(super) since: Instant,
    /// Its own time limit, if that ends before the deadline of the question.
    pub(super) own_time: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    Found(Vec<Hit>),
    NotApplicable(String),
    Open(Option<Duration>),
    Failed(String),
    /// Its time is over: its own, or that of the question.
    Late,
    Cancelled,
    /// Its task ended without a result.
    Died,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Report {
    Success,
    Failure,
    Neither,
}

impl Stage {
    pub(super) fn new(strategy: StrategyName) -> Self {
        Self {
            strategy,
            now: Mutex::new(StageState::Waiting),
        }
    }

    /// It starts to search, unless it was ended before.
    pub(super) fn begin(&self, looking: Looking) -> Result<(), Looking> {
        let mut now = self.lock();
        if matches!(*now, StageState::Waiting) {
            *now = StageState::Looking(looking);
            Ok(())
        } else {
            Err(looking)
        }
    }

    /// It ends, unless it already has, and the outcome is reported to its circuit.
    pub(super) fn end(&self, end: End, time: Instant) {
        let mut now = self.lock();
        if matches!(*now, StageState::Ended(_)) {
            return;
        }
        let nothing = Ran {
            strategy: self.strategy.clone(),
            outcome: StrategyOutcome::OutOfTime,
            took: Duration::ZERO,
            hits: Vec::new(),
        };
        let before = mem::replace(&mut *now, StageState::Ended(nothing));
        let StageState::Ended(ran) = &mut *now else {
            return;
        };
        match before {
            StageState::Looking(looking) => {
                let (outcome, hits, report) = decide(end, looking.own_time);
                ran.took = time.saturating_duration_since(looking.since);
                (ran.outcome, ran.hits) = (outcome, hits);
                match report {
                    Report::Success => looking.permit.success(),
                    Report::Failure => looking.permit.failure(),
                    Report::Neither => drop(looking.permit),
                }
            }
            // Without a permit there is no circuit to report to.
            StageState::Waiting | StageState::Ended(_) => ran.outcome = decide(end, None).0,
        }
    }

    /// The outcome.
    ///
    /// # Panics
    /// If it hasn't ended.
    pub(super) fn ran(&self) -> Ran {
        match &mut *self.lock() {
            StageState::Ended(ran) => Ran {
                strategy: ran.strategy.clone(),
                outcome: ran.outcome.clone(),
                took: ran.took,
                hits: mem::take(&mut ran.hits),
            },
            StageState::Waiting | StageState::Looking(_) => panic!("{} has not ended", self.strategy),
        }
    }

    fn lock(&self) -> MutexGuard<'_, StageState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a strategy that ends like this, and what to report to its circuit.
fn decide(end: End, own_time: Option<Duration>) -> (StrategyOutcome, Vec<Hit>, Report) {
    let (outcome, report) = match end {
        End::Found(hits) => return (StrategyOutcome::Ran { hits: hits.len() }, hits, Report::Success),
        End::NotApplicable(why) => (StrategyOutcome::NotApplicable { why }, Report::Neither),
        End::Open(retry_after) => (StrategyOutcome::Open { retry_after }, Report::Neither),
        End::Failed(why) => (StrategyOutcome::Failed { why }, Report::Failure),
        End::Late => match own_time {
            Some(after) => (StrategyOutcome::TimedOut { after }, Report::Failure),
            None => (StrategyOutcome::OutOfTime, Report::Failure),
        },
        End::Cancelled => (StrategyOutcome::OutOfTime, Report::Neither),
        End::Died => {
            let why = "it ended without a word".to_owned();
            (StrategyOutcome::Failed { why }, Report::Failure)
        }
    };
    (outcome, Vec::new(), report)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use kernel::{BreakerSettings, CircuitBreaker, CircuitSnapshot, Clock as _, ManualClock};

    use super::{End, Looking, Ran, Stage};
    use crate::answer::{Depth, StrategyOutcome};
    use crate::path::TreePath;
    use crate::strategy::{Hit, StrategyName};

    const NAME: &str = "context/one";
    const TOOK: Duration = Duration::from_millis(7);
    const OWN: Duration = Duration::from_millis(5);

    fn hits() -> Vec<Hit> {
        vec![Hit {
            path: TreePath::new("a.rs").unwrap(),
            lines: None,
            score: 1.0,
            why: String::new(),
            depth: Depth::Body,
        }]
    }

    fn failures(breakers: &CircuitBreaker) -> (u64, u32) {
        let circuit = breakers.get(NAME).unwrap();
        (circuit.failures, circuit.consecutive_failures)
    }

    /// Each end of a strategy that is searching: the outcome, and the counts of its circuit after one earlier
    /// failure.
    #[test]
    fn a_circuit_hears_what_it_should() {
        let failed = |why: &str| StrategyOutcome::Failed { why: why.to_owned() };
        let why = || "no git".to_owned();
        for (end, own_time, outcome, counted) in [
            (End::Found(hits()), None, StrategyOutcome::Ran { hits: 1 }, (1, 0)),
            (
                End::NotApplicable(why()),
                None,
                StrategyOutcome::NotApplicable { why: why() },
                (1, 1),
            ),
            (End::Failed(why()), None, failed("no git"), (2, 2)),
            (End::Late, None, StrategyOutcome::OutOfTime, (2, 2)),
            (
                End::Late,
                Some(OWN),
                StrategyOutcome::TimedOut { after: OWN },
                (2, 2),
            ),
            (End::Cancelled, Some(OWN), StrategyOutcome::OutOfTime, (1, 1)),
            (End::Died, Some(OWN), failed("it ended without a word"), (2, 2)),
        ] {
            let (clock, breakers, stage) = set_up();
            breakers.record_failure(NAME);
            let looking = Looking {
                permit: breakers.acquire(NAME).unwrap(),
                since: clock.now(),
                own_time,
            };
            stage.begin(looking).unwrap();
            clock.advance(TOOK);
            let hits = if let End::Found(hits) = &end {
                hits.clone()
            } else {
                Vec::new()
            };
            stage.end(end, clock.now());
            // Later ends change nothing.
            clock.advance(TOOK);
            stage.end(End::Failed("late".to_owned()), clock.now());
            stage.end(End::Found(Vec::new()), clock.now());
            let expected = Ran {
                strategy: StrategyName::new("one"),
                outcome,
                took: TOOK,
                hits,
            };
            assert_eq!((stage.ran(), failures(&breakers)), (expected, counted));
        }
    }

    #[test]
    fn what_never_looked_is_reported_to_nobody() {
        for (end, outcome) in [
            (End::Late, StrategyOutcome::OutOfTime),
            (End::Cancelled, StrategyOutcome::OutOfTime),
            (
                End::Open(Some(TOOK)),
                StrategyOutcome::Open {
                    retry_after: Some(TOOK),
                },
            ),
        ] {
            let (clock, breakers, stage) = set_up();
            stage.end(end, clock.now());
            let permit = breakers.acquire(NAME).unwrap();
            let refused = stage.begin(Looking {
                permit,
                since: clock.now(),
                own_time: None,
            });
            assert!(refused.is_err(), "it has ended, and does not begin to look");
            let ran = stage.ran();
            assert_eq!((ran.outcome, ran.took), (outcome, Duration::ZERO));
            let circuit = breakers.get(NAME).unwrap();
            assert_eq!((circuit.failures, circuit.late_reports), (0, 0));
        }
    }

    /// A call that was let through before the circuit opened ends after that, successfully or not.
    #[test]
    fn a_late_result_from_before_the_circuit_opened_changes_nothing() {
        for end in [
            End::Found(hits()),
            End::Failed("it was late".to_owned()),
            End::Late,
        ] {
            let (clock, breakers, stage) = set_up();
            let permit = breakers.acquire(NAME).unwrap();
            stage
                .begin(Looking {
                    permit,
                    since: clock.now(),
                    own_time: None,
                })
                .unwrap();
            (0..3).for_each(|_| breakers.record_failure(NAME));
            let before = breakers.get(NAME).unwrap();
            assert!(breakers.is_open(NAME));
            stage.end(end, clock.now());
            let expected = CircuitSnapshot {
                late_reports: before.late_reports + 1,
                ..before
            };
            assert_eq!(breakers.get(NAME).unwrap(), expected);
        }
    }

    fn set_up() -> (Arc<ManualClock>, CircuitBreaker, Stage) {
        let clock = ManualClock::new();
        let breakers = CircuitBreaker::new(BreakerSettings::default(), Arc::clone(&clock) as _).unwrap();
        (clock, breakers, Stage::new(StrategyName::new("one")))
    }
}
