//! Dropping the beginning of one stream, by somebody who has seen what it is.

use eventlog::{Commit, CommitError, Sequence, TailItem, Version, Write};
use kernel::CancellationToken;

use crate::{
    engines::{Engine, on_every_engine},
    support::{contents, event, put, stream, write},
};

on_every_engine!(
    events_go_up_to_the_place,
    who_has_not_seen_the_stream_as_it_is_drops_nothing,
    a_long_stream_is_dropped_whole,
    a_reader_that_is_behind_is_told,
    what_the_dropped_events_referred_to_is_collected,
);

async fn drop_up_to(engine: &Engine, up_to: u64, seen: Version) -> Result<u64, CommitError> {
    let up_to = Sequence::from_u64(up_to);
    engine.log.drop_events(&stream("s"), up_to, seen).await
}

async fn events_go_up_to_the_place(engine: Engine) {
    let make = Commit::all(vec![
        write("s", Version::NONE, "x", &["1", "2", "3", "4"]),
        write("t", Version::NONE, "x", &["1", "2"]),
    ]);
    let seen = engine.log.commit(make).await.unwrap()[0].version;
    for (up_to, dropped, left) in [
        (0, 0, vec![1, 2, 3, 4]),
        (1, 1, vec![2, 3, 4]),
        (1, 0, vec![2, 3, 4]),
        (3, 2, vec![4]),
        (9, 1, vec![]),
        (9, 0, vec![]),
    ] {
        assert_eq!(
            drop_up_to(&engine, up_to, seen).await.unwrap(),
            dropped,
            "{up_to}"
        );
        let places: Vec<_> = contents(&engine.other, "s")
            .await
            .iter()
            .map(|row| row.0)
            .collect();
        assert_eq!(places, left, "{up_to}");
    }
    assert_eq!(contents(&engine.log, "t").await.len(), 2);
    // The state is as it was, and so is the version; the next event has the next place.
    let head = engine.log.head(&stream("s")).await.unwrap().unwrap();
    assert_eq!((head.version, head.last_sequence.get()), (seen, 4));
    let more = Commit::one(write("s", seen, "y", &["5"]));
    engine.other.commit(more).await.unwrap();
    assert_eq!(contents(&engine.log, "s").await, [(5, "5".to_owned())]);
    let page = engine.log.read(&stream("s"), Sequence::START, 10).await.unwrap();
    assert_eq!((page.first.get(), page.last.get()), (5, 5));
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}

async fn who_has_not_seen_the_stream_as_it_is_drops_nothing(engine: Engine) {
    assert_eq!(drop_up_to(&engine, 9, Version::NONE).await.unwrap(), 0);
    let make = Commit::one(write("s", Version::NONE, "x", &["1", "2"]));
    let first = engine.log.commit(make).await.unwrap()[0].version;
    let moved = Commit::one(write("s", first, "y", &[]));
    let second = engine.log.commit(moved).await.unwrap()[0].version;
    for seen in [Version::NONE, first, Version::from_u64(second.get() + 1)] {
        let refused = drop_up_to(&engine, 2, seen).await.unwrap_err();
        let CommitError::Conflict {
            stream: of,
            actual: Some(actual),
        } = refused
        else {
            panic!("{refused:?}")
        };
        assert_eq!((of, actual.version), (stream("s"), second));
    }
    assert_eq!(contents(&engine.log, "s").await.len(), 2);
    engine.log.remove(vec![(stream("s"), second)]).await.unwrap();
    let gone = drop_up_to(&engine, 2, second).await.unwrap_err();
    assert!(
        matches!(gone, CommitError::Conflict { actual: None, .. }),
        "{gone:?}"
    );
}

async fn a_long_stream_is_dropped_whole(engine: Engine) {
    let mut seen = Version::NONE;
    for _ in 0..5 {
        let many = Write {
            events: vec![event("0123456789"); 1000],
            ..write("s", seen, "x", &[])
        };
        seen = engine.log.commit(Commit::one(many)).await.unwrap()[0].version;
    }
    assert_eq!(drop_up_to(&engine, 4999, seen).await.unwrap(), 4999);
    assert_eq!(
        contents(&engine.log, "s").await,
        [(5000, "0123456789".to_owned())]
    );
    assert_eq!(engine.log.sizes().await.unwrap().events, 1);
}

async fn a_reader_that_is_behind_is_told(engine: Engine) {
    let token = CancellationToken::new();
    let make = Commit::one(write("s", Version::NONE, "x", &["1", "2", "3", "4"]));
    let seen = engine.log.commit(make).await.unwrap()[0].version;
    assert_eq!(drop_up_to(&engine, 3, seen).await.unwrap(), 3);
    // Earlier ones may have been handed the events before they were dropped, and would have missed nothing.
    let tail = |after| {
        engine
            .other
            .tail(&stream("s"), Sequence::from_u64(after), &token.scope())
    };
    let (mut behind, mut ahead) = (tail(1), tail(3));
    let resync = TailItem::Resync {
        after: Sequence::from_u64(3),
    };
    assert_eq!(behind.next().await.unwrap(), resync);
    for tail in [&mut behind, &mut ahead] {
        let item = tail.next().await.unwrap();
        assert!(
            matches!(&item, TailItem::Event(event) if event.sequence.get() == 4),
            "{item:?}"
        );
    }
}

async fn what_the_dropped_events_referred_to_is_collected(engine: Engine) {
    let (dropped, kept) = (
        put(&engine.log, b"dropped").await,
        put(&engine.log, b"kept").await,
    );
    let mut both = write("s", Version::NONE, "x", &["1", "2"]);
    both.events[0].blobs = vec![dropped];
    both.events[1].blobs = vec![kept];
    let seen = engine.log.commit(Commit::one(both)).await.unwrap()[0].version;
    engine.let_pins_expire();
    assert_eq!(drop_up_to(&engine, 1, seen).await.unwrap(), 1);
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 1);
    assert_eq!(engine.log.blob_info(dropped).await.unwrap(), None);
    assert!(engine.log.blob_info(kept).await.unwrap().is_some());
}
