//! A state with a generation and waiters.
//!
//! Invariants:
//!
//! 1. State, generation and waiters change only while the slot's lock is held, and a transition changes the state
//!    and the generation in one step.
//! 2. A transition takes effect only if the generation it names is the current one. So of several writers that
//!    saw the same state, exactly one wins, and the others get the current state.
//! 3. A waiter registers and then looks, both while the lock is held, and a transition removes all waiters in the
//!    step that changes the state. So a sleeping waiter has seen the current state, or one that differs from it
//!    only by transitions that nobody waits for ([`Slot::transition_unnoticed`]).
//!
//! A waiter sees every state that lasts until it has run, and always the last one. It may miss states in between.
//! Predicates, wakers and destructors of states run outside the lock.

use std::{
    fmt,
    future::Future,
    iter,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    Cause, Deadline, Generation, Scope, WaitForCancellation, WaitForDeadline, block_on,
    sync::{Mutex, lock},
    waiters::{Ticket, Waiters},
};

/// A state that many read and wait on. Only a writer that saw its current generation can change it. Clones refer
/// to the same slot.
///
/// ```
/// use kernel::Slot;
///
/// let slot = Slot::new("starting");
/// let seen = slot.read();
/// slot.transition(seen.generation, "ready").unwrap();
///
/// // A second writer that saw the same state is refused and gets the current one.
/// let stale = slot.transition(seen.generation, "failed").unwrap_err();
/// assert_eq!(*stale.current.state, "ready");
/// assert_eq!(stale.refused, "failed");
/// ```
pub struct Slot<S> {
    shared: Arc<Mutex<Guarded<S>>>,
}

struct Guarded<S> {
    generation: Generation,
    state: Arc<S>,
    waiters: Waiters,
}

/// A state as a caller saw it.
#[derive(Debug)]
pub struct Seen<S> {
    /// The generation that a write must name.
    pub generation: Generation,
    /// The state of that generation.
    pub state: Arc<S>,
}

/// A transition was refused because the state has changed since the caller looked.
#[derive(Debug, thiserror::Error)]
#[error("the state has moved on to generation {}", current.generation)]
pub struct Stale<S: fmt::Debug> {
    /// The current state.
    pub current: Seen<S>,
    /// The state that wasn't stored.
    pub refused: S,
}

/// A wait ended before the predicate held.
#[derive(Debug, thiserror::Error)]
pub enum WaitError<S: fmt::Debug> {
    /// The deadline passed.
    #[error("the state was not reached before the deadline")]
    DeadlineExceeded {
        /// The state at that time.
        last: Seen<S>,
    },
    /// The waiter's scope was cancelled.
    #[error("the wait was cancelled by {cause}")]
    Cancelled {
        /// Who cancelled it, and why.
        cause: Arc<Cause>,
        /// The state at that time.
        last: Seen<S>,
    },
}

impl<S> Slot<S> {
    /// A slot in its first generation.
    pub fn new(state: S) -> Self {
        Self::starting_at(Generation::FIRST, state)
    }

    pub(crate) fn starting_at(generation: Generation, state: S) -> Self {
        let guarded = Guarded {
            generation,
            state: Arc::new(state),
            waiters: Waiters::default(),
        };
        Self {
            shared: Arc::new(Mutex::new(guarded)),
        }
    }

    /// The current state. Returns at once, because the lock is only held for a moment.
    pub fn read(&self) -> Seen<S> {
        lock(&self.shared).seen()
    }

    /// Stores the next state, if the generation that the caller saw is still the current one.
    pub fn transition(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.write(seen, next, Waiters::take_all)
    }

    /// Like [`transition`](Self::transition), but doesn't wake anyone. Use it for frequent changes that no
    /// predicate looks at, such as a count of users. Readers do see the change.
    pub fn transition_unnoticed(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.write(seen, next, |_| iter::empty())
    }

    /// Stores the next state and wakes the waiters that `take` removes.
    fn write<W: Iterator<Item = Waker>>(
        &self,
        seen: Generation,
        next: S,
        take: impl FnOnce(&mut Waiters) -> W,
    ) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        let mut guarded = lock(&self.shared);
        if guarded.generation != seen {
            let current = guarded.seen();
            drop(guarded);
            return Err(Stale {
                current,
                refused: next,
            });
        }
        let generation = seen.next();
        guarded.generation = generation;
        let previous = std::mem::replace(&mut guarded.state, Arc::new(next));
        let wakers = take(&mut guarded.waiters);
        drop(guarded);
        drop(previous);
        wakers.for_each(Waker::wake);
        Ok(generation)
    }

    /// Waits until the predicate holds, the scope is cancelled or the deadline passes; each poll checks in that
    /// order. Cancel safety: dropping the future leaves nothing behind.
    pub fn wait_until<P>(&self, predicate: P, deadline: Deadline, scope: &Scope) -> WaitUntil<S, P>
    where
        P: FnMut(&S) -> bool + Unpin,
    {
        self.wait_keeping((), predicate, deadline, scope)
    }

    pub(crate) fn wait_keeping<P, K>(
        &self,
        keep: K,
        predicate: P,
        deadline: Deadline,
        scope: &Scope,
    ) -> WaitUntil<S, P, K>
    where
        P: FnMut(&S) -> bool + Unpin,
    {
        WaitUntil {
            slot: self.clone(),
            predicate,
            ticket: None,
            passed: deadline.passed(),
            cancelled: scope.wait(),
            _keep: keep,
        }
    }

    /// Like [`wait_until`](Self::wait_until), but blocks a plain thread.
    pub fn wait_until_blocking<P>(
        &self,
        predicate: P,
        deadline: Deadline,
        scope: &Scope,
    ) -> Result<Seen<S>, WaitError<S>>
    where
        P: FnMut(&S) -> bool + Unpin,
        S: fmt::Debug,
    {
        block_on(self.wait_until(predicate, deadline, scope))
    }

    /// How many waiters are registered.
    pub fn waiting(&self) -> usize {
        lock(&self.shared).waiters.len()
    }
}

impl<S> Guarded<S> {
    fn seen(&self) -> Seen<S> {
        Seen {
            generation: self.generation,
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> Clone for Slot<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S> Clone for Seen<S> {
    fn clone(&self) -> Self {
        Self {
            generation: self.generation,
            state: Arc::clone(&self.state),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Slot<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { generation, state } = self.read();
        formatter
            .debug_struct("Slot")
            .field("generation", &generation)
            .field("state", &state)
            .finish()
    }
}

/// The future of [`Slot::wait_until`]. It keeps `K` alive while it waits.
#[must_use = "a wait does nothing until it is polled"]
pub struct WaitUntil<S, P, K = ()> {
    slot: Slot<S>,
    predicate: P,
    ticket: Option<Ticket>,
    passed: WaitForDeadline,
    cancelled: WaitForCancellation,
    _keep: K,
}

impl<S, P, K> Future for WaitUntil<S, P, K>
where
    P: FnMut(&S) -> bool + Unpin,
    K: Unpin,
    S: fmt::Debug,
{
    type Output = Result<Seen<S>, WaitError<S>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let waker = context.waker().clone();
        let mut guarded = lock(&this.slot.shared);
        let replaced = guarded.waiters.enter(&mut this.ticket, waker);
        let last = guarded.seen();
        drop(guarded);
        drop(replaced);

        if (this.predicate)(&last.state) {
            return Poll::Ready(Ok(last));
        }
        if let Poll::Ready(cause) = Pin::new(&mut this.cancelled).poll(context) {
            return Poll::Ready(Err(WaitError::Cancelled { cause, last }));
        }
        Pin::new(&mut this.passed)
            .poll(context)
            .map(|()| Err(WaitError::DeadlineExceeded { last }))
    }
}

impl<S, P, K> Drop for WaitUntil<S, P, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            let waker = lock(&self.slot.shared).waiters.leave(ticket);
            drop(waker);
        }
    }
}

impl<S: fmt::Debug, P, K> fmt::Debug for WaitUntil<S, P, K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WaitUntil")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
