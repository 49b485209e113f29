//! Retention: what is dropped, and who is told.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use eventlog::{Commit, RetentionPolicy, Sequence, TailItem, Trimmed, Version, Write};
use kernel::CancellationToken;

use crate::{
    engines::{Engine, on_every_engine},
    support::{contents, event, put, stream, write},
};

on_every_engine!(
    the_oldest_events_go_until_the_rest_fits,
    events_go_when_they_are_too_old,
    only_streams_of_the_kind_are_trimmed,
    long_streams_are_trimmed_whole,
    a_tail_behind_the_first_event_is_told_to_resync,
    a_trimmed_stream_goes_on,
    what_a_dropped_event_referred_to_is_collected,
);

fn bytes(max: u64) -> RetentionPolicy {
    RetentionPolicy {
        max_bytes_per_stream: Some(max),
        ..RetentionPolicy::default()
    }
}

fn trimmed(name: &str, events: u64, first: u64) -> (eventlog::StreamId, Trimmed) {
    let first = Sequence::from_u64(first);
    (stream(name), Trimmed { events, first })
}

async fn the_oldest_events_go_until_the_rest_fits(engine: Engine) {
    let make = Commit::all(vec![
        write("a", Version::NONE, "x", &["11", "22", "33", "4"]),
        write("b", Version::NONE, "x", &["1", "2"]),
        write("c", Version::NONE, "x", &[]),
    ]);
    engine.log.commit(make).await.unwrap();
    for (policy, expected, left) in [
        (RetentionPolicy::default(), vec![], 4),
        (bytes(7), vec![], 4),
        (bytes(6), vec![trimmed("a", 1, 2)], 3),
        (bytes(4), vec![trimmed("a", 1, 3)], 2),
        (bytes(2), vec![trimmed("a", 1, 4)], 1),
        (bytes(1), vec![trimmed("b", 1, 2)], 1),
        (bytes(0), vec![trimmed("a", 1, 5), trimmed("b", 1, 3)], 0),
        (bytes(0), vec![], 0),
    ] {
        assert_eq!(
            engine.log.trim("job", policy).await.unwrap(),
            expected,
            "{policy:?}"
        );
        assert_eq!(contents(&engine.other, "a").await.len(), left, "{policy:?}");
    }
    let page = engine.log.read(&stream("a"), Sequence::START, 10).await.unwrap();
    assert_eq!((page.first.get(), page.last.get()), (5, 4));
    assert_eq!(engine.log.sizes().await.unwrap().events, 0);
}

async fn events_go_when_they_are_too_old(engine: Engine) {
    let age = |max_age| RetentionPolicy {
        max_age: Some(max_age),
        ..RetentionPolicy::default()
    };
    engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &["1", "2"])))
        .await
        .unwrap();
    let hour = Duration::from_secs(60 * 60);
    assert_eq!(engine.log.trim("job", age(hour)).await.unwrap(), []);
    // Times are in milliseconds: wait until the clock shows another one.
    let start = SystemTime::now();
    while start.elapsed().unwrap_or_default() < Duration::from_millis(5) {
        std::hint::spin_loop();
    }
    let expected = [trimmed("s", 2, 3)];
    assert_eq!(
        engine.log.trim("job", age(Duration::ZERO)).await.unwrap(),
        expected
    );
}

async fn only_streams_of_the_kind_are_trimmed(engine: Engine) {
    let mut other = write("plan/1", Version::NONE, "x", &["kept"]);
    other.head.as_mut().unwrap().kind = Arc::from("plan");
    let both = vec![write("job/1", Version::NONE, "x", &["dropped"]), other];
    engine.log.commit(Commit::all(both)).await.unwrap();
    let expected = [trimmed("job/1", 1, 2)];
    assert_eq!(engine.log.trim("job", bytes(0)).await.unwrap(), expected);
    assert_eq!(contents(&engine.log, "plan/1").await, [(1, "kept".to_owned())]);
}

async fn long_streams_are_trimmed_whole(engine: Engine) {
    let mut version = Version::NONE;
    for _ in 0..3 {
        let many = Write {
            events: vec![event("0123456789"); 1000],
            ..write("s", version, "x", &[])
        };
        version = engine.log.commit(Commit::one(many)).await.unwrap()[0].version;
    }
    let expected = [trimmed("s", 2995, 2996)];
    assert_eq!(engine.log.trim("job", bytes(59)).await.unwrap(), expected);
    let left: Vec<_> = contents(&engine.log, "s").await.iter().map(|row| row.0).collect();
    assert_eq!(left, [2996, 2997, 2998, 2999, 3000]);
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}

async fn a_tail_behind_the_first_event_is_told_to_resync(engine: Engine) {
    let token = CancellationToken::new();
    engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &["1", "2", "3", "4"])))
        .await
        .unwrap();
    engine.log.trim("job", bytes(2)).await.unwrap();
    for (after, resync) in [(0, true), (1, true), (2, false)] {
        let after = Sequence::from_u64(after);
        let mut tail = engine.other.tail(&stream("s"), after, &token.scope());
        if resync {
            let expected = TailItem::Resync {
                after: Sequence::from_u64(2),
            };
            assert_eq!(tail.next().await.unwrap(), expected);
        }
        for expected in [3, 4] {
            let item = tail.next().await.unwrap();
            assert!(
                matches!(&item, TailItem::Event(event) if event.sequence.get() == expected),
                "{item:?}"
            );
        }
    }
}

async fn a_trimmed_stream_goes_on(engine: Engine) {
    let made = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &["1", "2"])))
        .await
        .unwrap()[0];
    engine.log.trim("job", bytes(0)).await.unwrap();
    // Dropping events is not a change of the state: the version is as it was.
    engine
        .other
        .commit(Commit::one(write("s", made.version, "y", &["3"])))
        .await
        .unwrap();
    assert_eq!(contents(&engine.log, "s").await, [(3, "3".to_owned())]);
}

async fn what_a_dropped_event_referred_to_is_collected(engine: Engine) {
    let (dropped, kept) = (
        put(&engine.log, b"dropped").await,
        put(&engine.log, b"kept").await,
    );
    let mut both = write("s", Version::NONE, "x", &["1", "2"]);
    both.events[0].blobs = vec![dropped];
    both.events[1].blobs = vec![kept];
    engine.log.commit(Commit::one(both)).await.unwrap();
    engine.let_pins_expire();
    engine.log.trim("job", bytes(1)).await.unwrap();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 1);
    assert_eq!(engine.log.blob_info(dropped).await.unwrap(), None);
    assert!(engine.log.blob_info(kept).await.unwrap().is_some());
}
