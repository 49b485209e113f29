//! Waiting on an entry, and converting what was seen into an answer for the caller.

use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use kernel::{Deadline, HeldSlot, Scope, WaitError};

use crate::{
    LifecycleError, ServerKey,
    state::{Entry, EpisodeNumber, EpisodeProgress, FailedServer, Refusal},
};

/// A running server, as stored in an entry. Its `Debug` doesn't need the server's.
#[derive(Clone)]
pub(crate) struct ServerHandle<S>(pub(super) S);

impl<S> fmt::Debug for ServerHandle<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Handle")
    }
}

pub(crate) type ServerEntry<S> = Entry<ServerHandle<S>>;

pub(crate) type HeldEntry<S> = HeldSlot<ServerKey, ServerEntry<S>>;

/// Waits until an episode is over.
///
/// *Cancel safety*: the future may be dropped at any time.
pub(crate) async fn wait_for_episode<S>(
    held: &HeldEntry<S>,
    number: EpisodeNumber,
    deadline: &Deadline,
    scope: &Scope,
) -> Result<EpisodeProgress, LifecycleError> {
    let is_over = |entry: &ServerEntry<S>| entry.progress(number) != EpisodeProgress::UnderWay;
    let seen = wait_for_entry(held, is_over, deadline, scope).await?;
    Ok(seen.progress(number))
}

/// Waits until the predicate holds for an entry.
///
/// *Cancel safety*: the future may be dropped at any time.
pub(crate) async fn wait_for_entry<S>(
    held: &HeldEntry<S>,
    is_as_wanted: impl FnMut(&ServerEntry<S>) -> bool + Unpin,
    deadline: &Deadline,
    scope: &Scope,
) -> Result<Arc<ServerEntry<S>>, LifecycleError> {
    match held.wait_until(is_as_wanted, deadline.clone(), scope).await {
        Ok(seen) => Ok(seen.state),
        Err(WaitError::DeadlineExceeded { last }) => Err(LifecycleError::RequestTimeout {
            state: last.state.state(),
        }),
        Err(WaitError::Cancelled { cause, .. }) => Err(LifecycleError::Cancelled { cause }),
    }
}

impl From<Refusal> for LifecycleError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Stopped => Self::ServerStopped,
            Refusal::Failed(failed) => failed.into(),
        }
    }
}

impl From<FailedServer> for LifecycleError {
    fn from(failed: FailedServer) -> Self {
        Self::ServerFailed {
            reason: failed.reason,
            attempts: failed.attempts,
            retry_at: failed.retry_at,
        }
    }
}

/// Polls a future once and returns its value if it is ready.
pub(crate) fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Which of two futures finished first. If both are ready, it is the first one.
pub(crate) enum Race<A, B> {
    One(A),
    Other(B),
}

/// Waits for the first of two futures.
///
/// *Cancel safety*: that of the two futures.
pub(crate) async fn race<A, B>(
    one: &mut (impl Future<Output = A> + Unpin),
    other: &mut (impl Future<Output = B> + Unpin),
) -> Race<A, B> {
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = Pin::new(&mut *one).poll(context) {
            return Poll::Ready(Race::One(value));
        }
        Pin::new(&mut *other).poll(context).map(Race::Other)
    })
    .await
}

#[derive(Debug)]
pub(crate) struct Panicked;

/// Polls foreign code and catches its panics, which must not leave an entry waiting for a report.
///
/// *Cancel safety*: that of the future.
pub(crate) async fn catch_panic<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        // After a panic the future isn't polled again, so nobody sees its inconsistent state.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
