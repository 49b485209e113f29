//! Waiting on an entry, and turning what was seen into an answer for the caller.

use std::{
    fmt,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use kernel::{Deadline, Held, Scope, WaitError};

use crate::{
    LifecycleError, ServerKey,
    state::{Defeat, Entry, EpisodeNumber, Refusal, Verdict},
};

/// A running server, as an entry carries it.
#[derive(Clone)]
pub(crate) struct Handle<S>(pub(super) S);

impl<S> fmt::Debug for Handle<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Handle")
    }
}

/// The entry of a server.
pub(crate) type ServerEntry<S> = Entry<Handle<S>>;

/// An entry that somebody works with.
pub(crate) type HeldEntry<S> = Held<ServerKey, ServerEntry<S>>;

/// Waits until an episode is over.
///
/// *Cancel safety*: may be dropped at any time.
pub(crate) async fn episode_over<S>(
    held: &HeldEntry<S>,
    number: EpisodeNumber,
    deadline: &Deadline,
    scope: &Scope,
) -> Result<Verdict, LifecycleError> {
    let is_over = |entry: &ServerEntry<S>| entry.verdict(number) != Verdict::UnderWay;
    let seen = entry_is(held, is_over, deadline, scope).await?;
    Ok(seen.verdict(number))
}

/// Waits until an entry is as wanted.
///
/// *Cancel safety*: may be dropped at any time.
pub(crate) async fn entry_is<S>(
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
            Refusal::Failed(defeat) => defeat.into(),
        }
    }
}

impl From<Defeat> for LifecycleError {
    fn from(defeat: Defeat) -> Self {
        Self::ServerFailed {
            reason: defeat.reason,
            attempts: defeat.attempts,
            retry_at: defeat.retry_at,
        }
    }
}

/// What a future says when it is asked once.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Whichever of two comes first; the first one has the right of way.
pub(crate) enum First<A, B> {
    One(A),
    Other(B),
}

/// Waits for the first of two futures.
///
/// *Cancel safety*: as of the two.
pub(crate) async fn first<A, B>(
    one: &mut (impl Future<Output = A> + Unpin),
    other: &mut (impl Future<Output = B> + Unpin),
) -> First<A, B> {
    std::future::poll_fn(|context| {
        if let Poll::Ready(value) = Pin::new(&mut *one).poll(context) {
            return Poll::Ready(First::One(value));
        }
        Pin::new(&mut *other).poll(context).map(First::Other)
    })
    .await
}

/// A future panicked.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Drives foreign code, whose panic must not leave an entry waiting for its report.
///
/// *Cancel safety*: as of the future.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| {
        // After a panic the future is not polled again, so whatever it left half-done is seen by nobody.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
