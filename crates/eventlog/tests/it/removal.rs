//! Removal: streams are gone whole, at once, and for good.

use std::{sync::Arc, time::Duration};

use eventlog::{
    COMMIT_LIMIT_ITEMS, Commit, CommitError, Contents, HeadsOrder, HeadsQuery, Log, Page, Sequence, Tail,
    TailItem, Version, Write, export,
};
use kernel::CancellationToken;

use crate::{
    engines::{Engine, on_every_engine},
    support::{contents, event, put, stream, with_blobs, write},
};

on_every_engine!(
    a_removed_stream_is_gone_whole,
    what_only_a_removed_stream_referred_to_is_collected,
    a_stale_removal_removes_nothing,
    a_stream_that_is_made_again_is_another_one,
    bad_removals_are_refused_by_name,
    long_streams_and_many_streams_are_removed_whole,
    of_a_removal_and_a_commit_one_is_made,
    a_tail_of_a_removed_stream_starts_over,
    a_tail_that_did_not_look_meanwhile_starts_over,
    a_tail_that_has_seen_nothing_just_goes_on,
);

async fn make(log: &Log, name: &str, events: &[&str]) -> Version {
    let made = log
        .commit(Commit::one(write(name, Version::NONE, "x", events)))
        .await;
    made.unwrap()[0].version
}

async fn remove(log: &Log, name: &str, seen: Version) {
    log.remove(vec![(stream(name), seen)]).await.unwrap();
}

async fn listed(log: &Log) -> Vec<String> {
    let query = HeadsQuery {
        kind: Arc::from("job"),
        status: None,
        order: HeadsOrder::OldestFirst,
        after: None,
        limit: 100,
    };
    let heads = log.heads(query).await.unwrap();
    heads.iter().map(|head| head.stream.to_string()).collect()
}

async fn a_removed_stream_is_gone_whole(engine: Engine) {
    let removed = make(&engine.log, "a", &["1", "2"]).await;
    make(&engine.log, "b", &["3"]).await;
    let other = make(&engine.log, "c", &[]).await;
    let both = vec![(stream("a"), removed), (stream("c"), other)];
    engine.log.remove(both).await.unwrap();
    for log in [&engine.log, &engine.other] {
        assert_eq!(log.head(&stream("a")).await.unwrap(), None);
        let page = log.read(&stream("a"), Sequence::START, 10).await.unwrap();
        assert_eq!(page, Page::default());
        assert_eq!(listed(log).await, ["b"]);
        assert_eq!(contents(log, "b").await, [(1, "3".to_owned())]);
        let sizes = log.sizes().await.unwrap();
        assert_eq!((sizes.streams, sizes.events), (1, 1));
        assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
    }
    let exported = export(&engine.log, Vec::new()).await.unwrap();
    let expected = Contents {
        streams: 1,
        events: 1,
        blobs: 0,
        left_out: Vec::new(),
    };
    assert_eq!(exported.1, expected);
}

async fn what_only_a_removed_stream_referred_to_is_collected(engine: Engine) {
    let contents: [&[u8]; 3] = [b"of the head", b"of the event", b"shared"];
    let mut blobs = Vec::new();
    for content in contents {
        blobs.push(put(&engine.log, content).await);
    }
    let mut removed = with_blobs(write("a", Version::NONE, "x", &["1"]), &[blobs[0], blobs[2]]);
    removed.events[0].blobs = vec![blobs[1]];
    let kept = with_blobs(write("b", Version::NONE, "x", &[]), &[blobs[2]]);
    let made = engine.log.commit(Commit::all(vec![removed, kept])).await.unwrap();
    engine.let_pins_expire();
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 0);
    remove(&engine.log, "a", made[0].version).await;
    assert_eq!(engine.log.collect_blobs().await.unwrap().blobs, 2);
    assert_eq!(engine.log.blob_info(blobs[0]).await.unwrap(), None);
    assert!(engine.log.blob_info(blobs[2]).await.unwrap().is_some());
}

async fn a_stale_removal_removes_nothing(engine: Engine) {
    let good = make(&engine.log, "a", &["1"]).await;
    let first = make(&engine.log, "b", &["1"]).await;
    engine
        .other
        .commit(Commit::one(write("b", first, "y", &["2"])))
        .await
        .unwrap();
    for (name, stale) in [("b", first), ("b", Version::NONE), ("none", first)] {
        let both = vec![(stream("a"), good), (stream(name), stale)];
        let error = engine.log.remove(both).await.unwrap_err();
        let CommitError::Conflict {
            stream: moved,
            actual,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(moved, stream(name));
        let expected = engine.log.head(&stream(name)).await.unwrap();
        assert_eq!(actual.map(|head| *head), expected);
        assert_eq!(contents(&engine.log, "a").await.len(), 1);
        assert_eq!(contents(&engine.other, "b").await.len(), 2);
    }
    // A stream that was seen not to be there, and is not, is as it should be.
    let both = vec![(stream("a"), good), (stream("none"), Version::NONE)];
    engine.log.remove(both).await.unwrap();
    assert_eq!(listed(&engine.log).await, ["b"]);
}

async fn a_stream_that_is_made_again_is_another_one(engine: Engine) {
    let mut seen = Version::NONE;
    for round in 0..3 {
        let made = make(&engine.log, "s", &["a", "b"]).await;
        assert!(made > seen, "{made} is not new after {seen}");
        // Whoever knew the one before is refused.
        if round > 0 {
            let late = engine.other.commit(Commit::one(write("s", seen, "y", &["late"])));
            assert!(matches!(late.await, Err(CommitError::Conflict { .. })));
            let late = engine.other.remove(vec![(stream("s"), seen)]).await;
            assert!(matches!(late, Err(CommitError::Conflict { .. })), "{late:?}");
        }
        let moved = engine
            .log
            .commit(Commit::one(write("s", made, "y", &["c"])))
            .await;
        seen = moved.unwrap()[0].version;
        let expected = [(1, "a".to_owned()), (2, "b".to_owned()), (3, "c".to_owned())];
        assert_eq!(contents(&engine.other, "s").await, expected);
        remove(&engine.other, "s", seen).await;
    }
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}

async fn bad_removals_are_refused_by_name(engine: Engine) {
    let made = make(&engine.log, "s", &["1"]).await;
    let twice = vec![(stream("s"), made), (stream("s"), made)];
    let error = engine.log.remove(twice).await.unwrap_err();
    assert!(matches!(error, CommitError::StreamTwice { .. }), "{error}");
    let mut many = vec![(stream("s"), made)];
    many.extend((0..COMMIT_LIMIT_ITEMS).map(|index| (stream(&format!("s/{index}")), Version::NONE)));
    let error = engine.log.remove(many).await.unwrap_err();
    assert!(matches!(error, CommitError::TooMany { items: 1025 }), "{error}");
    engine.log.remove(Vec::new()).await.unwrap();
    assert_eq!(contents(&engine.log, "s").await.len(), 1);
}

async fn long_streams_and_many_streams_are_removed_whole(engine: Engine) {
    let mut version = Version::NONE;
    for _ in 0..3 {
        let more = Write {
            events: vec![event("0123456789"); 1000],
            ..write("long", version, "x", &[])
        };
        version = engine.log.commit(Commit::one(more)).await.unwrap()[0].version;
    }
    let kept = Write {
        events: vec![event("kept"); 1000],
        ..write("kept", Version::NONE, "x", &[])
    };
    engine.log.commit(Commit::one(kept)).await.unwrap();
    let many: Vec<_> = (0..500)
        .map(|index| write(&format!("s/{index:03}"), Version::NONE, "x", &["1"]))
        .collect();
    let made = engine.log.commit(Commit::all(many.clone())).await.unwrap();
    let seen = many.iter().zip(&made);
    let mut all: Vec<_> = seen
        .map(|(write, at)| (write.stream.clone(), at.version))
        .collect();
    all.push((stream("long"), version));
    engine.log.remove(all).await.unwrap();
    assert_eq!(listed(&engine.other).await, ["kept"]);
    // One of the same name has nothing of what was there.
    make(&engine.log, "long", &["new"]).await;
    assert_eq!(contents(&engine.other, "long").await, [(1, "new".to_owned())]);
    assert_eq!(contents(&engine.other, "kept").await.len(), 1000);
    assert_eq!(engine.log.check_integrity().await.unwrap(), Vec::<String>::new());
}

async fn of_a_removal_and_a_commit_one_is_made(engine: Engine) {
    for round in 0..32 {
        let name = format!("s/{round}");
        let seen = make(&engine.log, &name, &["1"]).await;
        let commit = engine.log.commit(Commit::one(write(&name, seen, "y", &["2"])));
        let removal = engine.other.remove(vec![(stream(&name), seen)]);
        let (committed, removed) = tokio::join!(commit, removal);
        let expected = match (&committed, &removed) {
            (Ok(_), Err(CommitError::Conflict { actual: Some(_), .. })) => 2,
            (Err(CommitError::Conflict { actual: None, .. }), Ok(())) => 0,
            both => panic!("{both:?}"),
        };
        assert_eq!(contents(&engine.log, &name).await.len(), expected);
    }
}

async fn next(tail: &mut Tail) -> TailItem {
    let next = tokio::time::timeout(Duration::from_secs(30), tail.next());
    next.await.unwrap().unwrap()
}

/// The next items of a tail are these events.
async fn expect(tail: &mut Tail, events: std::ops::RangeInclusive<u64>) {
    for expected in events {
        let item = next(tail).await;
        assert!(
            matches!(&item, TailItem::Event(event) if event.sequence.get() == expected),
            "{item:?} instead of event {expected}"
        );
    }
}

const FROM_THE_START: TailItem = TailItem::Resync {
    after: Sequence::START,
};

async fn a_tail_of_a_removed_stream_starts_over(engine: Engine) {
    let token = CancellationToken::new();
    let seen = make(&engine.log, "s", &["1", "2", "3"]).await;
    let tail = |log: &Log| log.tail(&stream("s"), Sequence::START, &token.scope());
    let (mut at_end, mut behind) = (tail(&engine.log), tail(&engine.other));
    expect(&mut at_end, 1..=3).await;
    expect(&mut behind, 1..=1).await;
    let waiting = tokio::spawn(async move {
        assert_eq!(next(&mut at_end).await, FROM_THE_START);
        at_end
    });
    remove(&engine.other, "s", seen).await;
    let at_end = waiting.await.unwrap();
    // It had these at hand, and they were true when it read them.
    expect(&mut behind, 2..=3).await;
    assert_eq!(next(&mut behind).await, FROM_THE_START);
    make(&engine.other, "s", &["a", "b", "c", "d", "e"]).await;
    for mut tail in [at_end, behind] {
        expect(&mut tail, 1..=5).await;
    }
}

async fn a_tail_that_did_not_look_meanwhile_starts_over(engine: Engine) {
    let token = CancellationToken::new();
    // The stream that follows is shorter than the place, as long as it, or longer.
    for (round, again) in [1, 2, 4].into_iter().enumerate() {
        let name = format!("s/{round}");
        let seen = make(&engine.log, &name, &["1", "2"]).await;
        let mut tail = engine.log.tail(&stream(&name), Sequence::START, &token.scope());
        expect(&mut tail, 1..=2).await;
        remove(&engine.other, &name, seen).await;
        make(&engine.other, &name, &["a", "b", "c", "d"][..again]).await;
        assert_eq!(next(&mut tail).await, FROM_THE_START);
        expect(&mut tail, 1..=again as u64).await;
    }
}

async fn a_tail_that_has_seen_nothing_just_goes_on(engine: Engine) {
    let token = CancellationToken::new();
    let seen = make(&engine.log, "s", &[]).await;
    let mut tail = engine.log.tail(&stream("s"), Sequence::START, &token.scope());
    let reading = tokio::spawn(async move { expect(&mut tail, 1..=2).await });
    tokio::task::yield_now().await;
    remove(&engine.other, "s", seen).await;
    make(&engine.other, "s", &["a", "b"]).await;
    reading.await.unwrap();
}
