//! A stream as it grows: replay, then live, without a gap and without a repeat.

use std::{collections::VecDeque, sync::Arc};

use kernel::{Cause, Deadline, Held, Scope};

use crate::{
    batch::{Batch, EventBatch},
    bookmark::Bookmark,
    commit::Event,
    error::LogError,
    hub::{self, Progress},
    names::{Life, Sequence, StreamId},
    store::{Page, Store},
};

/// How many events a tail reads from the store at a time: enough to be fast, few enough to be cheap to hold.
const PAGE_EVENTS: u32 = 256;

/// Of how many events a tail remembers when they were written: more than a server loses in a crash.
const REMEMBERED_EVENTS: usize = 256;

/// What a tail yields.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TailItem {
    /// The next event.
    Event(Arc<Event>),
    /// The reader's place is not in the stream any more: the events up to here were dropped before they could be read; or
    /// the stream was removed, and this is the start; or a database server lost in a crash what it had shown of relaxed commits,
    /// and what comes after this place is something else or nothing yet. A reader that comes back to an event that is another one
    /// by now starts over. The next item is the event after it; after a removal it
    /// comes when there is a stream of that name again.
    Resync {
        /// The tail goes on after this place.
        after: Sequence,
    },
}

/// What a tail yields to whoever takes events as they come together.
#[derive(Clone, Debug)]
pub enum TailBatch {
    /// The next events.
    Events(EventBatch),
    /// As [`TailItem::Resync`].
    Resync {
        /// The tail goes on after this place.
        after: Sequence,
    },
}

/// A tail ended.
#[derive(Debug, thiserror::Error)]
pub enum TailEnd {
    /// The reader's scope was cancelled.
    #[error("the tail was cancelled by {0}")]
    Cancelled(Arc<Cause>),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Whether a tail has reached the end of what was there when it began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The store may have events that the progress of the stream does not speak of.
    Replaying,
    /// Whatever comes after the tail's place moves the progress, so there is no need to ask the store before.
    Live,
}

/// A reader of one stream.
#[derive(Debug)]
pub struct Tail {
    store: Arc<dyn Store>,
    stream: StreamId,
    progress: Held<StreamId, Progress>,
    /// The stream that the place is in, once it is known: there may be none yet.
    life: Life,
    /// The last event that was handed out, or the place it was to start after.
    place: Sequence,
    /// What the reader says is at the place that it starts after, until the store was asked.
    start: Option<Bookmark>,
    /// How many losses of the store the place has been through.
    rewinds: u64,
    /// How many doubts about the store it has looked into.
    doubts: u64,
    /// When the last events up to the place were written, once that is known. One that took the place of another was written
    /// later.
    handed_out: VecDeque<i64>,
    /// Events that are read and not handed out yet; at most a page of them.
    ready: VecDeque<EventBatch>,
    phase: Phase,
    scope: Scope,
}

impl Tail {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        stream: StreamId,
        progress: Held<StreamId, Progress>,
        after: Bookmark,
        scope: Scope,
    ) -> Self {
        let seen = progress.read().state;
        Self {
            store,
            stream,
            progress,
            life: Life::NONE,
            place: after.sequence,
            start: after.at_ms.map(|_| after),
            rewinds: seen.rewinds,
            doubts: seen.doubts,
            handed_out: VecDeque::new(),
            ready: VecDeque::new(),
            phase: Phase::Replaying,
            scope,
        }
    }

    /// The next item; waits for one if need be. *Cancel safety*: dropped half-way, nothing is skipped.
    pub async fn next(&mut self) -> Result<TailItem, TailEnd> {
        let batch = match self.find_batch().await? {
            TailBatch::Events(batch) => batch,
            TailBatch::Resync { after } => return Ok(TailItem::Resync { after }),
        };
        let (event, rest) = batch.split_first();
        self.hand_out(std::slice::from_ref(&event));
        rest.into_iter().for_each(|rest| self.ready.push_front(rest));
        Ok(TailItem::Event(event))
    }

    /// Like [`next`](Self::next), and hands out what came together, as far as that is not too much.
    pub async fn next_batch(&mut self) -> Result<TailBatch, TailEnd> {
        let found = self.find_batch().await?;
        if let TailBatch::Events(batch) = &found {
            self.hand_out(batch.events());
        }
        Ok(found)
    }

    fn hand_out(&mut self, events: &[Arc<Event>]) {
        self.place = events.last().map_or(self.place, |event| event.sequence);
        let newest = &events[events.len().saturating_sub(REMEMBERED_EVENTS)..];
        let room = REMEMBERED_EVENTS - newest.len();
        self.handed_out
            .drain(..self.handed_out.len().saturating_sub(room));
        self.handed_out.extend(newest.iter().map(|event| event.at_ms));
    }

    /// Goes to another place than after what was handed out.
    fn go_to(&mut self, place: Sequence) {
        self.place = place;
        self.start = None;
        self.handed_out.clear();
    }

    /// What comes next. It is not handed out yet.
    async fn find_batch(&mut self) -> Result<TailBatch, TailEnd> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(TailBatch::Events(batch));
            }
            let seen = self.progress.read().state;
            if self.rewinds != seen.rewinds {
                if let Some(after) = self.rewound(&seen) {
                    return Ok(TailBatch::Resync { after });
                }
                continue;
            }
            if self.life != Life::NONE && self.life < seen.life {
                if let Some(after) = self.start_over() {
                    return Ok(TailBatch::Resync { after });
                }
                continue;
            }
            if self.doubts != seen.doubts {
                self.look_back(&seen).await?;
                continue;
            }
            let is_window_ours = self.start.is_none() && (self.life == Life::NONE || self.life == seen.life);
            if let Some(batch) = is_window_ours.then(|| seen.after(self.place)).flatten() {
                self.life = batch.life();
                self.ready.push_back(batch);
                continue;
            }
            if self.phase == Phase::Live && seen.last <= self.place {
                self.moved().await?;
                continue;
            }
            let page = self.read().await?;
            if let Some(after) = self.take(&seen, page) {
                return Ok(TailBatch::Resync { after });
            }
        }
    }

    /// The next page, with the event before it: that may be lost, and something else may be in its place, before anybody has
    /// told the tail to look back.
    async fn read(&self) -> Result<Page, LogError> {
        let (after, limit) = match self.place.get().checked_sub(1) {
            Some(before) => (Sequence::from_u64(before), PAGE_EVENTS + 1),
            None => (self.place, PAGE_EVENTS),
        };
        self.store.read(&self.stream, after, limit).await
    }

    /// Looks whether the store still has what was handed out. If not, all tails are told how far it is the same.
    async fn look_back(&mut self, seen: &Progress) -> Result<(), TailEnd> {
        let count = self.handed_out.len();
        if count == 0 {
            self.doubts = seen.doubts;
            return Ok(());
        }
        let before = self.place.get().saturating_sub(count as u64);
        let limit = u32::try_from(count).unwrap_or(u32::MAX);
        let page = self
            .store
            .read(&self.stream, Sequence::from_u64(before), limit)
            .await?;
        if page.life == self.life {
            let written = |sequence: Sequence| {
                let index = usize::try_from(sequence.get().checked_sub(before + 1)?).ok()?;
                self.handed_out.get(index)
            };
            let is_other = |event: &&Event| written(event.sequence).is_some_and(|at| *at != event.at_ms);
            let other = page.events.iter().find(is_other).map(|event| event.sequence);
            let same = other.map(|other| Sequence::from_u64(other.get() - 1));
            if let Some(same) = same.or((page.last < self.place).then_some(page.last)) {
                hub::rewind(&self.progress, seen.place(), (page.life, same));
                hub::hint(&self.progress, page.life, page.last);
                return Ok(());
            }
        }
        self.doubts = seen.doubts;
        Ok(())
    }

    /// Takes over what the store has, after the progress was seen like this.
    fn take(&mut self, seen: &Progress, page: Page) -> Option<Sequence> {
        // What the store says about which stream there is counts for all tails, and they may not have heard it.
        if page.life > seen.life {
            hub::hint(&self.progress, page.life, page.last);
        } else if page.life == Life::NONE && seen.last > Sequence::START {
            hub::hint(&self.progress, seen.life.next(), Sequence::START);
        } else if page.life != Life::NONE && (page.life, page.last) < seen.place() {
            hub::rewind(&self.progress, seen.place(), (page.life, page.last));
            return None;
        }
        let is_gone = page.life == Life::NONE && self.place > Sequence::START;
        if is_gone || (self.life != Life::NONE && self.life != page.life) {
            return self.start_over();
        }
        self.life = page.life;
        if page.last < self.place {
            self.go_to(page.last);
            return Some(self.place);
        }
        if page.first > self.place.next() {
            self.go_to(Sequence::from_u64(page.first.get() - 1));
            return Some(self.place);
        }
        let mut events: Vec<_> = page.events.into_iter().map(Arc::new).collect();
        let known = events.extract_if(.., |event| event.sequence == self.place).last();
        let start = self.start.take();
        if let Some(known) = known {
            if start.is_some_and(|start| start.is_replaced_by(&known)) {
                // Nobody knows how far the reader has what is there, so it starts over.
                self.go_to(Sequence::from_u64(page.first.get().saturating_sub(1)));
                return Some(self.place);
            }
            match self.handed_out.back() {
                Some(at_ms) if *at_ms != known.at_ms => {
                    // Looking back finds out how far it is the same, and tells all tails.
                    self.doubts = seen.doubts.wrapping_sub(1);
                    return None;
                }
                Some(_) => {}
                None => self.handed_out.push_back(known.at_ms),
            }
        }
        if events.is_empty() {
            self.phase = Phase::Live;
        }
        let batches = Batch::split(self.life, &events).into_iter();
        self.ready
            .extend(batches.filter_map(|batch| EventBatch::after(batch, self.place)));
        None
    }

    /// The store has lost events. Whoever has seen none of them need not be told, unless more than one loss was missed: then
    /// nobody knows.
    fn rewound(&mut self, seen: &Progress) -> Option<Sequence> {
        let is_first_missed = self.rewinds + 1 == seen.rewinds;
        let (life, last) = seen.rewound_to;
        self.rewinds = seen.rewinds;
        if self.life != Life::NONE && self.life != life {
            return self.start_over();
        }
        if self.place <= last && is_first_missed {
            return None;
        }
        self.go_to(self.place.min(last));
        self.phase = Phase::Replaying;
        Some(self.place)
    }

    /// Goes back to the start, since the stream is gone. Whoever has seen nothing of it need not be told.
    fn start_over(&mut self) -> Option<Sequence> {
        let has_seen = self.place > Sequence::START;
        self.go_to(Sequence::START);
        (self.life, self.phase) = (Life::NONE, Phase::Replaying);
        has_seen.then_some(self.place)
    }

    /// Waits until the stream is beyond the tail's place, or gone, or has lost events.
    async fn moved(&self) -> Result<(), TailEnd> {
        let (life, place) = (self.life, self.place);
        let (rewinds, doubts) = (self.rewinds, self.doubts);
        let moved = self.progress.wait_until(
            move |progress| {
                progress.last > place
                    || (life != Life::NONE && progress.life > life)
                    || progress.rewinds != rewinds
                    || progress.doubts != doubts
            },
            Deadline::never(),
            &self.scope,
        );
        match moved.await {
            Err(kernel::WaitError::Cancelled { cause, .. }) => Err(TailEnd::Cancelled(cause)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{CancellationToken, SystemClock};
    use tempfile::TempDir;

    use super::*;
    use crate::{
        commit::{Commit, Head, NewEvent, Write},
        hub::Hub,
        names::Version,
        sqlite::{Sqlite, SqliteOptions},
    };

    /// A log whose commits the tails do not hear of: as if another machine made them, and its hints were still to come.
    struct Deaf {
        store: Arc<Sqlite>,
        hub: Hub,
        token: CancellationToken,
        _directory: TempDir,
    }

    impl Deaf {
        fn open() -> Self {
            let directory = TempDir::new().unwrap();
            let path = directory.path().join("log.sqlite3");
            let store = Sqlite::open(&SqliteOptions { path }, SystemClock::shared(), Default::default());
            Self {
                store: Arc::new(store.unwrap()),
                hub: Hub::default(),
                token: CancellationToken::new(),
                _directory: directory,
            }
        }

        async fn make(&self, events: usize) -> Version {
            self.write(Version::NONE, events).await
        }

        async fn append(&self, expected: Version) -> Version {
            self.write(expected, 1).await
        }

        async fn write(&self, expected: Version, events: usize) -> Version {
            let event = NewEvent {
                kind: Arc::from("output"),
                body: Arc::from(&b""[..]),
                blobs: Vec::new(),
            };
            let write = Write {
                stream: stream(),
                expected,
                head: Some(Head {
                    kind: Arc::from("job"),
                    status: Arc::from("open"),
                    body: Arc::from(&b""[..]),
                    blobs: Vec::new(),
                }),
                events: vec![event; events],
            };
            self.store.commit(Commit::one(write)).await.unwrap()[0].version
        }

        async fn remove(&self, seen: Version) {
            self.store.remove(vec![(stream(), seen)]).await.unwrap();
        }

        fn tail(&self) -> Tail {
            let store = Arc::clone(&self.store) as Arc<dyn Store>;
            let progress = self.hub.watch(&stream());
            let start = Sequence::START.into();
            Tail::new(store, stream(), progress, start, self.token.scope())
        }

        /// How far the tails were told to go, as numbers.
        fn told(&self) -> Option<(u64, u64)> {
            let told = self.hub.told(&stream());
            told.map(|(life, last)| (life.get(), last.get()))
        }
    }

    fn stream() -> StreamId {
        StreamId::new("s").unwrap()
    }

    async fn expect(tail: &mut Tail, events: std::ops::RangeInclusive<u64>) {
        for expected in events {
            let item = tail.next().await.unwrap();
            assert!(
                matches!(&item, TailItem::Event(event) if event.sequence.get() == expected),
                "{item:?} instead of event {expected}"
            );
        }
    }

    const FROM_THE_START: TailItem = TailItem::Resync {
        after: Sequence::START,
    };

    #[tokio::test]
    async fn what_the_store_says_counts_before_anything_is_heard() {
        let deaf = Deaf::open();
        let mut tail = deaf.tail();
        let first = deaf.make(3).await;
        expect(&mut tail, 1..=3).await;
        assert_eq!(
            deaf.told(),
            Some((first.get(), 3)),
            "all tails know which stream it is"
        );
        deaf.remove(first).await;
        let second = deaf.make(5).await;
        assert_eq!(tail.next().await.unwrap(), FROM_THE_START);
        expect(&mut tail, 1..=5).await;
        assert_eq!(deaf.told(), Some((second.get(), 5)));
        deaf.remove(second).await;
        assert_eq!(tail.next().await.unwrap(), FROM_THE_START);
        assert_eq!(deaf.told(), Some((second.get() + 1, 0)));
    }

    /// A tail that was told of events which are gone waits for others, and does not ask the store again and again.
    #[tokio::test]
    async fn a_tail_that_was_told_of_a_stream_that_is_gone_waits() {
        let deaf = Deaf::open();
        let first = deaf.make(3).await;
        deaf.remove(first).await;
        let mut tail = deaf.tail();
        let life = |version: Version| Life::from_u64(version.get());
        deaf.hub.hint(&stream(), life(first), Sequence::from_u64(3));
        let reading = tokio::spawn(async move { expect(&mut tail, 1..=2).await });
        let progress = deaf.hub.watch(&stream());
        let gone = (life(first).next(), Sequence::START);
        let told = progress.wait_until(
            move |progress| progress.place() == gone,
            Deadline::after(&SystemClock::shared(), std::time::Duration::from_secs(30)),
            &deaf.token.scope(),
        );
        told.await.unwrap();
        let second = deaf.make(2).await;
        deaf.hub.hint(&stream(), life(second), Sequence::from_u64(2));
        reading.await.unwrap();
    }

    fn resync(after: u64) -> TailItem {
        let after = Sequence::from_u64(after);
        TailItem::Resync { after }
    }

    fn lost_events(range: std::ops::RangeInclusive<u64>) -> Vec<Arc<Event>> {
        let lost = |sequence| Event {
            sequence: Sequence::from_u64(sequence),
            at_ms: 0,
            kind: Arc::from("output"),
            body: Arc::from(&b"lost"[..]),
        };
        range.map(|sequence| Arc::new(lost(sequence))).collect()
    }

    /// A server that crashed has less than it had shown: what lies behind a tail's place is gone.
    #[tokio::test]
    async fn a_tail_whose_place_was_lost_resyncs_and_goes_on() {
        let deaf = Deaf::open();
        let mut version = deaf.make(3).await;
        let life = Life::from_u64(version.get());
        let (mut ahead, mut behind) = (deaf.tail(), deaf.tail());
        expect(&mut ahead, 1..=3).await;
        expect(&mut behind, 1..=3).await;
        deaf.hub.publish(&stream(), life, &lost_events(4..=6));
        expect(&mut ahead, 4..=6).await;
        let waiting = tokio::spawn(async move { (ahead.next().await.unwrap(), ahead) });
        // As the listener does when it looks.
        let at = |last| (life, Sequence::from_u64(last));
        deaf.hub.rewind(&stream(), at(6), at(3));
        let (item, mut ahead) = waiting.await.unwrap();
        assert_eq!(item, resync(3));
        version = deaf.append(version).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(4));
        expect(&mut ahead, 4..=4).await;
        // It had seen nothing of what was lost, and gets what took its place.
        let TailItem::Event(fourth) = behind.next().await.unwrap() else {
            panic!("no event")
        };
        assert_eq!((fourth.sequence.get(), &*fourth.body), (4, &b""[..]));
        // Two losses before it looks again: its place may have been in either.
        for _ in 0..2 {
            deaf.hub.publish(&stream(), life, &lost_events(5..=7));
            deaf.hub.rewind(&stream(), at(7), at(4));
        }
        assert_eq!(behind.next().await.unwrap(), resync(4));
        assert_eq!(ahead.next().await.unwrap(), resync(4));
        deaf.append(version).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(5));
        expect(&mut behind, 5..=5).await;
        expect(&mut ahead, 5..=5).await;
    }

    /// Others wrote in the place of what was lost before anybody looked: the numbers say nothing.
    #[tokio::test]
    async fn a_tail_looks_back_when_others_may_have_written_in_the_place_of_what_was_lost() {
        let deaf = Deaf::open();
        let mut version = deaf.make(3).await;
        let life = Life::from_u64(version.get());
        let (mut ahead, mut behind, mut beyond) = (deaf.tail(), deaf.tail(), deaf.tail());
        expect(&mut ahead, 1..=3).await;
        expect(&mut behind, 1..=3).await;
        expect(&mut beyond, 1..=3).await;
        deaf.hub.publish(&stream(), life, &lost_events(4..=5));
        expect(&mut ahead, 4..=5).await;
        expect(&mut beyond, 4..=5).await;
        for _ in 4..=6 {
            version = deaf.append(version).await;
        }
        deaf.hub.doubt();
        for tail in [&mut ahead, &mut beyond] {
            assert_eq!(tail.next().await.unwrap(), resync(3));
            expect(tail, 4..=6).await;
        }
        expect(&mut behind, 4..=6).await;
        // Nothing was lost this time.
        deaf.hub.doubt();
        deaf.append(version).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(7));
        for tail in [&mut ahead, &mut behind, &mut beyond] {
            expect(tail, 7..=7).await;
        }
    }

    /// What a tail was to start after is lost as easily as what it has handed out.
    #[tokio::test]
    async fn a_tail_that_has_handed_out_nothing_looks_back_at_its_start() {
        let deaf = Deaf::open();
        deaf.make(3).await;
        let store = Arc::clone(&deaf.store) as Arc<dyn Store>;
        let progress = deaf.hub.watch(&stream());
        let mut tail = Tail::new(
            store,
            stream(),
            progress,
            Sequence::from_u64(3).into(),
            deaf.token.scope(),
        );
        let has_looked = async {
            while deaf.told().is_none_or(|(_, last)| last < 3) {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            item = tail.next() => panic!("{item:?}, and there is nothing"),
            () = has_looked => {}
        }
        // As if it had been written by somebody else since.
        tail.handed_out[0] -= 1;
        deaf.hub.doubt();
        assert_eq!(tail.next().await.unwrap(), resync(2));
        expect(&mut tail, 3..=3).await;
    }

    /// A tail finds out by itself that the store has less than all tails were told, and does not ask again and again.
    #[tokio::test]
    async fn a_tail_that_was_told_of_lost_events_waits_for_others() {
        let deaf = Deaf::open();
        let version = deaf.make(3).await;
        let life = Life::from_u64(version.get());
        let mut tail = deaf.tail();
        deaf.hub.hint(&stream(), life, Sequence::from_u64(6));
        expect(&mut tail, 1..=3).await;
        let reading = tokio::spawn(async move { expect(&mut tail, 4..=4).await });
        let rewound = deaf.hub.watch(&stream());
        let rewound = rewound.wait_until(
            |progress| progress.rewinds == 1 && progress.last == Sequence::from_u64(3),
            Deadline::after(&SystemClock::shared(), std::time::Duration::from_secs(30)),
            &deaf.token.scope(),
        );
        rewound.await.unwrap();
        deaf.append(version).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(4));
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn a_tail_that_begins_beyond_the_stream_goes_back_to_its_end() {
        let deaf = Deaf::open();
        let from = |after| {
            let store = Arc::clone(&deaf.store) as Arc<dyn Store>;
            let progress = deaf.hub.watch(&stream());
            Tail::new(
                store,
                stream(),
                progress,
                Sequence::from_u64(after).into(),
                deaf.token.scope(),
            )
        };
        assert_eq!(from(2).next().await.unwrap(), FROM_THE_START);
        deaf.make(3).await;
        let mut tail = from(7);
        assert_eq!(tail.next().await.unwrap(), resync(3));
        let life = deaf.told().map(|(life, _)| Life::from_u64(life)).unwrap();
        deaf.append(Version::from_u64(life.get())).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(4));
        expect(&mut tail, 4..=4).await;
    }

    /// What a reader has seen was lost, and something else has its number by the time that it comes back.
    #[tokio::test]
    async fn a_tail_that_comes_back_to_another_event_starts_over() {
        let deaf = Deaf::open();
        let version = deaf.make(3).await;
        let Some(TailItem::Event(third)) = ({
            let mut tail = deaf.tail();
            expect(&mut tail, 1..=2).await;
            tail.next().await.ok()
        }) else {
            panic!("no third event");
        };
        deaf.append(version).await;
        // Others have read what comes next, so the window has it.
        let mut ahead = deaf.tail();
        expect(&mut ahead, 1..=4).await;
        let seen = Bookmark::from(&*third);
        let other = Bookmark {
            at_ms: seen.at_ms.map(|at_ms| at_ms - 1),
            ..seen
        };
        for (bookmark, expected) in [(seen, None), (other, Some(FROM_THE_START))] {
            let store = Arc::clone(&deaf.store) as Arc<dyn Store>;
            let progress = deaf.hub.watch(&stream());
            let mut tail = Tail::new(store, stream(), progress, bookmark, deaf.token.scope());
            let next = match &expected {
                Some(resync) => {
                    assert_eq!(tail.next().await.unwrap(), *resync);
                    1
                }
                None => 4,
            };
            expect(&mut tail, next..=4).await;
        }
    }

    /// Others wrote in the place of what was lost, and a tail reads on before anybody has told it to look back.
    #[tokio::test]
    async fn a_tail_that_reads_on_after_another_event_looks_back() {
        let deaf = Deaf::open();
        let version = deaf.make(3).await;
        let life = Life::from_u64(version.get());
        let mut tail = deaf.tail();
        expect(&mut tail, 1..=3).await;
        // As if it had been written by somebody else since.
        *tail.handed_out.back_mut().unwrap() -= 1;
        deaf.append(version).await;
        deaf.hub.hint(&stream(), life, Sequence::from_u64(4));
        assert_eq!(tail.next().await.unwrap(), resync(2));
        expect(&mut tail, 3..=4).await;
    }
}
