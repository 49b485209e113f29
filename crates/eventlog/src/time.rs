//! Times that outlive the daemon: milliseconds since 1970.
//!
//! What is written down must mean the same to the next daemon and to other machines, so it is time of day. Inside one
//! life it follows the monotonic clock, so that nobody who sets the machine's time can make a job wait for a year.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use kernel::{Clock, Deadline};
use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMs(pub u64);

impl UnixMs {
    /// The moment so much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// How long it is from an earlier moment to this one; nothing if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The same moment for the standard library.
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

/// The time of day of one life: read once, and followed by the clock from then on.
#[derive(Clone, Debug)]
pub struct WallClock {
    clock: Arc<dyn Clock>,
    start: Instant,
    start_ms: UnixMs,
}

impl WallClock {
    /// That of now.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let start = clock.now();
        let start_ms = UnixMs::from(SystemTime::now());
        Self {
            clock,
            start,
            start_ms,
        }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        let passed = self.clock.now().saturating_duration_since(self.start);
        self.start_ms.after(passed)
    }

    /// The deadline that passes at a moment.
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
