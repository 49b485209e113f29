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

/// What runs between a read and the write that depends on it: the place where a test can hold a thread.
pub(crate) type Pause = Arc<dyn Fn() + Send + Sync>;

/// The algorithm of the report: a count and a set, shared by all callers, with no lock. The count is read, then
/// written; the set is changed in a step of its own.
#[derive(Clone)]
pub(crate) struct Unlocked {
    failure_threshold: u32,
    failures: Arc<AtomicU64>,
    disabled: Arc<AtomicBool>,
    between_read_and_write: Option<Pause>,
}

#[cfg(not(tidelock_model))]
impl Unlocked {
    /// The same, with a place to hold a thread.
    pub(crate) fn with_pause(failure_threshold: u32, pause: Pause) -> Self {
        Self {
            between_read_and_write: Some(pause),
            ..Self::new(failure_threshold)
        }
    }
}

impl Breaker for Unlocked {
    fn new(failure_threshold: u32) -> Self {
        Self {
            failure_threshold,
            failures: Arc::new(AtomicU64::new(0)),
            disabled: Arc::new(AtomicBool::new(false)),
            between_read_and_write: None,
        }
    }

    fn record_success(&self) {
        self.failures.store(0, Ordering::SeqCst);
        self.disabled.store(false, Ordering::SeqCst);
    }

    fn record_failure(&self) {
        let failures = self.failures.load(Ordering::SeqCst) + 1;
        if let Some(pause) = &self.between_read_and_write {
            pause();
        }
        self.failures.store(failures, Ordering::SeqCst);
        if failures >= u64::from(self.failure_threshold) {
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
