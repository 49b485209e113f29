//! The requests that wait for an answer, and those that no longer do.
//!
//! Pure: no clock, task or lock. `S` receives the answer.

use std::collections::{BTreeSet, HashMap};

use super::outbox::Ticket;

/// How many requests may be pending. A busy session has dozens; thousands mean that the server hangs or that a caller
/// is out of control. Further requests are refused.
pub(super) const MAX_PENDING: usize = 4096;

/// How many abandoned requests are remembered, to recognize their late answers. For older ones, only the highest id is
/// kept: a wrong answer to one of those passes for a late one, which is harmless.
const MAX_ABANDONED: usize = 4096;

/// How many answers with unknown ids may come in a row. A server that answers twice now and then is tolerable; one
/// that keeps doing so has lost count, and its answers can't be trusted.
pub(super) const MAX_UNKNOWN_IN_A_ROW: u32 = 1000;

#[derive(Debug)]
pub(super) struct Pending<S> {
    next_id: i64,
    waiting: HashMap<i64, Waiting<S>>,
    given_up: BTreeSet<i64>,
    /// Requests up to this id may have been abandoned and forgotten.
    forgotten_up_to: i64,
    unknown_in_a_row: u32,
}

#[derive(Debug)]
struct Waiting<S> {
    ticket: Ticket,
    answer: S,
}

#[derive(Debug, PartialEq)]
pub(super) enum Addressee<S> {
    Waiting(S),
    AbandonReason,
    /// Unknown, or answered already; this is the n-th in a row.
    Unknown {
        in_a_row: u32,
    },
}

impl<S> Default for Pending<S> {
    fn default() -> Self {
        Self {
            next_id: 1,
            waiting: HashMap::new(),
            given_up: BTreeSet::new(),
            forgotten_up_to: 0,
            unknown_in_a_row: 0,
        }
    }
}

impl<S> Pending<S> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_PENDING
    }

    pub(super) fn next_id(&self) -> i64 {
        self.next_id
    }

    pub(super) fn insert(&mut self, ticket: Ticket, answer: S) {
        self.waiting.insert(self.next_id, Waiting { ticket, answer });
        self.next_id += 1;
    }

    pub(super) fn answered(&mut self, id: Option<i64>) -> Addressee<S> {
        if let Some(waiting) = id.and_then(|id| self.waiting.remove(&id)) {
            self.unknown_in_a_row = 0;
            return Addressee::Waiting(waiting.answer);
        }
        let is_late =
            id.is_some_and(|id| self.given_up.remove(&id) || (1..=self.forgotten_up_to).contains(&id));
        if is_late {
            self.unknown_in_a_row = 0;
            return Addressee::AbandonReason;
        }
        self.unknown_in_a_row = self.unknown_in_a_row.saturating_add(1);
        Addressee::Unknown {
            in_a_row: self.unknown_in_a_row,
        }
    }

    /// Removes a request that no caller waits for any more; `None` if it isn't pending.
    pub(super) fn remove(&mut self, id: i64) -> Option<(Ticket, S)> {
        let waiting = self.waiting.remove(&id)?;
        Some((waiting.ticket, waiting.answer))
    }

    /// Remembers an abandoned request that the server may still answer.
    pub(super) fn remember_abandoned(&mut self, id: i64) {
        self.given_up.insert(id);
        if self.given_up.len() > MAX_ABANDONED
            && let Some(oldest) = self.given_up.pop_first()
        {
            self.forgotten_up_to = self.forgotten_up_to.max(oldest);
        }
    }

    pub(super) fn take_all(&mut self) -> Vec<S> {
        self.waiting.drain().map(|(_, waiting)| waiting.answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_requests(count: i64) -> Pending<i64> {
        let mut pending = Pending::default();
        for id in 1..=count {
            assert_eq!(pending.next_id(), id);
            pending.insert(Ticket::default(), id);
        }
        pending
    }

    #[test]
    fn an_answer_reaches_whom_it_is_for_and_once() {
        let mut pending = with_requests(3);
        assert_eq!(pending.answered(Some(2)), Addressee::Waiting(2));
        assert_eq!(pending.answered(Some(2)), Addressee::Unknown { in_a_row: 1 });
        assert_eq!(pending.answered(Some(4)), Addressee::Unknown { in_a_row: 2 });
        assert_eq!(pending.answered(Some(0)), Addressee::Unknown { in_a_row: 3 });
        assert_eq!(pending.answered(None), Addressee::Unknown { in_a_row: 4 });
        assert_eq!(pending.answered(Some(1)), Addressee::Waiting(1));
        assert_eq!(pending.answered(Some(1)), Addressee::Unknown { in_a_row: 1 });
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn a_late_answer_is_known_once_and_not_held_against_the_server() {
        let mut pending = with_requests(2);
        assert!(pending.remove(1).is_some());
        pending.remember_abandoned(1);
        assert_eq!(pending.answered(Some(1)), Addressee::AbandonReason);
        assert_eq!(pending.answered(Some(1)), Addressee::Unknown { in_a_row: 1 });
        assert!(pending.remove(2).is_some());
        assert_eq!(pending.answered(Some(2)), Addressee::Unknown { in_a_row: 2 });
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_forgotten_get_the_benefit_of_the_doubt() {
        let many = MAX_ABANDONED as i64 + 10;
        let mut pending = with_requests(many);
        for id in 1..=many {
            assert!(pending.remove(id).is_some());
            pending.remember_abandoned(id);
        }
        assert_eq!(pending.given_up.len(), MAX_ABANDONED);
        for id in 1..=many {
            assert_eq!(pending.answered(Some(id)), Addressee::AbandonReason, "{id}");
        }
        assert_eq!(pending.answered(Some(many)), Addressee::Unknown { in_a_row: 1 });
        assert_eq!(pending.answered(Some(0)), Addressee::Unknown { in_a_row: 2 });
        assert_eq!(pending.answered(Some(-1)), Addressee::Unknown { in_a_row: 3 });
    }
}
