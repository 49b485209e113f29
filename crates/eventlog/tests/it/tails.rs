//! Tails: replay, then live, no gap, no repeat.

use std::time::Duration;

use eventlog::{Commit, Log, Sequence, TailBatch, TailItem, Version, Write};
use kernel::{CancellationToken, Cause};
use tempfile::TempDir;

use crate::{
    engines::{Engine, on_every_engine, sqlite_in_real_time},
    support::{event, stream, write},
};

on_every_engine!(
    a_tail_replays_and_goes_on_live,
    a_tail_may_come_before_its_stream,
    a_tail_starts_after_any_place,
    a_cancelled_tail_ends,
    events_that_came_together_are_handed_out_together,
    many_writers_and_tails_that_come_and_go_see_the_same,
);

async fn next(tail: &mut eventlog::Tail) -> u64 {
    let item = tokio::time::timeout(Duration::from_secs(20), tail.next())
        .await
        .unwrap()
        .unwrap();
    let TailItem::Event(event) = item else {
        panic!("{item:?}")
    };
    event.sequence.get()
}

/// Appends one event, whatever the version of the stream is.
async fn append(log: &Log, name: &str) {
    loop {
        let expected = log
            .head(&stream(name))
            .await
            .unwrap()
            .map_or(Version::NONE, |head| head.version);
        if log
            .commit(Commit::one(write(name, expected, "x", &["event"])))
            .await
            .is_ok()
        {
            return;
        }
    }
}

/// The places of the next batch.
async fn batch(tail: &mut eventlog::Tail) -> Vec<u64> {
    let batch = tokio::time::timeout(Duration::from_secs(20), tail.next_batch()).await;
    let TailBatch::Events(batch) = batch.unwrap().unwrap() else {
        panic!("no events")
    };
    batch.events().iter().map(|event| event.sequence.get()).collect()
}

async fn events_that_came_together_are_handed_out_together(engine: Engine) {
    let token = CancellationToken::new();
    let three = Commit::one(write("s", Version::NONE, "x", &["1", "2", "3"]));
    let made = engine.log.commit(three).await.unwrap()[0].version;
    let tail = |after| {
        engine
            .log
            .tail(&stream("s"), Sequence::from_u64(after), &token.scope())
    };
    let (mut first, mut second, mut third) = (tail(0), tail(1), tail(2));
    assert_eq!(batch(&mut first).await, [1, 2, 3]);
    assert_eq!(batch(&mut second).await, [2, 3]);
    let two = Commit::one(write("s", made, "x", &["4", "5"]));
    engine.log.commit(two).await.unwrap();
    assert_eq!(batch(&mut first).await, [4, 5]);
    // One by one and together may be mixed.
    assert_eq!(next(&mut second).await, 4);
    assert_eq!(batch(&mut second).await, [5]);
    let mut all = vec![next(&mut third).await];
    while all.last() != Some(&5) {
        all.extend(batch(&mut third).await);
    }
    assert_eq!(all, [3, 4, 5]);
}

async fn a_tail_replays_and_goes_on_live(engine: Engine) {
    let token = CancellationToken::new();
    append(&engine.log, "s").await;
    append(&engine.log, "s").await;
    let mut tail = engine.log.tail(&stream("s"), Sequence::START, &token.scope());
    assert_eq!((next(&mut tail).await, next(&mut tail).await), (1, 2));
    let writing = engine.other.clone();
    let writer = tokio::spawn(async move { append(&writing, "s").await });
    assert_eq!(next(&mut tail).await, 3);
    writer.await.unwrap();
}

async fn a_tail_may_come_before_its_stream(engine: Engine) {
    let token = CancellationToken::new();
    let mut tail = engine.log.tail(&stream("s"), Sequence::START, &token.scope());
    let reader = tokio::spawn(async move { next(&mut tail).await });
    append(&engine.other, "s").await;
    assert_eq!(reader.await.unwrap(), 1);
}

async fn a_tail_starts_after_any_place(engine: Engine) {
    let token = CancellationToken::new();
    for _ in 0..5 {
        append(&engine.log, "s").await;
    }
    let mut tail = engine
        .log
        .tail(&stream("s"), Sequence::from_u64(3), &token.scope());
    assert_eq!((next(&mut tail).await, next(&mut tail).await), (4, 5));
}

async fn a_cancelled_tail_ends(engine: Engine) {
    let token = CancellationToken::new();
    let mut tail = engine.log.tail(&stream("s"), Sequence::START, &token.scope());
    let reader = tokio::spawn(async move { tail.next().await });
    token.cancel(Cause::new("reader", "went away"));
    let end = reader.await.unwrap().unwrap_err();
    assert_eq!(end.to_string(), "the tail was cancelled by reader: went away");
}

/// 64 writers of one stream, and 200 tails that join and leave: each tail sees 1, 2, 3 and so on.
async fn many_writers_and_tails_that_come_and_go_see_the_same(engine: Engine) {
    const WRITERS: u64 = 64;
    const EACH: u64 = 5;
    const TAILS: u64 = 200;
    let token = CancellationToken::new();
    let readers: Vec<_> = (0..TAILS)
        .map(|index| {
            let log = if index % 2 == 0 {
                engine.log.clone()
            } else {
                engine.other.clone()
            };
            let scope = token.scope();
            tokio::spawn(async move {
                // Each tail leaves now and then, and joins again where it was.
                let (mut place, leave_after) = (0, 7 + index % 50);
                while place < WRITERS * EACH {
                    let mut tail = log.tail(&stream("s"), Sequence::from_u64(place), &scope);
                    for _ in 0..leave_after.min(WRITERS * EACH - place) {
                        let sequence = next(&mut tail).await;
                        assert_eq!(sequence, place + 1);
                        place = sequence;
                    }
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..WRITERS)
        .map(|index| {
            let log = if index % 2 == 0 {
                engine.log.clone()
            } else {
                engine.other.clone()
            };
            tokio::spawn(async move {
                for _ in 0..EACH {
                    append(&log, "s").await;
                }
            })
        })
        .collect();
    for task in writers.into_iter().chain(readers) {
        task.await.unwrap();
    }
}

/// A relaxed commit is seen once it is on disk, and keeps its place among durable ones.
#[tokio::test]
async fn relaxed_commits_are_flushed_and_keep_their_order() {
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let token = CancellationToken::new();
    let mut tail = log.tail(&stream("s"), Sequence::START, &token.scope());
    let mut version = log
        .commit(Commit::one(write("s", Version::NONE, "x", &["1"])))
        .await
        .unwrap()[0]
        .version;
    for index in 0..100 {
        let append = Write {
            stream: stream("s"),
            expected: version,
            head: None,
            events: vec![event("delta")],
        };
        let commit = Commit::one(append);
        let commit = if index % 10 == 9 { commit } else { commit.relaxed() };
        version = log.commit(commit).await.unwrap()[0].version;
    }
    for expected in 1..=101 {
        assert_eq!(next(&mut tail).await, expected);
    }
}
