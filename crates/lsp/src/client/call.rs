//! The futures of a caller: a request, a notification, a flush.
//!
//! Each future queues its message when it is created. When it is dropped, it withdraws or cancels what the caller no
//! longer wants.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use kernel::{Deadline, Scope, WaitForCancellation, WaitForDeadline};
use tokio::sync::oneshot;

use super::{
    Reply, RequestError,
    outbox::{Admission, Ticket},
    shared::{ClientShared, notify},
    state::{AbandonReason, Refused},
};
use crate::wire::{EncodeError, Unnumbered};

/// A pending request; see [`Client::request`](super::Client::request).
#[derive(Debug)]
#[must_use = "a request that is dropped is cancelled"]
pub struct Request {
    progress: Progress<Waiting>,
}

#[derive(Debug)]
enum Progress<W> {
    Waiting(W),
    Failed(RequestError),
    Over,
}

#[derive(Debug)]
struct Waiting {
    shared: Arc<ClientShared>,
    id: i64,
    method: Arc<str>,
    since: Instant,
    answer: oneshot::Receiver<Result<Reply, RequestError>>,
    cancelled: WaitForCancellation,
    passed: WaitForDeadline,
}

impl Request {
    pub(super) fn start(
        shared: &Arc<ClientShared>,
        method: &str,
        message: Result<Unnumbered, EncodeError>,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Self {
        let started = Waiting::start(shared, method, message, deadline, scope);
        Self {
            progress: started.map_or_else(Progress::Failed, Progress::Waiting),
        }
    }
}

impl Waiting {
    fn start(
        shared: &Arc<ClientShared>,
        method: &str,
        message: Result<Unnumbered, EncodeError>,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<Self, RequestError> {
        let message = message?;
        // Don't send a request that the caller no longer wants.
        if let Some(cause) = scope.cause() {
            return Err(RequestError::Cancelled { cause });
        }
        if deadline.has_passed() {
            return Err(timeout(method.into(), Duration::ZERO));
        }
        let (sender, answer) = oneshot::channel();
        let id = shared.lock().request(message, sender)?;
        shared.ring();
        Ok(Self {
            shared: Arc::clone(shared),
            id,
            method: method.into(),
            since: shared.clock.now(),
            answer,
            cancelled: scope.wait(),
            passed: deadline.clone().passed(),
        })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Reply, RequestError>> {
        if let Poll::Ready(answer) = Pin::new(&mut self.answer).poll(context) {
            // The sender is only dropped with an answer, or by the give-up below, which ends the polling.
            return answer.map_or(Poll::Pending, Poll::Ready);
        }
        if let Poll::Ready(cause) = Pin::new(&mut self.cancelled).poll(context) {
            self.shared.abandon(self.id, AbandonReason::Cancelled);
            return Poll::Ready(Err(RequestError::Cancelled { cause }));
        }
        ready!(Pin::new(&mut self.passed).poll(context));
        self.shared.abandon(self.id, AbandonReason::TimedOut);
        let waited = self.shared.clock.now().saturating_duration_since(self.since);
        Poll::Ready(Err(timeout(Arc::clone(&self.method), waited)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // A request that has finished is no longer pending, and this does nothing.
        self.shared.abandon(self.id, AbandonReason::Cancelled);
    }
}

/// Cancel safety: dropping it abandons the request and tells the server.
impl Future for Request {
    type Output = Result<Reply, RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = match &mut self.progress {
            Progress::Waiting(waiting) => ready!(waiting.poll(context)),
            Progress::Failed(error) => Err(error.clone()),
            Progress::Over => return Poll::Pending,
        };
        self.progress = Progress::Over;
        Poll::Ready(outcome)
    }
}

/// A notification that is being sent; see [`Client::notify`](super::Client::notify).
#[derive(Debug)]
#[must_use = "a notification that is dropped may be taken back"]
pub struct Notice {
    progress: Progress<AtTheDoor>,
}

/// Waits for all earlier messages; see [`Client::flush`](super::Client::flush).
#[derive(Debug)]
#[must_use = "a flush waits for nothing unless it is polled"]
pub struct Flush {
    progress: Progress<AtTheDoor>,
}

#[derive(Debug)]
struct AtTheDoor {
    shared: Arc<ClientShared>,
    method: Arc<str>,
    ticket: Ticket,
    since: Instant,
    told: oneshot::Receiver<()>,
    passed: WaitForDeadline,
}

impl Notice {
    pub(super) fn start(
        shared: &Arc<ClientShared>,
        method: &str,
        message: Result<Unnumbered, EncodeError>,
        deadline: &Deadline,
    ) -> Self {
        let start = || {
            let message = message?.into_notification();
            let (notify, told) = oneshot::channel();
            let (ticket, admission) = shared.lock().notification(message, notify)?;
            shared.ring();
            Ok(match admission {
                Admission::Accepted => Progress::Over,
                Admission::AtTheDoor => {
                    Progress::Waiting(AtTheDoor::new(shared, method, ticket, told, deadline))
                }
            })
        };
        Self {
            progress: start().unwrap_or_else(Progress::Failed),
        }
    }
}

impl Flush {
    pub(super) fn start(shared: &Arc<ClientShared>, deadline: &Deadline) -> Self {
        let (notify, told) = oneshot::channel();
        let marked = shared.lock().mark(notify);
        shared.ring();
        Self {
            progress: match marked {
                Ok(ticket) => Progress::Waiting(AtTheDoor::new(shared, "flush", ticket, told, deadline)),
                Err(refused) => Progress::Failed(refused.into()),
            },
        }
    }
}

impl AtTheDoor {
    fn new(
        shared: &Arc<ClientShared>,
        method: &str,
        ticket: Ticket,
        told: oneshot::Receiver<()>,
        deadline: &Deadline,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            method: method.into(),
            ticket,
            since: shared.clock.now(),
            told,
            passed: deadline.clone().passed(),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        if let Poll::Ready(told) = Pin::new(&mut self.told).poll(context) {
            return Poll::Ready(told.or_else(|_| self.closed()));
        }
        ready!(Pin::new(&mut self.passed).poll(context));
        let waited = self.shared.clock.now().saturating_duration_since(self.since);
        Poll::Ready(Err(timeout(Arc::clone(&self.method), waited)))
    }

    fn closed(&self) -> Result<(), RequestError> {
        match self.shared.lock().closed() {
            Some(reason) => Err(RequestError::Closed {
                reason: Arc::clone(reason),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for AtTheDoor {
    fn drop(&mut self) {
        let admitted = self.shared.lock().withdraw_waiting(self.ticket);
        notify(admitted.unwrap_or_default());
    }
}

impl Progress<AtTheDoor> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), RequestError>> {
        let outcome = match self {
            Self::Waiting(waiting) => ready!(waiting.poll(context)),
            Self::Failed(error) => Err(error.clone()),
            Self::Over => Ok(()),
        };
        *self = Self::Over;
        Poll::Ready(outcome)
    }
}

/// Cancel safety: dropping it withdraws the notification if it has not been accepted.
impl Future for Notice {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.progress.poll(context)
    }
}

/// Cancel safety: may be dropped at any time.
impl Future for Flush {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.progress.poll(context)
    }
}

impl From<Refused> for RequestError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Closed(reason) => Self::Closed { reason },
            Refused::TooMany { limit } => Self::TooManyPending { limit },
        }
    }
}

fn timeout(method: Arc<str>, waited: Duration) -> RequestError {
    RequestError::Timeout { method, waited }
}
