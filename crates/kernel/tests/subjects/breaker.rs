//! A count of failures that switches something off: ours, and the one of the report.

use std::sync::Arc;

use kernel::{BreakerSettings, CircuitBreaker, ManualClock};

use super::sync::{AtomicBool, AtomicU64, Ordering};

/// The five operations of the report, on one name.
pub(crate) trait Breaker: Clone + Send + Sync + 'static {
    fn new(failure_threshold: u32) -> Self;
    fn record_success(&self);
    fn record_failure(&self);
    fn is_open(&self) -> bool;
    fn reset(&self);
    fn reset_all(&self);
    /// How many failures are counted.
    fn failures(&self) -> u64;
}

/// The name that all subjects use.
pub(crate) const NAME: &str = "strategy";

impl Breaker for CircuitBreaker {
    fn new(failure_threshold: u32) -> Self {
        let settings = BreakerSettings {
            failure_threshold,
            ..BreakerSettings::default()
        };
        CircuitBreaker::new(settings, ManualClock::new()).expect("the settings are good")
    }

    fn record_success(&self) {
        self.record_success(NAME);
    }

    fn record_failure(&self) {
        self.record_failure(NAME);
    }

    fn is_open(&self) -> bool {
        self.is_open(NAME)
    }

    fn reset(&self) {
        self.reset(NAME);
    }

    fn reset_all(&self) {
        self.reset_all();
    }

    fn failures(&self) -> u64 {
        self.get(NAME).map_or(0, |circuit| circuit.failures)
    }
}

/// A place inside the faulty algorithm where a test can hold a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// The count was read, and the higher one is not written yet.
    BetweenReadAndWrite,
    /// The count was written, and the switch is not thrown yet.
    BetweenCountAndSwitch,
}

/// What is called at these places.
pub(crate) type Pause = Arc<dyn Fn(Place) + Send + Sync>;

/// The algorithm of the report: a count and a set, shared by all callers, with no lock. The count is read, then
/// written; the set is changed in a step of its own.
#[derive(Clone)]
pub(crate) struct Unlocked {
    failure_threshold: u32,
    failures: Arc<AtomicU64>,
    disabled: Arc<AtomicBool>,
    pause: Pause,
}

impl Unlocked {
    pub(crate) fn with_pause(failure_threshold: u32, pause: Pause) -> Self {
        Self {
            failure_threshold,
            failures: Arc::new(AtomicU64::new(0)),
            disabled: Arc::new(AtomicBool::new(false)),
            pause,
        }
    }
}

impl Breaker for Unlocked {
    fn new(failure_threshold: u32) -> Self {
        Self::with_pause(failure_threshold, Arc::new(|_| {}))
    }

    fn record_success(&self) {
        self.failures.store(0, Ordering::SeqCst);
        self.disabled.store(false, Ordering::SeqCst);
    }

    fn record_failure(&self) {
        let failures = self.failures.load(Ordering::SeqCst) + 1;
        (self.pause)(Place::BetweenReadAndWrite);
        self.failures.store(failures, Ordering::SeqCst);
        if failures >= u64::from(self.failure_threshold) {
            (self.pause)(Place::BetweenCountAndSwitch);
            self.disabled.store(true, Ordering::SeqCst);
        }
    }

    fn is_open(&self) -> bool {
        self.disabled.load(Ordering::SeqCst)
    }

    fn reset(&self) {
        self.record_success();
    }

    fn reset_all(&self) {
        self.record_success();
    }

    fn failures(&self) -> u64 {
        self.failures.load(Ordering::SeqCst)
    }
}
