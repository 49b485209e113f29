//! A set of wakers that belongs to somebody's lock.
//!
//! Wakers run foreign code when they are woken and when they are dropped. So nothing here does either: each
//! method hands the wakers back, and the caller lets go of its lock first.

use std::{collections::BTreeMap, task::Waker};

/// The waiters on one state, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<Ticket, Waker>,
    next_ticket: u64,
}

/// The place of one waiter. Tickets are never reused, so giving one back twice does no harm.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Puts a waker in, in place of the one that this waiter had in before. The old one is handed back.
    pub(crate) fn enter(&mut self, place: &mut Option<Ticket>, waker: Waker) -> Option<Waker> {
        let ticket = *place.get_or_insert_with(|| {
            self.next_ticket += 1;
            Ticket(self.next_ticket)
        });
        self.wakers.insert(ticket, waker)
    }

    /// Takes one waiter out, if it is still in.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        self.wakers.remove(&ticket)
    }

    /// Takes everybody out, to be woken once the lock is free.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }

    /// How many are waiting.
    pub(crate) fn len(&self) -> usize {
        self.wakers.len()
    }
}
