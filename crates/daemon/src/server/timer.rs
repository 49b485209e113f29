//! Provides our clock to hyper's timeouts, so that tests can control it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use kernel::{Clock, Deadline, WaitForDeadline};

/// A timer that runs on a [`Clock`].
#[derive(Clone, Debug)]
pub(super) struct ClockTimer {
    clock: Arc<dyn Clock>,
}

impl ClockTimer {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }

    fn until(&self, deadline: Deadline) -> Pin<Box<dyn Sleep>> {
        Box::pin(ClockSleep {
            passed: deadline.passed(),
        })
    }
}

impl Timer for ClockTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.until(Deadline::after(&self.clock, duration))
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(at.saturating_duration_since(self.clock.now()))
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }
}

struct ClockSleep {
    passed: WaitForDeadline,
}

impl Future for ClockSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.passed).poll(context)
    }
}

impl Sleep for ClockSleep {}
