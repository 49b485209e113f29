//! What the handles and the two tasks of a client share.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kernel::{CancellationToken, Clock, Deadline, Slot};
use tokio::sync::{Notify, oneshot};

use super::{
    ClientSettings, Closed, Reply, RequestError,
    state::{AbandonReason, Aftermath, State},
};
use crate::wire::encode_cancel;

pub(super) type Answer = oneshot::Sender<Result<Reply, RequestError>>;

/// Notifies a caller that its message has been accepted or written.
pub(super) type Notified = oneshot::Sender<()>;

pub(super) struct ClientShared {
    pub(super) settings: ClientSettings,
    pub(super) clock: Arc<dyn Clock>,
    /// Guards the decisions. Never held while waiting, writing or running other code.
    state: Mutex<State<Answer, Notified>>,
    /// Notified when something has been queued.
    queued: Notify,
    /// Why the client is closed. Written once, by the caller that closed the state.
    closed: Slot<Option<Arc<Closed>>>,
}

impl ClientShared {
    pub(super) fn new(settings: ClientSettings, clock: Arc<dyn Clock>) -> Self {
        Self {
            settings,
            clock,
            state: Mutex::default(),
            queued: Notify::new(),
            closed: Slot::new(None),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<Answer, Notified>> {
        // A panic in a critical section would be a bug in the pure state, which every step leaves consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ring(&self) {
        self.queued.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.queued.notified().await;
    }

    /// Closes the client. The first reason counts, and all waiters get it.
    pub(super) fn close(&self, reason: Closed) {
        let reason = Arc::new(reason);
        let remains = self.lock().close(&reason);
        let Some(remains) = remains else { return };
        tracing::debug!(%reason, pending = remains.answers.len(), "the client is closed");
        let open = self.closed.read().generation;
        let written = self.closed.transition(open, Some(Arc::clone(&reason)));
        assert!(written.is_ok(), "only the first to close writes the reason");
        drop(remains.outbox);
        for answer in remains.answers {
            let reason = Arc::clone(&reason);
            // The send fails only if the caller no longer waits.
            drop(answer.send(Err(RequestError::Closed { reason })));
        }
    }

    /// Waits until the client is closed.
    pub(super) async fn closed(&self) -> Arc<Closed> {
        let nobody = CancellationToken::new();
        let wait = self
            .closed
            .wait_until(Option::is_some, Deadline::never(), &nobody.scope());
        match wait.await.map(|seen| Option::clone(&seen.state)) {
            Ok(Some(reason)) => reason,
            // Neither a deadline nor a scope can end this wait.
            _ => std::future::pending().await,
        }
    }

    pub(super) fn abandon(&self, id: i64, why: AbandonReason) {
        let given_up = self.lock().abandon(id, why);
        let Some((answer, aftermath)) = given_up else {
            return;
        };
        drop(answer);
        match aftermath {
            Aftermath::Unsent { admitted } => notify(admitted),
            Aftermath::TellServer => {
                let message = encode_cancel(id);
                self.lock().cancel(message);
                self.ring();
            }
        }
    }
}

/// Notifies all of them. Those that no longer listen don't need to know.
pub(super) fn notify(everybody: Vec<Notified>) {
    for somebody in everybody {
        let _: Result<(), ()> = somebody.send(());
    }
}

impl fmt::Debug for ClientShared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        formatter
            .debug_struct("Client")
            .field("closed", &state.closed())
            .field("pending", &state.pending())
            .field("queued", &state.queued())
            .field("counters", &state.counters)
            .finish_non_exhaustive()
    }
}
