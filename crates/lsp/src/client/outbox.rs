//! The messages that wait to be written, in the order of the calls.
//!
//! Pure: no clock, task or lock. `N` notifies a caller.
//!
//! A message takes its position in the call and keeps it. A limited number at the front are *accepted*: they are sent
//! no matter what happens to their callers. The others are waiting: each belongs to a caller that is still waiting, and
//! that withdraws the message when its deadline passes. So the order is that of the calls, whether or not the queue is
//! full, and what piles up for a server that isn't reading is bounded by the two limits below and by what callers hold
//! anyway.

use std::collections::VecDeque;

use bytes::Bytes;

/// How many messages are accepted ahead of a write: more than a burst of edits, and few enough that a caller soon
/// notices a server that isn't reading. When it is full, callers wait until their own deadline.
pub(super) const ACCEPTED_MESSAGES: usize = 256;

/// How many bytes are accepted ahead of a write. A single message may be larger; it is then sent alone.
pub(super) const ACCEPTED_BYTES: usize = 4 * 1024 * 1024;

/// How many messages may wait to be accepted. When it is full, the call is refused.
pub(super) const MAX_WAITING: usize = 8192;

/// How many answers to the server may be unsent. A server that sends this many requests without reading an answer is
/// flooding us, and the client is closed.
pub(super) const MAX_UNSENT_ANSWERS: usize = 1024;

/// How many cancellations may be unsent: as many as requests may be pending. Further ones are dropped, because the
/// server isn't reading them anyway.
const MAX_UNSENT_CANCELS: usize = super::pending::MAX_PENDING;

/// The position of a message. A later message has a greater one.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Ticket(u64);

/// The kind of a message decides what happens when there are too many of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Call,
    Answer,
    Cancel,
}

#[derive(Debug)]
struct Entry<N> {
    ticket: Ticket,
    bytes: Bytes,
    kind: Kind,
    notify: Tell<N>,
}

#[derive(Debug)]
enum Tell<N> {
    Nobody,
    WhenAccepted(N),
    WhenWritten(N),
}

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Full;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    Accepted,
    AtTheDoor,
}

#[derive(Debug)]
pub(super) struct Batch<N> {
    pub(super) messages: VecDeque<Bytes>,
    /// To be notified now: their messages have been accepted.
    pub(super) admitted: Vec<N>,
    pub(super) written: Vec<N>,
}

#[derive(Debug)]
pub(super) struct Outbox<N> {
    entries: VecDeque<Entry<N>>,
    /// How many messages at the front are accepted, and their total bytes.
    accepted: usize,
    accepted_bytes: usize,
    next_ticket: u64,
    unsent_answers: usize,
    unsent_cancels: usize,
}

impl<N> Default for Outbox<N> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            accepted: 0,
            accepted_bytes: 0,
            next_ticket: 0,
            unsent_answers: 0,
            unsent_cancels: 0,
        }
    }
}

impl<N> Outbox<N> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() - self.accepted >= MAX_WAITING
    }

    /// Queues a request. Its caller waits for the answer, so there is no notification.
    pub(super) fn push_request(&mut self, bytes: Bytes) -> Ticket {
        self.push(bytes, Kind::Call, Tell::Nobody)
    }

    /// Queues a notification. If it can't be accepted yet, `notify` fires once it is.
    pub(super) fn push_notification(&mut self, bytes: Bytes, notify: N) -> (Ticket, Admission) {
        let ticket = self.push(bytes, Kind::Call, Tell::WhenAccepted(notify));
        let admission = if self.accepted == self.entries.len() {
            Admission::Accepted
        } else {
            Admission::AtTheDoor
        };
        (ticket, admission)
    }

    /// Queues a mark: `notify` fires once everything before it has been written.
    pub(super) fn push_mark(&mut self, notify: N) -> Ticket {
        self.push(Bytes::new(), Kind::Call, Tell::WhenWritten(notify))
    }

    pub(super) fn push_answer(&mut self, bytes: Bytes) -> Result<(), Full> {
        if self.unsent_answers >= MAX_UNSENT_ANSWERS {
            return Err(Full);
        }
        self.unsent_answers += 1;
        self.push(bytes, Kind::Answer, Tell::Nobody);
        Ok(())
    }

    /// Queues a cancellation, if there is room.
    pub(super) fn push_cancel(&mut self, bytes: Bytes) {
        if self.unsent_cancels < MAX_UNSENT_CANCELS {
            self.unsent_cancels += 1;
            self.push(bytes, Kind::Cancel, Tell::Nobody);
        }
    }

    fn push(&mut self, bytes: Bytes, kind: Kind, notify: Tell<N>) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.entries.push_back(Entry {
            ticket,
            bytes,
            kind,
            notify,
        });
        // If it is accepted at once, the call returns that to its caller, and no other message is waiting.
        drop(self.admit());
        ticket
    }

    /// Withdraws a message, if it is still queued.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Result<Vec<N>, NotHere> {
        let at = self.entries.binary_search_by_key(&ticket, |entry| entry.ticket);
        let entry = at.ok().and_then(|at| Some((at, self.entries.remove(at)?)));
        let (at, entry) = entry.ok_or(NotHere)?;
        if at < self.accepted {
            self.accepted -= 1;
            self.accepted_bytes -= entry.bytes.len();
        }
        self.forget(entry.kind);
        Ok(self.admit())
    }

    pub(super) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.entries
            .binary_search_by_key(&ticket, |entry| entry.ticket)
            .is_ok_and(|at| at >= self.accepted)
    }

    pub(super) fn take(&mut self, most: usize) -> Option<Batch<N>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut batch = Batch {
            messages: VecDeque::with_capacity(most.min(self.accepted)),
            admitted: Vec::new(),
            written: Vec::new(),
        };
        for _ in 0..most.min(self.accepted) {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            self.accepted -= 1;
            self.accepted_bytes -= entry.bytes.len();
            self.forget(entry.kind);
            if let Tell::WhenWritten(notify) = entry.notify {
                batch.written.push(notify);
            }
            if !entry.bytes.is_empty() {
                batch.messages.push_back(entry.bytes);
            }
        }
        batch.admitted = self.admit();
        Some(batch)
    }

    fn admit(&mut self) -> Vec<N> {
        let mut admitted = Vec::new();
        while self.accepted < ACCEPTED_MESSAGES
            && (self.accepted == 0 || self.accepted_bytes < ACCEPTED_BYTES)
            && let Some(entry) = self.entries.get_mut(self.accepted)
        {
            self.accepted += 1;
            self.accepted_bytes += entry.bytes.len();
            if matches!(entry.notify, Tell::WhenAccepted(_))
                && let Tell::WhenAccepted(notify) = std::mem::replace(&mut entry.notify, Tell::Nobody)
            {
                admitted.push(notify);
            }
        }
        admitted
    }

    fn forget(&mut self, kind: Kind) {
        match kind {
            Kind::Call => {}
            Kind::Answer => self.unsent_answers -= 1,
            Kind::Cancel => self.unsent_cancels -= 1,
        }
    }
}

/// A message is no longer queued: it is being written, or was withdrawn.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct NotHere;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Requests { count: usize, bytes: usize },
        Notifications { count: usize, bytes: usize },
        Answers(usize),
        Cancels(usize),
        Mark,
        TakeBack(prop::sample::Index),
        Take(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let sizes = || (1..150_usize, prop::sample::select(vec![1, 100, 100_000]));
        let step = prop_oneof![
            sizes().prop_map(|(count, bytes)| Step::Requests { count, bytes }),
            sizes().prop_map(|(count, bytes)| Step::Notifications { count, bytes }),
            (1..600_usize).prop_map(Step::Answers),
            (1..10_usize).prop_map(Step::Cancels),
            Just(Step::Mark),
            any::<prop::sample::Index>().prop_map(Step::TakeBack),
            (1..200_usize).prop_map(Step::Take),
        ];
        prop::collection::vec(step, 1..25)
    }

    /// The queue next to a plain list of its expected content. Callers are identified by the number of their message.
    #[derive(Default)]
    struct Run {
        outbox: Outbox<u64>,
        expected: Vec<(Ticket, Bytes)>,
        answers: BTreeSet<Ticket>,
        waiting: BTreeSet<u64>,
        marks: BTreeMap<u64, Ticket>,
        next: u64,
    }

    impl Run {
        /// A message that contains its number, so that no two are the same.
        fn message(&mut self, bytes: usize) -> (u64, Bytes) {
            self.next += 1;
            let mut message = self.next.to_be_bytes().to_vec();
            message.resize(bytes.max(8), 0);
            (self.next, message.into())
        }

        fn notify(&mut self, admitted: Vec<u64>) {
            for number in admitted {
                assert!(
                    self.waiting.remove(&number),
                    "{number} is told once, and if it waits"
                );
            }
        }

        fn step(&mut self, step: Step) {
            match step {
                Step::Requests { count, bytes } => {
                    for _ in 0..count {
                        let (_, message) = self.message(bytes);
                        let ticket = self.outbox.push_request(message.clone());
                        self.expected.push((ticket, message));
                    }
                }
                Step::Notifications { count, bytes } => {
                    for _ in 0..count {
                        let (number, message) = self.message(bytes);
                        let (ticket, admission) = self.outbox.push_notification(message.clone(), number);
                        self.expected.push((ticket, message));
                        if admission == Admission::AtTheDoor {
                            self.waiting.insert(number);
                        }
                    }
                }
                Step::Answers(count) => {
                    for _ in 0..count {
                        let (_, message) = self.message(8);
                        let ticket = Ticket(self.outbox.next_ticket);
                        let has_room = self.answers.len() < MAX_UNSENT_ANSWERS;
                        assert_eq!(self.outbox.push_answer(message.clone()).is_ok(), has_room);
                        if has_room {
                            self.answers.insert(ticket);
                            self.expected.push((ticket, message));
                        }
                    }
                }
                Step::Cancels(count) => {
                    for _ in 0..count {
                        let (_, message) = self.message(8);
                        let ticket = Ticket(self.outbox.next_ticket);
                        self.outbox.push_cancel(message.clone());
                        self.expected.push((ticket, message));
                    }
                }
                Step::Mark => {
                    let (number, _) = self.message(8);
                    let ticket = self.outbox.push_mark(number);
                    self.expected.push((ticket, Bytes::new()));
                    self.marks.insert(number, ticket);
                }
                Step::TakeBack(index) => self.withdraw(index),
                Step::Take(most) => self.take(most),
            }
        }

        fn withdraw(&mut self, index: prop::sample::Index) {
            if self.expected.is_empty() {
                return;
            }
            let (ticket, message) = self.expected.remove(index.index(self.expected.len()));
            let is_waiting = self.outbox.is_waiting(ticket);
            let admitted = self.outbox.withdraw(ticket).expect("it is in");
            assert_eq!(self.outbox.withdraw(ticket), Err(NotHere));
            self.answers.remove(&ticket);
            self.marks.retain(|_, mark| *mark != ticket);
            if let Some(number) = message.first_chunk() {
                let waited = self.waiting.remove(&u64::from_be_bytes(*number));
                assert!(is_waiting || !waited, "who was accepted has been told");
            }
            self.notify(admitted);
        }

        fn take(&mut self, most: usize) {
            let Some(batch) = self.outbox.take(most) else {
                assert!(self.expected.is_empty());
                return;
            };
            let count = batch.messages.len() + batch.written.len();
            assert!((1..=most).contains(&count));
            let taken: Vec<_> = self.expected.drain(..count).collect();
            self.answers
                .retain(|ticket| taken.iter().all(|(other, _)| other != ticket));
            let messages: Vec<_> = taken.into_iter().map(|(_, message)| message).collect();
            let messages: Vec<_> = messages
                .into_iter()
                .filter(|message| !message.is_empty())
                .collect();
            assert_eq!(Vec::from(batch.messages), messages, "in the order of the calls");
            for number in batch.written {
                assert!(self.marks.remove(&number).is_some(), "{number} is told once");
            }
            self.notify(batch.admitted);
        }

        fn check(&self) {
            let outbox = &self.outbox;
            assert_eq!(outbox.len(), self.expected.len());
            let (accepted, waiting) = self.expected.split_at(outbox.accepted);
            let bytes: usize = accepted.iter().map(|(_, message)| message.len()).sum();
            assert_eq!(outbox.accepted_bytes, bytes);
            assert!(outbox.accepted <= ACCEPTED_MESSAGES);
            let last = accepted.last().map_or(0, |(_, message)| message.len());
            assert!(
                bytes - last < ACCEPTED_BYTES,
                "only the last one may exceed the limit"
            );
            let is_full = outbox.accepted == ACCEPTED_MESSAGES || bytes >= ACCEPTED_BYTES;
            assert!(is_full || waiting.is_empty(), "nobody waits while there is room");
            assert_eq!(outbox.unsent_answers, self.answers.len());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_queue_does_what_a_plain_list_does(steps in steps()) {
            let mut run = Run::default();
            for step in steps {
                run.step(step);
                run.check();
            }
            while !run.expected.is_empty() {
                run.take(64);
                run.check();
            }
            assert!(run.waiting.is_empty() && run.marks.is_empty(), "everybody has been told");
        }
    }
}
