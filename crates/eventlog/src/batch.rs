//! Events that are delivered together: those of one commit, or of one page.
//!
//! All tails of a stream share a batch, and also the form in which they send it on: the first reader that needs
//! the form renders it, and the others reuse it. So a stream with many readers costs little more than one with a
//! single reader.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::{
    commit::Event,
    names::{Incarnation, Sequence},
};

/// How many bytes of bodies go into one batch, so that a reader soon has something to send. A larger event is a
/// batch of its own.
const BATCH_BYTES: usize = 64 * 1024;
/// The approximate size of an event without its body, including its rendered form.
const AROUND_BODY_BYTES: usize = 192;
/// How many events go into one batch.
const BATCH_EVENTS: usize = 1024;

/// Consecutive events of a stream; at least one.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) incarnation: Incarnation,
    pub(crate) events: Vec<Arc<Event>>,
    /// The approximate size in memory.
    pub(crate) bytes: usize,
    /// The form that was requested first.
    rendered: OnceLock<(&'static str, Bytes)>,
}

impl Batch {
    fn new(incarnation: Incarnation, events: Vec<Arc<Event>>) -> Self {
        let each = events.iter().map(|event| event.body.len() + AROUND_BODY_BYTES);
        let bytes = each.sum();
        Self {
            incarnation,
            events,
            bytes,
            rendered: OnceLock::new(),
        }
    }

    /// Splits events into as many batches as they need.
    pub(crate) fn split(incarnation: Incarnation, events: &[Arc<Event>]) -> Vec<Arc<Self>> {
        let mut batches = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (place, event) in events.iter().enumerate() {
            let is_full = bytes + event.body.len() > BATCH_BYTES || place - start == BATCH_EVENTS;
            if is_full && place > start {
                batches.push(Arc::new(Self::new(incarnation, events[start..place].to_vec())));
                (start, bytes) = (place, 0);
            }
            bytes += event.body.len();
        }
        if start < events.len() {
            batches.push(Arc::new(Self::new(incarnation, events[start..].to_vec())));
        }
        batches
    }

    /// The sequence number of the last event.
    pub(crate) fn last(&self) -> Sequence {
        self.events.last().map_or(Sequence::START, |event| event.sequence)
    }

    pub(crate) fn first(&self) -> Sequence {
        self.events
            .first()
            .map_or(Sequence::START, |event| event.sequence)
    }
}

/// Consecutive events that a tail delivers together; at least one.
#[derive(Clone, Debug)]
pub struct EventBatch {
    batch: Arc<Batch>,
    /// How many of them the reader already has.
    skip: usize,
}

impl EventBatch {
    /// The part of a batch after a sequence number, or `None` if there is none.
    pub(crate) fn after(batch: Arc<Batch>, place: Sequence) -> Option<Self> {
        let skip = batch.events.partition_point(|event| event.sequence <= place);
        (skip < batch.events.len()).then_some(Self { batch, skip })
    }

    /// The events.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.batch.events[self.skip..]
    }

    /// The sequence number of the last event.
    pub fn last(&self) -> Sequence {
        self.batch.last()
    }

    /// The events in another form, rendered at most once for all readers that ask for the same form. `form` names
    /// it: the output of `render` must depend only on the events.
    pub fn rendered(&self, form: &'static str, render: impl Fn(&[Arc<Event>]) -> Bytes) -> Bytes {
        if self.skip > 0 {
            return render(self.events());
        }
        let (of, bytes) = self
            .batch
            .rendered
            .get_or_init(|| (form, render(&self.batch.events)));
        if *of == form {
            bytes.clone()
        } else {
            render(&self.batch.events)
        }
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.batch.incarnation
    }

    /// The first event, and the remaining ones if there are any.
    pub(crate) fn split_first(self) -> (Arc<Event>, Option<Self>) {
        let first = Arc::clone(&self.batch.events[self.skip]);
        let skip = self.skip + 1;
        let rest = (skip < self.batch.events.len()).then_some(Self { skip, ..self });
        (first, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(sizes: &[usize]) -> Vec<Arc<Event>> {
        let event = |(sequence, size): (u64, &usize)| {
            Arc::new(Event {
                sequence: Sequence::from_u64(sequence),
                at_ms: 0,
                kind: Arc::from("test"),
                body: vec![b'x'; *size].into(),
            })
        };
        (1..).zip(sizes).map(event).collect()
    }

    #[test]
    fn batches_are_bounded_in_bytes_and_events() {
        for (sizes, expected) in [
            (vec![], vec![]),
            (vec![1], vec![1]),
            (vec![BATCH_BYTES, 1], vec![1, 1]),
            (vec![1, BATCH_BYTES], vec![1, 1]),
            (vec![3 * BATCH_BYTES], vec![1]),
            (vec![BATCH_BYTES / 2; 5], vec![2, 2, 1]),
            (vec![1; BATCH_EVENTS + 2], vec![BATCH_EVENTS, 2]),
        ] {
            let batches = Batch::split(Incarnation::from_u64(1), &events(&sizes));
            let counts: Vec<_> = batches.iter().map(|batch| batch.events.len()).collect();
            assert_eq!(counts, expected);
            let bytes: usize = batches.iter().map(|batch| batch.bytes).sum();
            let expected = sizes.iter().sum::<usize>() + sizes.len() * AROUND_BODY_BYTES;
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn a_form_is_made_once_for_all_who_have_the_whole_batch() {
        let batch = Batch::split(Incarnation::from_u64(1), &events(&[1, 2, 3])).remove(0);
        let made = std::cell::Cell::new(0);
        let render = |events: &[Arc<Event>]| {
            made.set(made.get() + 1);
            let places: Vec<_> = events.iter().map(|event| event.sequence.to_string()).collect();
            Bytes::from(places.join(" "))
        };
        let after = |place| EventBatch::after(Arc::clone(&batch), Sequence::from_u64(place));
        for (place, form, expected, made_by_then) in [
            (0, "plain", "1 2 3", 1),
            (0, "plain", "1 2 3", 1),
            (1, "plain", "2 3", 2),
            (0, "other", "1 2 3", 3),
            (0, "plain", "1 2 3", 3),
        ] {
            assert_eq!(after(place).unwrap().rendered(form, render), expected);
            assert_eq!(made.get(), made_by_then);
        }
        assert!(after(3).is_none());
    }
}
