//! A moment after which somebody no longer wants to wait, together with the clock that decides.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::clock::{Alarm, Clock};

/// The end of somebody's patience.
#[derive(Clone)]
pub struct Deadline {
    end: Option<(Instant, Arc<dyn Clock>)>,
}

/// A deadline was set to a time that has passed: most likely a mistake of the caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the deadline passed {} ms ago, before anything could be done", by.as_millis())]
pub struct PastDeadline {
    /// How long ago that was.
    pub by: Duration,
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the deadline passed")]
pub struct DeadlineExceeded;

impl Deadline {
    /// Endless patience.
    pub const fn never() -> Self {
        Self { end: None }
    }

    /// So long from now. Zero is allowed and means: look once, do not wait.
    pub fn after(clock: &Arc<dyn Clock>, patience: Duration) -> Self {
        // A patience that overflows the clock is endless.
        let end = clock
            .now()
            .checked_add(patience)
            .map(|at| (at, Arc::clone(clock)));
        Self { end }
    }

    /// At that time, which must not have passed.
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

    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
        self.end.as_ref().is_some_and(|(at, clock)| clock.now() >= *at)
    }

    /// How much time is left; `None` is endless.
    pub fn remaining(&self) -> Option<Duration> {
        self.end
            .as_ref()
            .map(|(at, clock)| at.saturating_duration_since(clock.now()))
    }

    /// So much earlier; an endless patience stays so.
    pub fn sooner(&self, by: Duration) -> Self {
        let end = self.end.as_ref().map(|(at, clock)| {
            // A moment before all clocks has passed, and so has the oldest that can be told.
            (
                at.checked_sub(by).unwrap_or_else(|| clock.now()),
                Arc::clone(clock),
            )
        });
        Self { end }
    }

    /// Waits until it passes. Cancel safety: may be dropped at any time and leaves nothing behind.
    pub fn passed(self) -> Passed {
        Passed {
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

/// The wait for a deadline; see [`Deadline::passed`].
#[derive(Debug)]
pub struct Passed {
    deadline: Deadline,
    alarm: Option<(Waker, Alarm)>,
}

impl Future for Passed {
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
