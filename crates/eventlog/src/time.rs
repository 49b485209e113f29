//! Times that outlive the daemon: milliseconds since 1970.
//!
//! Stored times must mean the same to the next daemon and to other machines, so they are times of day. Within one
//! process the time follows the monotonic clock, so setting the machine's clock can't make a job wait for a year.
//! On a log that several machines share it is the server's time, so a machine with a wrong clock does no harm.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use kernel::{Clock, Deadline, Slot};
use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub u64);

impl UnixMs {
    /// The time this much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The time from an earlier point to this one; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The same time for the standard library.
    #[must_use]
    pub fn to_system_time(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0)
    }
}

impl From<SystemTime> for UnixMs {
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for UnixMs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The time of day according to a log: the machine's for a local log, the server's for a shared one. It is
/// measured, and then follows the monotonic clock.
#[derive(Clone, Debug)]
pub struct WallClock {
    clock: Arc<dyn Clock>,
    time: LogTime,
}

impl WallClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, time: LogTime) -> Self {
        Self { clock, time }
    }

    /// The time of this machine, for what has nothing to do with a log.
    #[must_use]
    pub fn of_machine(clock: Arc<dyn Clock>) -> Self {
        let time = LogTime::of_machine(clock.now());
        Self { clock, time }
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.time.at(self.clock.now())
    }

    /// The deadline that passes at this time.
    #[must_use]
    pub fn at(&self, moment: UnixMs) -> Deadline {
        Deadline::after(&self.clock, moment.since(self.now()))
    }

    /// The clock that it follows.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }
}

/// The time that a server reported, at some moment between two of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerTimeSample {
    pub(crate) ms: UnixMs,
    pub(crate) asked: Instant,
    pub(crate) answered: Instant,
}

/// The most that the clocks of a healthy machine drift apart, as a fraction: 1/1,000.
const DRIFT: u32 = 1000;

/// The time that all users of a log share. Clones refer to the same time.
#[derive(Clone, Debug)]
pub(crate) struct LogTime(Slot<ClockMeasurement>);

/// The time of day at one moment of the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct ClockMeasurement {
    at: Instant,
    ms: UnixMs,
    /// How far off the measurement may be.
    error: Duration,
}

impl LogTime {
    /// The time of this machine, whose monotonic clock is at `now`.
    pub(crate) fn of_machine(now: Instant) -> Self {
        Self(Slot::new(ClockMeasurement {
            at: now,
            ms: UnixMs::from(SystemTime::now()),
            error: Duration::ZERO,
        }))
    }

    pub(crate) fn of_server(said: ServerTimeSample) -> Self {
        Self(Slot::new(said.into()))
    }

    /// Records another time that the server reported. A less exact measurement is ignored, unless it shows that
    /// the server's clock was set or this machine slept.
    pub(crate) fn update(&self, said: ServerTimeSample) {
        let (seen, new) = (self.0.read(), ClockMeasurement::from(said));
        if new.replaces(&seen.state) {
            // Only the task that asks the server writes it.
            drop(self.0.transition(seen.generation, new));
        }
    }

    /// The time when the monotonic clock is at `now`.
    pub(crate) fn at(&self, now: Instant) -> UnixMs {
        self.0.read().state.time(now)
    }
}

impl From<ServerTimeSample> for ClockMeasurement {
    fn from(said: ServerTimeSample) -> Self {
        let error = said.answered.saturating_duration_since(said.asked) / 2;
        Self {
            at: said.asked + error,
            ms: said.ms,
            error,
        }
    }
}

impl ClockMeasurement {
    fn time(&self, now: Instant) -> UnixMs {
        match now.checked_duration_since(self.at) {
            Some(passed) => self.ms.after(passed),
            None => {
                let before = self.at.saturating_duration_since(now);
                let before = u64::try_from(before.as_millis()).unwrap_or(u64::MAX);
                UnixMs(self.ms.0.saturating_sub(before))
            }
        }
    }

    fn replaces(&self, old: &ClockMeasurement) -> bool {
        let age = self.at.saturating_duration_since(old.at);
        let old_error = old.error + age / DRIFT;
        let expected = old.time(self.at);
        let off = self.ms.since(expected).max(expected.since(self.ms));
        self.error <= old_error || off > self.error + old_error + ROUNDED
    }
}

/// Both times are rounded to milliseconds.
const ROUNDED: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_server_is_followed_and_a_slow_answer_does_not_shift_it() {
        let start = Instant::now();
        let ms = |ms: u64| Duration::from_millis(ms);
        let said = |time: u64, asked: u64, answered: u64| ServerTimeSample {
            ms: UnixMs(time),
            asked: start + ms(asked),
            answered: start + ms(answered),
        };
        let time = LogTime::of_server(said(1_000_000, 0, 10));
        let at = |later: u64| time.at(start + ms(later)).0;
        assert_eq!((at(5), at(1005), at(0)), (1_000_000, 1_001_000, 999_995));
        // It took 800 ms, all on the way back: a less exact measurement.
        time.update(said(1_001_000, 1005, 1805));
        assert_eq!(at(2005), 1_002_000);
        // A quick answer counts.
        time.update(said(1_002_003, 2005, 2007));
        assert_eq!(at(3006), 1_003_003);
        // So does a slow one that the delay can't explain: the clock was set.
        time.update(said(9_000_000, 4000, 4800));
        assert_eq!(at(4400), 9_000_000);
    }
}
