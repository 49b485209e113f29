//! How tails learn that a stream has moved.
//!
//! Each stream that somebody tails has a slot with its newest place and a window of recent events. A commit puts
//! the next state in; a tail waits until the newest place is beyond its own, takes the events from the window if
//! they are there, and reads them from the store if not. So a slow tail costs no memory, thousands of tails share
//! one window, and a hint without events (from another machine) is enough.
//!
//! A stream that was removed has no events, and one that is made again counts from 1. So a place says which life of
//! the stream it is in, and places are compared by that first.
//!
//! A place only grows, but for one case: a database server that crashed may have lost what it had shown of relaxed commits.
//! When the store is found to have less than the tails were told of, that is a rewind. Each is counted, and a tail whose place
//! was lost is told to resync. Others may have written in the place of what was lost before anybody looks, so after every loss
//! of the connection the tails are in doubt, and each looks back at what it has handed out.
//!
//! Whoever watches all streams below a prefix is told that one of them has moved, and looks for themselves.

use std::sync::Arc;

use kernel::{Held, Slots};

use crate::{
    batch::{Batch, EventBatch},
    commit::Event,
    names::{Life, Sequence, StreamId},
};

/// How many recent batches a stream keeps at hand. A tail that is further behind reads from the store.
pub(crate) const WINDOW_BATCHES: usize = 64;
/// How many bytes the window may hold, so that streams with large events do not fill the memory. It is some thousands of words:
/// what a fast writer says between two writes to the disk, and the readers hear of at once.
pub(crate) const WINDOW_BYTES: usize = 1024 * 1024;

/// How far a stream is, and the events that lead up to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Streams of that name with an earlier life are gone. What follows is about this life, or about none.
    pub(crate) life: Life,
    pub(crate) last: Sequence,
    /// How often the store had lost what the tails were told of.
    pub(crate) rewinds: u64,
    /// How far the stream was when that was last found.
    pub(crate) rewound_to: (Life, Sequence),
    /// How often the store may have lost something since somebody first looked.
    pub(crate) doubts: u64,
    /// Gapless and ending with `last`, or empty.
    recent: Vec<Arc<Batch>>,
}

impl Progress {
    /// The next batch after a place, if the window reaches back to it; `None` too if there is none yet.
    pub(crate) fn after(&self, place: Sequence) -> Option<EventBatch> {
        if place.next() < self.recent.first()?.first() {
            return None;
        }
        let next = self.recent.partition_point(|batch| batch.last() <= place);
        EventBatch::after(Arc::clone(self.recent.get(next)?), place)
    }

    /// What it can be compared by: between two rewinds it only ever grows.
    pub(crate) fn place(&self) -> (Life, Sequence) {
        (self.life, self.last)
    }

    fn with(&self, life: Life, events: &[Arc<Event>]) -> Self {
        let Some(last) = events.last().map(|event| event.sequence) else {
            return self.clone();
        };
        let joins = self.life == life
            && self
                .recent
                .last()
                .is_some_and(|known| known.last().next() == events[0].sequence);
        let mut recent = if joins { self.recent.clone() } else { Vec::new() };
        recent.extend(Batch::split(life, events));
        let mut bytes = 0;
        let kept = recent.iter().rev().take_while(|batch| {
            bytes += batch.bytes;
            bytes <= WINDOW_BYTES
        });
        let kept = kept.take(WINDOW_BATCHES).count();
        recent.drain(..recent.len() - kept);
        self.at(life, last, recent)
    }

    fn at(&self, life: Life, last: Sequence, recent: Vec<Arc<Batch>>) -> Self {
        Self {
            life,
            last,
            rewinds: self.rewinds,
            rewound_to: self.rewound_to,
            doubts: self.doubts,
            recent,
        }
    }
}

/// Tells those who follow a stream how far it is now. They find the events in the store.
pub(crate) fn hint(held: &Held<StreamId, Progress>, life: Life, last: Sequence) {
    let mut seen = held.read();
    while (life, last) > seen.state.place() {
        match held.transition(seen.generation, seen.state.at(life, last, Vec::new())) {
            Ok(_) => return,
            Err(stale) => seen = stale.current,
        }
    }
}

/// Tells those who follow a stream that the store has less of it than they had been told before the store was asked. If they
/// were told more meanwhile, the next look finds out.
pub(crate) fn rewind(held: &Held<StreamId, Progress>, told: (Life, Sequence), found: (Life, Sequence)) {
    let seen = held.read();
    if seen.state.place() != told {
        return;
    }
    let (life, last) = found;
    let rewound = Progress {
        rewinds: seen.state.rewinds + 1,
        rewound_to: found,
        ..seen.state.at(life, last, Vec::new())
    };
    if held.transition(seen.generation, rewound).is_ok() {
        tracing::warn!(
            told = told.1.get(),
            found = last.get(),
            "the log has lost events that were shown"
        );
    }
}

/// What has happened to a stream, for those who follow it.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) stream: StreamId,
    pub(crate) life: Life,
    pub(crate) kind: ChangeKind,
}

#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// It was made or moved on, and these were appended; none if only its head is new.
    Written(Vec<Arc<Event>>),
    Removed,
}

/// The streams that somebody tails, and the prefixes that somebody watches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub {
    streams: Slots<StreamId, Progress>,
    /// How often something has moved below each prefix.
    prefixes: Slots<Arc<str>, u64>,
}

impl Hub {
    /// Holds the progress of a stream. From here on no commit is missed.
    pub(crate) fn watch(&self, stream: &StreamId) -> Held<StreamId, Progress> {
        self.streams.hold(stream.clone(), Progress::default())
    }

    /// Holds the count of a prefix. From here on no change is missed.
    pub(crate) fn watch_prefix(&self, prefix: &str) -> Held<Arc<str>, u64> {
        self.prefixes.hold(Arc::from(prefix), 0)
    }

    /// The streams that somebody tails.
    pub(crate) fn watched(&self) -> Vec<StreamId> {
        let streams = self.streams.list();
        streams.into_iter().map(|(stream, _)| stream).collect()
    }

    /// How far the tails of a stream have been told to go, if there are any.
    pub(crate) fn told(&self, stream: &StreamId) -> Option<(Life, Sequence)> {
        self.streams.find(stream).map(|held| held.read().state.place())
    }

    /// Tells everybody who is concerned what has happened.
    pub(crate) fn tell(&self, changes: &[Change]) {
        for change in changes {
            match &change.kind {
                ChangeKind::Written(events) => self.publish(&change.stream, change.life, events),
                ChangeKind::Removed => self.hint(&change.stream, change.life.next(), Sequence::START),
            }
        }
        self.touch(|prefix| changes.iter().any(|change| change.stream.is_below(prefix)));
    }

    /// Tells everybody who is concerned that these streams are there, and how far they are.
    pub(crate) fn tell_restored(&self, streams: &[(StreamId, Life, Sequence)]) {
        for (stream, life, last) in streams {
            self.hint(stream, *life, *last);
        }
        self.touch(|prefix| streams.iter().any(|(stream, ..)| stream.is_below(prefix)));
    }

    /// Tells the tails of a stream how far it is now, if there are any.
    pub(crate) fn hint(&self, stream: &StreamId, life: Life, last: Sequence) {
        if let Some(held) = self.streams.find(stream) {
            hint(&held, life, last);
        }
    }

    /// Tells the tails of a stream, if there are any, that the store has less of it than they were told.
    pub(crate) fn rewind(&self, stream: &StreamId, told: (Life, Sequence), found: (Life, Sequence)) {
        if let Some(held) = self.streams.find(stream) {
            rewind(&held, told, found);
        }
    }

    /// The connection to the store was lost: it may have less than the tails have handed out, or something else in its place.
    pub(crate) fn doubt(&self) {
        for (stream, mut seen) in self.streams.list() {
            let Some(held) = self.streams.find(&stream) else {
                continue;
            };
            loop {
                let doubted = Progress {
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

    /// Tells the tails of a stream what was appended, if there are any.
    pub(crate) fn publish(&self, stream: &StreamId, life: Life, events: &[Arc<Event>]) {
        let Some(last) = events.last().map(|event| event.sequence) else {
            return;
        };
        let Some(held) = self.streams.find(stream) else {
            return;
        };
        let mut seen = held.read();
        // Refused only if somebody else published meanwhile, and then this takes its place after them.
        while (life, last) > seen.state.place() {
            match held.transition(seen.generation, seen.state.with(life, events)) {
                Ok(_) => return,
                Err(stale) => seen = stale.current,
            }
        }
    }

    /// Tells those who watch a prefix that something below it has moved. It costs a glance if nobody does.
    pub(crate) fn touch(&self, has_moved: impl Fn(&str) -> bool) {
        for (prefix, mut seen) in self.prefixes.list() {
            if !has_moved(&prefix) {
                continue;
            }
            let Some(held) = self.prefixes.find(&prefix) else {
                continue;
            };
            // Every change counts for itself: whoever was told of an earlier one has looked before this one.
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

    const LIFE: Life = Life::from_u64(1);

    /// All that the window has after a place.
    fn after(progress: &Progress, place: u64) -> Option<Vec<u64>> {
        let mut places: Vec<u64> = Vec::new();
        while let Some(batch) = progress.after(Sequence::from_u64(places.last().copied().unwrap_or(place))) {
            places.extend(batch.events().iter().map(|event| event.sequence.get()));
        }
        (!places.is_empty()).then_some(places)
    }

    #[test]
    fn the_window_answers_for_what_it_holds_and_for_nothing_else() {
        let progress = Progress::default().with(LIFE, &events(10..=12, 1));
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
        let (first, second) = (Life::from_u64(3), Life::from_u64(4));
        let seen = || {
            let seen = held.read().state;
            (seen.place(), after(&seen, 0))
        };
        let at = |life, last| (life, Sequence::from_u64(last));
        hub.publish(&stream, first, &events(1..=5, 1));
        assert_eq!(seen(), (at(first, 5), Some(vec![1, 2, 3, 4, 5])));
        let removed = |life| Change {
            stream: stream.clone(),
            life,
            kind: ChangeKind::Removed,
        };
        hub.tell(&[removed(first)]);
        assert_eq!(seen(), (at(second, 0), None));
        hub.publish(&stream, first, &events(6..=6, 1));
        assert_eq!(seen(), (at(second, 0), None));
        hub.publish(&stream, second, &events(1..=2, 1));
        assert_eq!(seen(), (at(second, 2), Some(vec![1, 2])));
        hub.tell(&[removed(first)]);
        hub.hint(&stream, first, Sequence::from_u64(9));
        assert_eq!(seen(), (at(second, 2), Some(vec![1, 2])));
        // Events that would join those of the life before do not.
        hub.publish(&stream, Life::from_u64(9), &events(3..=3, 1));
        assert_eq!(after(&held.read().state, 2), Some(vec![3]));
        assert_eq!(seen(), (at(Life::from_u64(9), 3), None));
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
                life: LIFE,
                kind: ChangeKind::Written(Vec::new()),
            };
            hub.tell(&[written]);
            assert_eq!(
                counts.each_ref().map(|count| *count.read().state),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn the_window_is_bounded_in_batches_and_bytes() {
        let mut many = Progress::default();
        for place in 1..=1000 {
            many = many.with(LIFE, &events(place..=place, 1));
        }
        assert_eq!((many.recent.len(), many.last.get()), (WINDOW_BATCHES, 1000));
        let together = Progress::default().with(LIFE, &events(1..=1000, 1));
        assert_eq!(
            (together.recent.len(), after(&together, 0).unwrap().len()),
            (1, 1000)
        );
        let large = Progress::default().with(LIFE, &events(1..=10, WINDOW_BYTES / 3 - 1024));
        assert_eq!(after(&large, 7), Some(vec![8, 9, 10]));
        assert_eq!(after(&large, 6), None);
        let huge = Progress::default().with(LIFE, &events(1..=1, WINDOW_BYTES + 1));
        assert_eq!((huge.recent.len(), huge.last.get()), (0, 1));
    }
}
