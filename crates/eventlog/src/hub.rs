//! How tails learn that a stream has moved.
//!
//! Each stream that somebody tails has a slot with its newest place and a window of recent events. A commit puts
//! the next state in; a tail waits until the newest place is beyond its own, takes the events from the window if
//! they are there, and reads them from the store if not. So a slow tail costs no memory, thousands of tails share
//! one window, and a hint without events (from another machine) is enough.

use std::sync::Arc;

use kernel::{Held, Slots};

use crate::{
    commit::Event,
    names::{Sequence, StreamId},
};

/// How many recent events a stream keeps at hand. A tail that is further behind reads from the store.
pub(crate) const WINDOW_EVENTS: usize = 64;
/// How many bytes the window may hold, so that a few large events do not fill the memory.
pub(crate) const WINDOW_BYTES: usize = 256 * 1024;

/// The newest place of a stream, and the events that lead up to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) last: Sequence,
    /// Gapless and ending with `last`, or empty.
    recent: Vec<Arc<Event>>,
}

impl Progress {
    /// The events after a place, if the window reaches back to it.
    pub(crate) fn after(&self, place: Sequence) -> Option<Vec<Arc<Event>>> {
        let first = self.recent.first()?.sequence;
        if place.next() < first {
            return None;
        }
        Some(
            self.recent
                .iter()
                .filter(|event| event.sequence > place)
                .cloned()
                .collect(),
        )
    }

    fn with(&self, events: &[Arc<Event>]) -> Self {
        let Some(last) = events.last().map(|event| event.sequence) else {
            return self.clone();
        };
        let joins = self
            .recent
            .last()
            .is_some_and(|known| known.sequence.next() == events[0].sequence);
        let mut recent = if joins { self.recent.clone() } else { Vec::new() };
        recent.extend(events.iter().cloned());
        let mut bytes = 0;
        let kept = recent.iter().rev().take_while(|event| {
            bytes += event.body.len();
            bytes <= WINDOW_BYTES
        });
        let kept = kept.take(WINDOW_EVENTS).count();
        recent.drain(..recent.len() - kept);
        Self { last, recent }
    }
}

/// The streams that somebody tails.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub {
    streams: Slots<StreamId, Progress>,
}

impl Hub {
    /// Holds the progress of a stream. From here on no commit is missed.
    pub(crate) fn watch(&self, stream: &StreamId) -> Held<StreamId, Progress> {
        self.streams.hold(stream.clone(), Progress::default())
    }

    /// The streams that somebody tails.
    pub(crate) fn watched(&self) -> Vec<StreamId> {
        let streams = self.streams.list();
        streams.into_iter().map(|(stream, _)| stream).collect()
    }

    /// How far the tails of a stream have been told to go, if there are any.
    pub(crate) fn told(&self, stream: &StreamId) -> Option<Sequence> {
        self.streams.find(stream).map(|held| held.read().state.last)
    }

    /// Tells the tails of a stream how far it is now, if there are any. They find the events in the store.
    pub(crate) fn hint(&self, stream: &StreamId, last: Sequence) {
        let Some(held) = self.streams.find(stream) else {
            return;
        };
        let mut seen = held.read();
        while last > seen.state.last {
            let recent = Vec::new();
            match held.transition(seen.generation, Progress { last, recent }) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Tells the tails of a stream what was appended, if there are any.
    pub(crate) fn publish(&self, stream: &StreamId, events: &[Arc<Event>]) {
        let Some(held) = self.streams.find(stream) else {
            return;
        };
        let mut seen = held.read();
        // Refused only if somebody else published meanwhile, and then this takes its place after them.
        while events
            .last()
            .is_some_and(|event| event.sequence > seen.state.last)
        {
            match held.transition(seen.generation, seen.state.with(events)) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(range: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Arc<Event>> {
        let event = |sequence| Event {
            sequence: Sequence::from_u64(sequence),
            at_ms: 0,
            kind: Arc::from("test"),
            body: vec![0; bytes].into(),
        };
        range.map(|sequence| Arc::new(event(sequence))).collect()
    }

    fn places(events: Option<Vec<Arc<Event>>>) -> Option<Vec<u64>> {
        events.map(|events| events.iter().map(|event| event.sequence.get()).collect())
    }

    #[test]
    fn the_window_answers_for_what_it_holds_and_for_nothing_else() {
        let progress = Progress::default().with(&events(10..=12, 1));
        assert_eq!(places(progress.after(Sequence::from_u64(8))), None);
        assert_eq!(
            places(progress.after(Sequence::from_u64(9))),
            Some(vec![10, 11, 12])
        );
        assert_eq!(places(progress.after(Sequence::from_u64(11))), Some(vec![12]));
        let joined = progress.with(&events(13..=13, 1));
        assert_eq!(
            places(joined.after(Sequence::from_u64(9))),
            Some(vec![10, 11, 12, 13])
        );
        let gap = progress.with(&events(20..=20, 1));
        assert_eq!(
            places(gap.after(Sequence::from_u64(12))),
            None,
            "what lies between is in the store"
        );
    }

    #[test]
    fn the_window_is_bounded_in_events_and_bytes() {
        let many = Progress::default().with(&events(1..=1000, 1));
        assert_eq!((many.recent.len(), many.last.get()), (WINDOW_EVENTS, 1000));
        let large = Progress::default().with(&events(1..=10, WINDOW_BYTES / 3));
        assert_eq!(large.recent.len(), 3);
        let huge = Progress::default().with(&events(1..=1, WINDOW_BYTES + 1));
        assert_eq!((huge.recent.len(), huge.last.get()), (0, 1));
    }
}
