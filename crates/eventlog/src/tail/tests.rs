//! A tail whose store loses, replaces and recreates events behind its back.

use kernel::{CancellationToken, SystemClock};
use tempfile::TempDir;

use super::*;
use crate::{
    commit::{Commit, Head, NewEvent, Write},
    hub::Hub,
    names::Version,
    sqlite::{Sqlite, SqliteOptions},
};

/// A log with tails that don't hear of its commits, as if another machine made them and its hints were still
/// to come.
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

    /// The newest position that the tails were told, as numbers.
    fn told(&self) -> Option<(u64, u64)> {
        let told = self.hub.told(&stream());
        told.map(|(incarnation, last)| (incarnation.get(), last.get()))
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

/// A tail that was told of events that are gone waits for others, and doesn't keep asking the store.
#[tokio::test]
async fn a_tail_that_was_told_of_a_stream_that_is_gone_waits() {
    let deaf = Deaf::open();
    let first = deaf.make(3).await;
    deaf.remove(first).await;
    let mut tail = deaf.tail();
    let incarnation = |version: Version| Incarnation::from_u64(version.get());
    deaf.hub
        .hint(&stream(), incarnation(first), Sequence::from_u64(3));
    let reading = tokio::spawn(async move { expect(&mut tail, 1..=2).await });
    let progress = deaf.hub.watch(&stream());
    let gone = (incarnation(first).next(), Sequence::START);
    let told = progress.wait_until(
        move |progress| progress.place() == gone,
        Deadline::after(&SystemClock::shared(), std::time::Duration::from_secs(30)),
        &deaf.token.scope(),
    );
    told.await.unwrap();
    let second = deaf.make(2).await;
    deaf.hub
        .hint(&stream(), incarnation(second), Sequence::from_u64(2));
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

/// A server that crashed has less than it had shown: the events before a tail's position are gone.
#[tokio::test]
async fn a_tail_whose_place_was_lost_resyncs_and_goes_on() {
    let deaf = Deaf::open();
    let mut version = deaf.make(3).await;
    let incarnation = Incarnation::from_u64(version.get());
    let (mut ahead, mut behind) = (deaf.tail(), deaf.tail());
    expect(&mut ahead, 1..=3).await;
    expect(&mut behind, 1..=3).await;
    deaf.hub.publish(&stream(), incarnation, &lost_events(4..=6));
    expect(&mut ahead, 4..=6).await;
    let waiting = tokio::spawn(async move { (ahead.next().await.unwrap(), ahead) });
    // Like the listener when it looks.
    let at = |last| (incarnation, Sequence::from_u64(last));
    deaf.hub.rewind(&stream(), at(6), at(3));
    let (item, mut ahead) = waiting.await.unwrap();
    assert_eq!(item, resync(3));
    version = deaf.append(version).await;
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(4));
    expect(&mut ahead, 4..=4).await;
    // It had seen none of the lost events, and gets what replaced them.
    let TailItem::Event(fourth) = behind.next().await.unwrap() else {
        panic!("no event")
    };
    assert_eq!((fourth.sequence.get(), &*fourth.body), (4, &b""[..]));
    // Two rewinds before it looks again: its position may have been in either.
    for _ in 0..2 {
        deaf.hub.publish(&stream(), incarnation, &lost_events(5..=7));
        deaf.hub.rewind(&stream(), at(7), at(4));
    }
    assert_eq!(behind.next().await.unwrap(), resync(4));
    assert_eq!(ahead.next().await.unwrap(), resync(4));
    deaf.append(version).await;
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(5));
    expect(&mut behind, 5..=5).await;
    expect(&mut ahead, 5..=5).await;
}

/// Other writers filled the gap before anyone looked, so sequence numbers alone show nothing.
#[tokio::test]
async fn a_tail_looks_back_when_others_may_have_written_in_the_place_of_what_was_lost() {
    let deaf = Deaf::open();
    let mut version = deaf.make(3).await;
    let incarnation = Incarnation::from_u64(version.get());
    let (mut ahead, mut behind, mut beyond) = (deaf.tail(), deaf.tail(), deaf.tail());
    expect(&mut ahead, 1..=3).await;
    expect(&mut behind, 1..=3).await;
    expect(&mut beyond, 1..=3).await;
    deaf.hub.publish(&stream(), incarnation, &lost_events(4..=5));
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
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(7));
    for tail in [&mut ahead, &mut behind, &mut beyond] {
        expect(tail, 7..=7).await;
    }
}

/// The starting position of a tail can be lost just like the events it has delivered.
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
    // As if another writer had replaced it.
    tail.handed_out[0] -= 1;
    deaf.hub.doubt();
    assert_eq!(tail.next().await.unwrap(), resync(2));
    expect(&mut tail, 3..=3).await;
}

/// A tail finds out by itself that the store has less than all tails were told, and doesn't keep asking.
#[tokio::test]
async fn a_tail_that_was_told_of_lost_events_waits_for_others() {
    let deaf = Deaf::open();
    let version = deaf.make(3).await;
    let incarnation = Incarnation::from_u64(version.get());
    let mut tail = deaf.tail();
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(6));
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
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(4));
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
    let incarnation = deaf
        .told()
        .map(|(incarnation, _)| Incarnation::from_u64(incarnation))
        .unwrap();
    deaf.append(Version::from_u64(incarnation.get())).await;
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(4));
    expect(&mut tail, 4..=4).await;
}

/// An event that a reader has seen was lost, and another one has its number when the reader comes back.
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
    // Others have read what comes next, so it is in the window.
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

/// Other writers filled the gap, and a tail reads on before it was told to look back.
#[tokio::test]
async fn a_tail_that_reads_on_after_another_event_looks_back() {
    let deaf = Deaf::open();
    let version = deaf.make(3).await;
    let incarnation = Incarnation::from_u64(version.get());
    let mut tail = deaf.tail();
    expect(&mut tail, 1..=3).await;
    // As if another writer had replaced it.
    *tail.handed_out.back_mut().unwrap() -= 1;
    deaf.append(version).await;
    deaf.hub.hint(&stream(), incarnation, Sequence::from_u64(4));
    assert_eq!(tail.next().await.unwrap(), resync(2));
    expect(&mut tail, 3..=4).await;
}
