//! Commits: what they write, what they refuse, and what they say then.

use std::sync::Arc;

use eventlog::{
    BODY_LIMIT_BYTES, COMMIT_LIMIT_ITEMS, Commit, CommitError, HeadsOrder, HeadsQuery, Page,
    RecentlyChangedQuery, Sequence, StoredHead, StreamId, Version, Write,
};

use crate::{
    engines::{Engine, on_every_engine},
    support::{contents, event, head, stream, write},
};

on_every_engine!(
    a_commit_writes_the_head_and_appends_events,
    a_stale_commit_is_refused_and_learns_the_current_head,
    several_streams_are_written_together_or_not_at_all,
    a_commit_without_a_head_leaves_it_as_it_is,
    a_version_is_never_used_twice,
    heads_are_listed_by_kind_and_status,
    heads_are_listed_by_when_they_moved,
    events_are_read_from_any_place_in_pages,
    bad_commits_are_refused_by_name,
    of_many_writers_of_one_version_one_wins,
);

async fn a_commit_writes_the_head_and_appends_events(engine: Engine) {
    let made = engine
        .log
        .commit(Commit::one(write("job/1", Version::NONE, "queued", &["a", "b"])))
        .await
        .unwrap();
    let moved = engine
        .other
        .commit(Commit::one(write("job/1", made[0].version, "running", &["c"])))
        .await
        .unwrap();
    assert!(moved[0].version > made[0].version);
    assert_eq!(
        (made[0].last_sequence.get(), moved[0].last_sequence.get()),
        (2, 3)
    );
    let expected = StoredHead {
        stream: stream("job/1"),
        version: moved[0].version,
        last_sequence: moved[0].last_sequence,
        head: head("running", "running"),
    };
    assert_eq!(engine.log.head(&stream("job/1")).await.unwrap(), Some(expected));
    let expected = [(1, "a".to_owned()), (2, "b".to_owned()), (3, "c".to_owned())];
    assert_eq!(contents(&engine.log, "job/1").await, expected);
    assert_eq!(engine.log.head(&stream("job/2")).await.unwrap(), None);
}

async fn a_stale_commit_is_refused_and_learns_the_current_head(engine: Engine) {
    let first = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "one", &["1"])))
        .await
        .unwrap()[0];
    engine
        .other
        .commit(Commit::one(write("s", first.version, "two", &["2"])))
        .await
        .unwrap();
    for stale in [first.version, Version::NONE, Version::from_u64(999_999)] {
        let error = engine
            .log
            .commit(Commit::one(write("s", stale, "lost", &["lost"])))
            .await
            .unwrap_err();
        let CommitError::Conflict {
            stream: moved,
            actual,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!(moved, stream("s"));
        assert_eq!(
            actual.map(|head| *head),
            engine.log.head(&stream("s")).await.unwrap()
        );
    }
    let error = engine
        .log
        .commit(Commit::one(write("new", first.version, "lost", &[])))
        .await
        .unwrap_err();
    assert!(
        matches!(error, CommitError::Conflict { actual: None, .. }),
        "{error}"
    );
    assert_eq!(
        contents(&engine.log, "s").await,
        [(1, "1".to_owned()), (2, "2".to_owned())]
    );
}

async fn several_streams_are_written_together_or_not_at_all(engine: Engine) {
    let both = |one, two| Commit::all(vec![write("a", one, "x", &["a"]), write("b", two, "x", &["b"])]);
    let made = engine
        .log
        .commit(both(Version::NONE, Version::NONE))
        .await
        .unwrap();
    // The first write is good, the second one stale: neither takes effect.
    let error = engine
        .log
        .commit(both(made[0].version, Version::NONE))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::Conflict { stream, .. } if stream.as_str() == "b"));
    assert_eq!(contents(&engine.log, "a").await.len(), 1);
    assert_eq!(
        engine.log.head(&stream("a")).await.unwrap().unwrap().version,
        made[0].version
    );
    engine
        .log
        .commit(both(made[0].version, made[1].version))
        .await
        .unwrap();
    assert_eq!(contents(&engine.log, "b").await.len(), 2);
}

async fn a_commit_without_a_head_leaves_it_as_it_is(engine: Engine) {
    let made = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "open", &[])))
        .await
        .unwrap()[0];
    let append = Write {
        stream: stream("s"),
        expected: made.version,
        head: None,
        events: vec![event("a"), event("b")],
    };
    let appended = engine.log.commit(Commit::one(append)).await.unwrap()[0];
    let found = engine.log.head(&stream("s")).await.unwrap().unwrap();
    assert_eq!(
        (found.head, found.version),
        (head("open", "open"), appended.version)
    );
    assert_eq!(found.last_sequence.get(), 2);
}

async fn a_version_is_never_used_twice(engine: Engine) {
    let mut versions = Vec::new();
    for index in 0..20 {
        let name = format!("s{}", index % 3);
        let expected = engine
            .log
            .head(&stream(&name))
            .await
            .unwrap()
            .map_or(Version::NONE, |head| head.version);
        versions.push(
            engine
                .log
                .commit(Commit::one(write(&name, expected, "x", &[])))
                .await
                .unwrap()[0]
                .version,
        );
        // A refused one in between uses up nothing that matters.
        engine
            .log
            .commit(Commit::one(write(&name, expected, "x", &[])))
            .await
            .unwrap_err();
    }
    assert!(versions.is_sorted_by(|one, other| one < other), "{versions:?}");
}

async fn heads_are_listed_by_when_they_moved(engine: Engine) {
    for name in ["j/1", "j/2", "j/3", "j/4"] {
        let made = write(name, Version::NONE, "queued", &[]);
        engine.log.commit(Commit::one(made)).await.unwrap();
    }
    let mut other = write("p/1", Version::NONE, "queued", &[]);
    other.head.as_mut().unwrap().kind = Arc::from("plan");
    engine.log.commit(Commit::one(other)).await.unwrap();
    for name in ["j/2", "j/1"] {
        let stream = StreamId::new(name).unwrap();
        let seen = engine.log.head(&stream).await.unwrap().unwrap();
        let moved = write(name, seen.version, "done", &[]);
        engine.log.commit(Commit::one(moved)).await.unwrap();
    }
    for (kind, among, limit, expected) in [
        ("job", 10, 10, &["j/1", "j/2", "j/4", "j/3"][..]),
        ("job", 10, 2, &["j/1", "j/2"]),
        // What is older than those that are looked at is not found, whenever it moved.
        ("job", 3, 10, &["j/2", "j/4", "j/3"]),
        ("job", 0, 10, &[]),
        ("plan", 10, 10, &["p/1"]),
        ("nothing", 10, 10, &[]),
    ] {
        let query = RecentlyChangedQuery {
            kind: Arc::from(kind),
            among,
            limit,
        };
        let heads = engine.log.recently_changed(query).await.unwrap();
        let found: Vec<String> = heads.iter().map(|head| head.stream.to_string()).collect();
        assert_eq!(found, expected, "{kind} {among} {limit}");
        for head in heads {
            assert_eq!(engine.log.head(&head.stream).await.unwrap(), Some(head));
        }
    }
}

async fn heads_are_listed_by_kind_and_status(engine: Engine) {
    for (name, status) in [
        ("j/1", "queued"),
        ("j/2", "running"),
        ("j/3", "queued"),
        ("j/4", "done"),
    ] {
        engine
            .log
            .commit(Commit::one(write(name, Version::NONE, status, &[])))
            .await
            .unwrap();
    }
    let mut other = write("p/1", Version::NONE, "queued", &[]);
    other.head.as_mut().unwrap().kind = Arc::from("plan");
    engine.log.commit(Commit::one(other)).await.unwrap();

    use HeadsOrder::{NewestFirst, OldestFirst};
    let list = async |order, kind: &str, status: Option<&str>, after: Option<&str>, limit| {
        let query = HeadsQuery {
            kind: Arc::from(kind),
            status: status.map(Arc::from),
            order,
            after: after.map(|after| StreamId::new(after).unwrap()),
            limit,
        };
        let heads = engine.log.heads(query).await.unwrap();
        heads
            .iter()
            .map(|head| head.stream.to_string())
            .collect::<Vec<_>>()
    };
    let queued = Some("queued");
    for (order, kind, status, after, limit, expected) in [
        (OldestFirst, "job", queued, None, 10, &["j/1", "j/3"][..]),
        (OldestFirst, "job", None, None, 10, &["j/1", "j/2", "j/3", "j/4"]),
        (OldestFirst, "job", None, Some("j/1"), 2, &["j/2", "j/3"]),
        (OldestFirst, "job", queued, Some("j/1"), 10, &["j/3"]),
        (OldestFirst, "job", None, Some("j/4"), 10, &[]),
        (OldestFirst, "plan", None, None, 10, &["p/1"]),
        (OldestFirst, "nothing", None, None, 10, &[]),
        (NewestFirst, "job", queued, None, 10, &["j/3", "j/1"]),
        (NewestFirst, "job", None, None, 3, &["j/4", "j/3", "j/2"]),
        (NewestFirst, "job", None, Some("j/2"), 10, &["j/1"]),
        (NewestFirst, "job", queued, Some("j/3"), 10, &["j/1"]),
        // The place need not be a stream of that kind, or a stream at all.
        (NewestFirst, "job", None, Some("j/3x"), 1, &["j/3"]),
        (NewestFirst, "job", None, Some("j/1"), 10, &[]),
        (NewestFirst, "plan", None, None, 10, &["p/1"]),
        (NewestFirst, "nothing", None, None, 10, &[]),
    ] {
        let found = list(order, kind, status, after, limit).await;
        assert_eq!(found, expected, "{order:?} {kind} {status:?} {after:?} {limit}");
    }
    let last = char::MAX.to_string().repeat(64);
    engine
        .log
        .commit(Commit::one(write(&last, Version::NONE, "queued", &[])))
        .await
        .unwrap();
    assert_eq!(list(NewestFirst, "job", None, None, 1).await, [last]);
}

async fn events_are_read_from_any_place_in_pages(engine: Engine) {
    let texts: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &texts)))
        .await
        .unwrap();
    for (after, limit, expected) in [(0, 3, 1..=3), (3, 3, 4..=6), (9, 3, 10..=10), (0, 100, 1..=10)] {
        let page = engine
            .log
            .read(&stream("s"), Sequence::from_u64(after), limit)
            .await
            .unwrap();
        assert_eq!((page.first.get(), page.last.get()), (1, 10));
        let found: Vec<_> = page.events.iter().map(|event| event.sequence.get()).collect();
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
    for after in [10, 11, 1 << 63, u64::MAX] {
        let page = engine
            .log
            .read(&stream("s"), Sequence::from_u64(after), 3)
            .await
            .unwrap();
        assert!(page.events.is_empty());
    }
    assert_eq!(
        engine
            .log
            .read(&stream("none"), Sequence::START, 3)
            .await
            .unwrap(),
        Page::default()
    );
}

async fn bad_commits_are_refused_by_name(engine: Engine) {
    let good = write("s", Version::NONE, "x", &[]);
    let large = Write {
        events: vec![event(&"x".repeat(BODY_LIMIT_BYTES + 1))],
        ..good.clone()
    };
    let many = Write {
        events: vec![event(""); COMMIT_LIMIT_ITEMS],
        ..good.clone()
    };
    let headless = Write {
        head: None,
        ..good.clone()
    };
    let nameless = Write {
        head: Some(head("", "")),
        ..good.clone()
    };
    let refuse = async |commit: Commit| engine.log.commit(commit).await.unwrap_err();
    assert!(matches!(
        refuse(Commit::one(large)).await,
        CommitError::TooLarge { .. }
    ));
    assert!(matches!(
        refuse(Commit::one(many)).await,
        CommitError::TooMany { .. }
    ));
    assert!(matches!(
        refuse(Commit::one(headless)).await,
        CommitError::HeadMissing { .. }
    ));
    assert!(matches!(
        refuse(Commit::one(nameless)).await,
        CommitError::BadName(_)
    ));
    assert!(matches!(
        refuse(Commit::all(vec![good.clone(), good])).await,
        CommitError::StreamTwice { .. }
    ));
    assert_eq!(engine.log.head(&stream("s")).await.unwrap(), None);
    for name in ["", "a\nb", &"x".repeat(300)] {
        assert!(StreamId::new(name).is_err());
    }
}

async fn of_many_writers_of_one_version_one_wins(engine: Engine) {
    let first = engine
        .log
        .commit(Commit::one(write("s", Version::NONE, "x", &[])))
        .await
        .unwrap()[0];
    let writers: Vec<_> = (0..64)
        .map(|index: usize| {
            let log = if index.is_multiple_of(2) {
                engine.log.clone()
            } else {
                engine.other.clone()
            };
            let text = index.to_string();
            tokio::spawn(async move {
                log.commit(Commit::one(write("s", first.version, "y", &[&text])))
                    .await
                    .is_ok()
            })
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        won += usize::from(writer.await.unwrap());
    }
    assert_eq!((won, contents(&engine.log, "s").await.len()), (1, 1));
}
