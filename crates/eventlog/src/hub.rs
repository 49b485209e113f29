//! How tails learn that a stream has changed.
//!
//! Each stream with tails has a slot with its newest position and a window of recent events. A commit updates the
//! slot. A tail waits until the newest position is beyond its own, then takes the events from the window if they
//! are there, or reads them from the store. So a slow tail costs no memory, thousands of tails share one window,
//! and a hint without events (from another machine) is enough.
//!
//! A removed stream has no events, and a stream created again under the same name starts at 1. So a position
//! names the incarnation of the stream, which is compared first.
//!
//! A position only grows, with one exception: a database server that crashed may have lost relaxed commits that
//! readers have seen. If the store has less than the tails were told, that is a rewind. Rewinds are counted, and
//! a tail whose position was lost is told to resync. Other writers may fill the gap before anyone looks, so after
//! every loss of the connection all tails are in doubt, and each compares the events it has delivered with the
//! store.
//!
//! Watchers of a prefix are only told that a stream below it has changed, and look for themselves.

use std::sync::Arc;

use kernel::{HeldSlot, Slots};

use crate::{
    batch::{Batch, EventBatch},
    commit::Event,
    names::{Incarnation, Sequence, StreamId},
};

/// How many recent batches a stream keeps in memory. A tail that is further behind reads from the store.
pub(crate) const WINDOW_BATCHES: usize = 64;
/// How many bytes the window may hold, so that streams with large events don't fill the memory. This is what a
/// fast writer produces between two writes to disk, with room to spare.
pub(crate) const WINDOW_BYTES: usize = 1024 * 1024;

/// The position of a stream, and the events that lead up to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamProgress {
    /// Streams of this name with an earlier incarnation are gone. The other fields describe this incarnation, or
    /// none.
    pub(crate) incarnation: Incarnation,
    pub(crate) last: Sequence,
    /// How many times the store had lost events that the tails were told about.
    pub(crate) rewinds: u64,
    /// The position of the stream at the last rewind.
    pub(crate) rewound_to: (Incarnation, Sequence),
    /// How many times the store may have lost events since somebody first looked.
    pub(crate) doubts: u64,
    /// Gapless and ending with `last`, or empty.
    recent: Vec<Arc<Batch>>,
}

impl StreamProgress {
    /// The next batch after a sequence number, if the window reaches back to it. Also `None` if there is no event
    /// yet.
    pub(crate) fn after(&self, place: Sequence) -> Option<EventBatch> {
        if place.next() < self.recent.first()?.first() {
            return None;
        }
        let next = self.recent.partition_point(|batch| batch.last() <= place);
        EventBatch::after(Arc::clone(self.recent.get(next)?), place)
    }

    /// The position. Between two rewinds it only ever grows.
    pub(crate) fn place(&self) -> (Incarnation, Sequence) {
        (self.incarnation, self.last)
    }

    fn with(&self, incarnation: Incarnation, events: &[Arc<Event>]) -> Self {
        let Some(last) = events.last().map(|event| event.sequence) else {
            return self.clone();
        };
        let joins = self.incarnation == incarnation
            && self
                .recent
                .last()
                .is_some_and(|known| known.last().next() == events[0].sequence);
        let mut recent = if joins { self.recent.clone() } else { Vec::new() };
        recent.extend(Batch::split(incarnation, events));
        let mut bytes = 0;
        let kept = recent.iter().rev().take_while(|batch| {
            bytes += batch.bytes;
            bytes <= WINDOW_BYTES
        });
        let kept = kept.take(WINDOW_BATCHES).count();
        recent.drain(..recent.len() - kept);
        self.at(incarnation, last, recent)
    }

    fn at(&self, incarnation: Incarnation, last: Sequence, recent: Vec<Arc<Batch>>) -> Self {
        Self {
            incarnation,
            last,
            rewinds: self.rewinds,
            rewound_to: self.rewound_to,
            doubts: self.doubts,
            recent,
        }
    }
}

/// Tells the tails of a stream its newest position. They read the events from the store.
pub(crate) fn hint(held: &HeldSlot<StreamId, StreamProgress>, incarnation: Incarnation, last: Sequence) {
    let mut seen = held.read();
    while (incarnation, last) > seen.state.place() {
        match held.transition(seen.generation, seen.state.at(incarnation, last, Vec::new())) {
            Ok(_) => return,
            Err(stale) => seen = stale.current,
        }
    }
}

/// Tells the tails of a stream that the store has less of it than they had been told before the store was read.
/// If they were told more in the meantime, the next read finds out.
pub(crate) fn rewind(
    held: &HeldSlot<StreamId, StreamProgress>,
    told: (Incarnation, Sequence),
    found: (Incarnation, Sequence),
) {
    let seen = held.read();
    if seen.state.place() != told {
        return;
    }
    let (incarnation, last) = found;
    let rewound = StreamProgress {
        rewinds: seen.state.rewinds + 1,
        rewound_to: found,
        ..seen.state.at(incarnation, last, Vec::new())
    };
    if held.transition(seen.generation, rewound).is_ok() {
        tracing::warn!(
            told = told.1.get(),
            found = last.get(),
            "the log has lost events that readers have already seen"
        );
    }
}

/// What has happened to a stream, for its tails.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) stream: StreamId,
    pub(crate) incarnation: Incarnation,
    pub(crate) kind: ChangeKind,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// It was created or written, and these events were appended; none if only its head is new.
    Written(Vec<Arc<Event>>),
    Removed,
}

/// The streams that have tails, and the prefixes that have watchers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub {
    streams: Slots<StreamId, StreamProgress>,
    /// How many times something has changed below each prefix.
    prefixes: Slots<Arc<str>, u64>,
}

impl Hub {
    /// Holds the progress of a stream. From here on no commit is missed.
    pub(crate) fn watch(&self, stream: &StreamId) -> HeldSlot<StreamId, StreamProgress> {
        self.streams.hold(stream.clone(), StreamProgress::default())
    }

    /// Holds the count of a prefix. From here on no change is missed.
    pub(crate) fn watch_prefix(&self, prefix: &str) -> HeldSlot<Arc<str>, u64> {
        self.prefixes.hold(Arc::from(prefix), 0)
    }

    pub(crate) fn watched(&self) -> Vec<StreamId> {
        let streams = self.streams.list();
        streams.into_iter().map(|(stream, _)| stream).collect()
    }

    /// The newest position that the tails of a stream were told, if there are any.
    pub(crate) fn told(&self, stream: &StreamId) -> Option<(Incarnation, Sequence)> {
        self.streams.find(stream).map(|held| held.read().state.place())
    }

    /// Publishes changes to the tails and prefix watchers concerned.
    pub(crate) fn publish_changes(&self, changes: &[Change]) {
        for change in changes {
            match &change.kind {
                ChangeKind::Written(events) => self.publish(&change.stream, change.incarnation, events),
                ChangeKind::Removed => self.hint(&change.stream, change.incarnation.next(), Sequence::START),
            }
        }
        self.touch(|prefix| changes.iter().any(|change| change.stream.is_below(prefix)));
    }

    /// Publishes streams that were restored, with their positions.
    pub(crate) fn publish_restored(&self, streams: &[(StreamId, Incarnation, Sequence)]) {
        for (stream, incarnation, last) in streams {
            self.hint(stream, *incarnation, *last);
        }
        self.touch(|prefix| streams.iter().any(|(stream, ..)| stream.is_below(prefix)));
    }

    /// Tells the tails of a stream its newest position, if there are any.
    pub(crate) fn hint(&self, stream: &StreamId, incarnation: Incarnation, last: Sequence) {
        if let Some(held) = self.streams.find(stream) {
            hint(&held, incarnation, last);
        }
    }

    /// Tells the tails of a stream, if there are any, that the store has less of it than they were told.
    pub(crate) fn rewind(
        &self,
        stream: &StreamId,
        told: (Incarnation, Sequence),
        found: (Incarnation, Sequence),
    ) {
        if let Some(held) = self.streams.find(stream) {
            rewind(&held, told, found);
        }
    }

    /// The connection to the store was lost. The store may have less than the tails have delivered, or other
    /// events instead.
    pub(crate) fn doubt(&self) {
        for (stream, mut seen) in self.streams.list() {
            let Some(held) = self.streams.find(&stream) else {
                continue;
            };
            loop {
                let doubted = StreamProgress {
                    doubts: seen.state.doubts + 1,
                    ..(*seen.state).clone()
                };
                match held.transition(seen.generation, doubted) {
                    Ok(_) => break,
                    Err(stale) => seen = stale.current,
                }
            }
        }
    }

    /// Publishes appended events to the tails of a stream, if there are any.
    pub(crate) fn publish(&self, stream: &StreamId, incarnation: Incarnation, events: &[Arc<Event>]) {
        let Some(last) = events.last().map(|event| event.sequence) else {
            return;
        };
        let Some(held) = self.streams.find(stream) else {
            return;
        };
        let mut seen = held.read();
        // Refused only if somebody else published in the meantime; then this goes on top.
        while (incarnation, last) > seen.state.place() {
            match held.transition(seen.generation, seen.state.with(incarnation, events)) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Tells the watchers of a prefix that something below it has changed. Costs little if there are none.
    pub(crate) fn touch(&self, has_moved: impl Fn(&str) -> bool) {
        for (prefix, mut seen) in self.prefixes.list() {
            if !has_moved(&prefix) {
                continue;
            }
            let Some(held) = self.prefixes.find(&prefix) else {
                continue;
            };
            // Every change is counted: whoever was told of an earlier one may have looked before this one.
            while let Err(stale) = held.transition(seen.generation, *seen.state + 1) {
                seen = stale.current;
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

    const LIFE: Incarnation = Incarnation::from_u64(1);

    /// All events that the window has after a sequence number.
    fn after(progress: &StreamProgress, place: u64) -> Option<Vec<u64>> {
        let mut places: Vec<u64> = Vec::new();
        while let Some(batch) = progress.after(Sequence::from_u64(places.last().copied().unwrap_or(place))) {
            places.extend(batch.events().iter().map(|event| event.sequence.get()));
        }
        (!places.is_empty()).then_some(places)
    }

    #[test]
    fn the_window_answers_for_what_it_holds_and_for_nothing_else() {
        let progress = StreamProgress::default().with(LIFE, &events(10..=12, 1));
        assert_eq!(after(&progress, 8), None);
        assert_eq!(after(&progress, 9), Some(vec![10, 11, 12]));
        assert_eq!(after(&progress, 11), Some(vec![12]));
        let joined = progress.with(LIFE, &events(13..=13, 1));
        assert_eq!(after(&joined, 9), Some(vec![10, 11, 12, 13]));
        let gap = progress.with(LIFE, &events(20..=20, 1));
        assert_eq!(after(&gap, 12), None, "what lies between is in the store");
    }

    #[test]
    fn a_later_life_starts_over_and_an_earlier_one_is_not_heard() {
        let (hub, stream) = (Hub::default(), StreamId::new("s").unwrap());
        let held = hub.watch(&stream);
        let (first, second) = (Incarnation::from_u64(3), Incarnation::from_u64(4));
        let seen = || {
            let seen = held.read().state;
            (seen.place(), after(&seen, 0))
        };
        let at = |incarnation, last| (incarnation, Sequence::from_u64(last));
        hub.publish(&stream, first, &events(1..=5, 1));
        assert_eq!(seen(), (at(first, 5), Some(vec![1, 2, 3, 4, 5])));
        let removed = |incarnation| Change {
            stream: stream.clone(),
            incarnation,
            kind: ChangeKind::Removed,
        };
        hub.publish_changes(&[removed(first)]);
        assert_eq!(seen(), (at(second, 0), None));
        hub.publish(&stream, first, &events(6..=6, 1));
        assert_eq!(seen(), (at(second, 0), None));
        hub.publish(&stream, second, &events(1..=2, 1));
        assert_eq!(seen(), (at(second, 2), Some(vec![1, 2])));
        hub.publish_changes(&[removed(first)]);
        hub.hint(&stream, first, Sequence::from_u64(9));
        assert_eq!(seen(), (at(second, 2), Some(vec![1, 2])));
        // Events of another incarnation don't continue the window.
        hub.publish(&stream, Incarnation::from_u64(9), &events(3..=3, 1));
        assert_eq!(after(&held.read().state, 2), Some(vec![3]));
        assert_eq!(seen(), (at(Incarnation::from_u64(9), 3), None));
    }

    #[test]
    fn a_prefix_is_the_part_before_the_slash() {
        let hub = Hub::default();
        let counts = ["job", "job-output", "jo", "job/1", ""].map(|prefix| hub.watch_prefix(prefix));
        for (name, expected) in [
            ("job/1", [1, 0, 0, 0, 0]),
            ("job-output/1", [1, 1, 0, 0, 0]),
            ("job", [1, 1, 0, 0, 0]),
            ("job/1/2", [2, 1, 0, 1, 0]),
        ] {
            let written = Change {
                stream: StreamId::new(name).unwrap(),
                incarnation: LIFE,
                kind: ChangeKind::Written(Vec::new()),
            };
            hub.publish_changes(&[written]);
            assert_eq!(
                counts.each_ref().map(|count| *count.read().state),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn the_window_is_bounded_in_batches_and_bytes() {
        let mut many = StreamProgress::default();
        for place in 1..=1000 {
            many = many.with(LIFE, &events(place..=place, 1));
        }
        assert_eq!((many.recent.len(), many.last.get()), (WINDOW_BATCHES, 1000));
        let together = StreamProgress::default().with(LIFE, &events(1..=1000, 1));
        assert_eq!(
            (together.recent.len(), after(&together, 0).unwrap().len()),
            (1, 1000)
        );
        let large = StreamProgress::default().with(LIFE, &events(1..=10, WINDOW_BYTES / 3 - 1024));
        assert_eq!(after(&large, 7), Some(vec![8, 9, 10]));
        assert_eq!(after(&large, 6), None);
        let huge = StreamProgress::default().with(LIFE, &events(1..=1, WINDOW_BYTES + 1));
        assert_eq!((huge.recent.len(), huge.last.get()), (0, 1));
    }
}
