//! All decisions of a client, without clock, task or lock.
//!
//! `A` receives an answer, `N` notifies a caller that its message has been accepted.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    error::{Closed, ProtocolError},
    outbox::{Admission, Batch, MAX_UNSENT_ANSWERS, MAX_WAITING, Outbox, Ticket},
    pending::{Addressee, MAX_PENDING, MAX_UNKNOWN_IN_A_ROW, Pending},
};
use crate::wire::{MessageId, Unnumbered};

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    pub requests_sent: u64,
    pub notifications_sent: u64,
    /// Requests that were answered, with a result or an error.
    pub answered: u64,
    pub timed_out: u64,
    /// Requests that were cancelled or dropped.
    pub cancelled: u64,
    /// Answers that were too long to be kept.
    pub oversized: u64,
    /// Answers that came after the request had been given up.
    pub late_answers: u64,
    /// Answers to requests that were never made, or that were already answered.
    pub unknown_ids: u64,
    pub notifications_in: u64,
    pub requests_in: u64,
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
}

impl Counters {
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            requests_sent: self.requests_sent + other.requests_sent,
            notifications_sent: self.notifications_sent + other.notifications_sent,
            answered: self.answered + other.answered,
            timed_out: self.timed_out + other.timed_out,
            cancelled: self.cancelled + other.cancelled,
            oversized: self.oversized + other.oversized,
            late_answers: self.late_answers + other.late_answers,
            unknown_ids: self.unknown_ids + other.unknown_ids,
            notifications_in: self.notifications_in + other.notifications_in,
            requests_in: self.requests_in + other.requests_in,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
        }
    }
}

/// Why a call was refused.
#[derive(Debug, PartialEq)]
pub(super) enum Refused {
    Closed(Arc<Closed>),
    TooMany { limit: usize },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum AbandonReason {
    TimedOut,
    Cancelled,
}

/// What is left to do after giving up a request.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Aftermath<N> {
    /// It was never sent. These messages have been accepted in its place.
    Unsent { admitted: Vec<N> },
    /// The server may have it, and should be notified.
    TellServer,
}

#[derive(Debug)]
pub(super) struct State<A, N> {
    pub(super) counters: Counters,
    closed: Option<Arc<Closed>>,
    pending: Pending<A>,
    outbox: Outbox<N>,
}

/// What is left to release after closing, outside the lock.
#[derive(Debug)]
pub(super) struct ClosedState<A, N> {
    pub(super) answers: Vec<A>,
    pub(super) outbox: Outbox<N>,
}

impl<A, N> Default for State<A, N> {
    fn default() -> Self {
        Self {
            counters: Counters::default(),
            closed: None,
            pending: Pending::default(),
            outbox: Outbox::default(),
        }
    }
}

impl<A, N> State<A, N> {
    pub(super) fn closed(&self) -> Option<&Arc<Closed>> {
        self.closed.as_ref()
    }

    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn queued(&self) -> usize {
        self.outbox.len()
    }

    /// Registers and queues a request in one step (invariant 1 of the module), and returns its id.
    pub(super) fn request(&mut self, message: Unnumbered, answer: A) -> Result<i64, Refused> {
        self.admits_calls()?;
        if self.pending.is_full() {
            return Err(Refused::TooMany { limit: MAX_PENDING });
        }
        let id = self.pending.next_id();
        let ticket = self.outbox.push_request(message.into_request(id));
        self.pending.insert(ticket, answer);
        self.counters.requests_sent += 1;
        Ok(id)
    }

    pub(super) fn notification(&mut self, message: Bytes, notify: N) -> Result<(Ticket, Admission), Refused> {
        self.admits_calls()?;
        self.counters.notifications_sent += 1;
        Ok(self.outbox.push_notification(message, notify))
    }

    pub(super) fn mark(&mut self, notify: N) -> Result<Ticket, Refused> {
        self.admits_calls()?;
        Ok(self.outbox.push_mark(notify))
    }

    fn admits_calls(&self) -> Result<(), Refused> {
        match &self.closed {
            Some(reason) => Err(Refused::Closed(Arc::clone(reason))),
            None if self.outbox.is_full() => Err(Refused::TooMany { limit: MAX_WAITING }),
            None => Ok(()),
        }
    }

    /// Withdraws the notification or mark of a caller that no longer waits. An accepted one is still sent.
    pub(super) fn withdraw_waiting(&mut self, ticket: Ticket) -> Option<Vec<N>> {
        if !self.outbox.is_waiting(ticket) {
            return None;
        }
        self.outbox.withdraw(ticket).ok()
    }

    /// Abandons a request, if it is still pending.
    pub(super) fn abandon(&mut self, id: i64, why: AbandonReason) -> Option<(A, Aftermath<N>)> {
        let (ticket, answer) = self.pending.remove(id)?;
        match why {
            AbandonReason::TimedOut => self.counters.timed_out += 1,
            AbandonReason::Cancelled => self.counters.cancelled += 1,
        }
        let aftermath = match self.outbox.withdraw(ticket) {
            Ok(admitted) => Aftermath::Unsent { admitted },
            Err(_) => {
                self.pending.remember_abandoned(id);
                Aftermath::TellServer
            }
        };
        Some((answer, aftermath))
    }

    pub(super) fn cancel(&mut self, message: Bytes) {
        if self.closed.is_none() {
            self.outbox.push_cancel(message);
        }
    }

    pub(super) fn answer(&mut self, message: Bytes) -> Result<(), Closed> {
        if self.closed.is_some() {
            return Ok(());
        }
        let pushed = self.outbox.push_answer(message);
        pushed.map_err(|_| Closed::Flooded {
            unsent: MAX_UNSENT_ANSWERS,
        })
    }

    /// Finds the request that an answer is for. Unknown ids are tolerated until there are too many.
    pub(super) fn answered(&mut self, id: Option<&MessageId>) -> Result<Option<A>, Closed> {
        let number = match id {
            Some(MessageId::Number(number)) => Some(*number),
            Some(MessageId::Text(_)) | None => None,
        };
        match self.pending.answered(number) {
            Addressee::Waiting(answer) => {
                self.counters.answered += 1;
                Ok(Some(answer))
            }
            Addressee::AbandonReason => {
                self.counters.late_answers += 1;
                Ok(None)
            }
            Addressee::Unknown { in_a_row } => {
                self.counters.unknown_ids += 1;
                if in_a_row > MAX_UNKNOWN_IN_A_ROW {
                    return Err(Closed::Protocol(ProtocolError::UnknownIds { count: in_a_row }));
                }
                Ok(None)
            }
        }
    }

    pub(super) fn take(&mut self, most: usize) -> Option<Batch<N>> {
        self.outbox.take(most)
    }

    pub(super) fn close(&mut self, reason: &Arc<Closed>) -> Option<ClosedState<A, N>> {
        if self.closed.is_some() {
            return None;
        }
        self.closed = Some(Arc::clone(reason));
        Some(ClosedState {
            answers: self.pending.take_all(),
            outbox: std::mem::take(&mut self.outbox),
        })
    }
}
