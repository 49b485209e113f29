//! A set of wakers that belongs to the lock of its owner.
//!
//! Wakers run foreign code when they are woken and when they are dropped. So nothing here does either: each
//! method returns the wakers, and the caller releases its lock first.

use std::{collections::BTreeMap, task::Waker};

/// The waiters on one state, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<Ticket, Waker>,
    next_ticket: u64,
}

/// Identifies one waiter. Tickets are never reused, so returning one twice does no harm.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket(u64);

impl Waiters {
    /// Registers a waker. If this waiter had registered one before, it is replaced and returned.
    pub(crate) fn enter(&mut self, ticket: &mut Option<Ticket>, waker: Waker) -> Option<Waker> {
        let ticket = *ticket.get_or_insert_with(|| {
            self.next_ticket += 1;
            Ticket(self.next_ticket)
        });
        self.wakers.insert(ticket, waker)
    }

    /// Removes one waiter, if it is still registered.
    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<Waker> {
        self.wakers.remove(&ticket)
    }

    /// Removes all waiters, so that the caller can wake them after releasing the lock.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Waker> + use<> {
        std::mem::take(&mut self.wakers).into_values()
    }

    /// How many waiters are registered.
    pub(crate) fn len(&self) -> usize {
        self.wakers.len()
    }
}
