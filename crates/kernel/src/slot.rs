//! A state with a generation and waiters.
//!
//! Invariants:
//!
//! 1. State, generation and waiters change only while the slot's lock is held, and a transition changes the
//!    state and the generation in one step.
//! 2. A transition takes effect only if the generation it names is the current one. So of several writers that
//!    saw the same state exactly one wins, and the others learn the current state.
//! 3. A waiter enters before it looks, both while the lock is held, and a transition takes all waiters out in
//!    the step that changes the state. So a waiter that sleeps has seen the current state, or one that differs from it
//!    only by transitions that nobody waits for ([`Slot::transition_unnoticed`]).
//!
//! A waiter sees every state that lasts until it has run, and always the last one; states in between may pass
//! unseen. Predicates, wakers and destructors of states run outside the lock.

use std::{
    fmt,
    future::Future,
    iter,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    Cause, Deadline, Generation, Passed, Scope, Wait, block_on,
    sync::{Mutex, lock},
    waiters::{Ticket, Waiters},
};

/// A state that many read and wait on, and that is only written by those who saw its current generation.
/// Clones are the same slot.
pub struct Slot<S> {
    shared: Arc<Mutex<Guarded<S>>>,
}

struct Guarded<S> {
    generation: Generation,
    state: Arc<S>,
    waiters: Waiters,
}

/// A state as somebody saw it.
#[derive(Debug)]
pub struct Seen<S> {
    /// The generation that a write must name.
    pub generation: Generation,
    /// The state of that generation.
    pub state: Arc<S>,
}

/// A transition was refused because the state has moved.
#[derive(Debug, thiserror::Error)]
#[error("the state has moved on to generation {}", current.generation)]
pub struct Stale<S: fmt::Debug> {
    /// What the state is now.
    pub current: Seen<S>,
    /// The state that was not taken, given back.
    pub refused: S,
}

/// A wait ended before the state was as wanted.
#[derive(Debug, thiserror::Error)]
pub enum WaitError<S: fmt::Debug> {
    /// The deadline passed.
    #[error("the state was not reached before the deadline")]
    DeadlineExceeded {
        /// The state at that time.
        last: Seen<S>,
    },
    /// The scope of the waiter was cancelled.
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

    /// The current state. It answers at once: nobody works while holding the lock.
    pub fn read(&self) -> Seen<S> {
        lock(&self.shared).seen()
    }

    /// Writes the next state, if the generation that the caller saw is still the current one.
    pub fn transition(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.write(seen, next, Waiters::take_all)
    }

    /// Like [`transition`](Self::transition), and nobody who waits is woken: for a change that is made often, and that
    /// no predicate looks at. A count of users is one. Whoever looks sees it.
    pub fn transition_unnoticed(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.write(seen, next, |_| iter::empty())
    }

    /// Writes the next state, and wakes those that `take` takes out.
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

    /// Waits until the state is as wanted, the scope is cancelled or the deadline passes; looks in that order.
    /// Cancel safety: may be dropped at any time and leaves nothing behind.
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
            place: None,
            passed: deadline.passed(),
            cancelled: scope.wait(),
            _keep: keep,
        }
    }

    /// Like [`wait_until`](Self::wait_until), on a plain thread.
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

    /// How many are waiting.
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

/// The wait for a state; see [`Slot::wait_until`]. `K` is what it keeps in use meanwhile.
#[must_use = "a wait does nothing until it is polled"]
pub struct WaitUntil<S, P, K = ()> {
    slot: Slot<S>,
    predicate: P,
    place: Option<Ticket>,
    passed: Passed,
    cancelled: Wait,
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
        let replaced = guarded.waiters.enter(&mut this.place, waker);
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
        if let Some(ticket) = self.place {
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
