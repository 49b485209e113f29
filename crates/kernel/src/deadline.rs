//! A point in time after which a caller stops waiting, together with the clock that measures it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::clock::{Alarm, Clock};

/// A point in time after which a caller stops waiting, or never.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use kernel::{Clock, Deadline, ManualClock};
///
/// let manual = ManualClock::new();
/// let clock: Arc<dyn Clock> = Arc::clone(&manual) as Arc<dyn Clock>;
/// let deadline = Deadline::after(&clock, Duration::from_secs(5));
/// assert_eq!(deadline.remaining(), Some(Duration::from_secs(5)));
///
/// manual.advance(Duration::from_secs(5));
/// assert!(deadline.has_passed());
/// assert!(!Deadline::never().has_passed());
/// ```
#[derive(Clone)]
pub struct Deadline {
    end: Option<(Instant, Arc<dyn Clock>)>,
}

/// A deadline was set to a time in the past, which is most likely a mistake of the caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the deadline passed {} ms ago, before anything could be done", by.as_millis())]
pub struct PastDeadline {
    /// How long ago that was.
    pub by: Duration,
}

/// The deadline passed first.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the deadline passed")]
pub struct DeadlineExceeded;

impl Deadline {
    /// A deadline that never passes.
    pub const fn never() -> Self {
        Self { end: None }
    }

    /// A deadline this long from now. With zero, a wait looks once and doesn't wait.
    pub fn after(clock: &Arc<dyn Clock>, patience: Duration) -> Self {
        // A time that the clock cannot represent never comes.
        let end = clock
            .now()
            .checked_add(patience)
            .map(|at| (at, Arc::clone(clock)));
        Self { end }
    }

    /// A deadline at a given time, which must not be in the past.
    pub fn at(clock: &Arc<dyn Clock>, at: Instant) -> Result<Self, PastDeadline> {
        let by = clock.now().saturating_duration_since(at);
        if by.is_zero() {
            Ok(Self {
                end: Some((at, Arc::clone(clock))),
            })
        } else {
            Err(PastDeadline { by })
        }
    }

    /// Whether the deadline has passed.
    pub fn has_passed(&self) -> bool {
        self.end.as_ref().is_some_and(|(at, clock)| clock.now() >= *at)
    }

    /// How much time is left, or `None` if the deadline never passes.
    pub fn remaining(&self) -> Option<Duration> {
        self.end
            .as_ref()
            .map(|(at, clock)| at.saturating_duration_since(clock.now()))
    }

    /// A deadline that is this much earlier. One that never passes stays that way.
    pub fn sooner(&self, by: Duration) -> Self {
        let end = self.end.as_ref().map(|(at, clock)| {
            // A time that the clock cannot represent has passed already, and so has now.
            (
                at.checked_sub(by).unwrap_or_else(|| clock.now()),
                Arc::clone(clock),
            )
        });
        Self { end }
    }

    /// Waits until the deadline passes. Cancel safety: dropping the future leaves nothing behind.
    pub fn passed(self) -> WaitForDeadline {
        WaitForDeadline {
            deadline: self,
            alarm: None,
        }
    }

    pub(crate) fn alarm(&self, waker: Waker) -> Option<Alarm> {
        self.end.as_ref().map(|(at, clock)| clock.alarm(*at, waker))
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remaining() {
            Some(remaining) => write!(formatter, "Deadline({remaining:?} left)"),
            None => formatter.write_str("Deadline(never)"),
        }
    }
}

/// The future of [`Deadline::passed`].
#[derive(Debug)]
pub struct WaitForDeadline {
    deadline: Deadline,
    alarm: Option<(Waker, Alarm)>,
}

impl Future for WaitForDeadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.deadline.has_passed() {
            self.alarm = None;
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !self
            .alarm
            .as_ref()
            .is_some_and(|(known, _)| known.will_wake(waker))
        {
            self.alarm = self
                .deadline
                .alarm(waker.clone())
                .map(|alarm| (waker.clone(), alarm));
        }
        Poll::Pending
    }
}
