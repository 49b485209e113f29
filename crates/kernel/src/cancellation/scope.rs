//! One run of a token, as its workers see it.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use super::{
    Cause,
    node::{Node, Run},
};
use crate::{Deadline, DeadlineExceeded, block_on, waiters::Ticket};

/// Binds a worker to one run of a token. Once cancelled, a scope stays cancelled, whatever happens to the token.
#[derive(Clone, Debug)]
pub struct Scope {
    node: Arc<Node>,
    live_word: u64,
    run: Arc<Run>,
}

impl Scope {
    pub(super) fn current(node: &Arc<Node>) -> Self {
        let (live_word, run) = node.current();
        Self {
            node: Arc::clone(node),
            live_word,
            run,
        }
    }

    pub(super) fn live_word(&self) -> u64 {
        self.live_word
    }

    pub(super) fn is_of(&self, node: &Arc<Node>) -> bool {
        Arc::ptr_eq(&self.node, node)
    }

    /// Whether this run is cancelled. Costs one load and one comparison.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        self.node.word() != self.live_word
    }

    /// The cause, if this run is cancelled.
    pub fn cause(&self) -> Option<Arc<Cause>> {
        if self.is_cancelled() {
            self.run.cause()
        } else {
            None
        }
    }

    /// Waits until this run is cancelled. Cancel safety: dropping the future leaves nothing behind.
    pub fn wait(&self) -> WaitForCancellation {
        WaitForCancellation {
            scope: self.clone(),
            ticket: None,
        }
    }

    /// Like [`wait`](Self::wait), but blocks a plain thread.
    pub fn wait_blocking(&self, deadline: Deadline) -> Result<Arc<Cause>, DeadlineExceeded> {
        block_on(async {
            let mut cancelled = pin!(self.wait());
            let mut passed = pin!(deadline.passed());
            std::future::poll_fn(|context| {
                if let Poll::Ready(cause) = cancelled.as_mut().poll(context) {
                    return Poll::Ready(Ok(cause));
                }
                passed.as_mut().poll(context).map(|()| Err(DeadlineExceeded))
            })
            .await
        })
    }
}

/// The future of [`Scope::wait`]. It resolves to the cause.
#[derive(Debug)]
#[must_use = "a wait does nothing until it is polled"]
pub struct WaitForCancellation {
    scope: Scope,
    ticket: Option<Ticket>,
}

impl Future for WaitForCancellation {
    type Output = Arc<Cause>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Arc<Cause>> {
        let this = self.get_mut();
        let entered = !this.scope.is_cancelled()
            && this
                .scope
                .node
                .enter(this.scope.live_word, &mut this.ticket, context.waker().clone());
        if entered {
            return Poll::Pending;
        }
        // The cancel has removed this waiter (invariant 5 of the module), so there is no ticket to return.
        this.ticket = None;
        let cause = this.scope.cause();
        assert!(cause.is_some(), "a cancelled run has a cause");
        cause.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for WaitForCancellation {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.scope.node.leave(ticket);
        }
    }
}
