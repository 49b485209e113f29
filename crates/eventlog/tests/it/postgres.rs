//! What only a log on Postgres has: a server, a schema, connections, and daemons beside it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use eventlog::{
    BlobError, Commit, CommitError, Log, LogError, OpenError, Sequence, TailItem, Version, Write,
};
use kernel::CancellationToken;
use tokio::sync::{Barrier, mpsc};

use crate::{
    postgres_database::Database,
    support::{contents, event, noise, put, read_blob, stream, with_blobs, write},
};

/// More than enough for anything that is waited for here.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn next(tail: &mut eventlog::Tail) -> u64 {
    let item = tokio::time::timeout(PATIENCE, tail.next())
        .await
        .unwrap()
        .unwrap();
    let TailItem::Event(event) = item else {
        panic!("{item:?}")
    };
    event.sequence.get()
}

/// Adds an event to a stream that nobody else writes to.
pub(crate) async fn append(log: &Log, name: &str, text: &str) {
    let head = log.head(&stream(name)).await.unwrap();
    let expected = head.map_or(Version::NONE, |head| head.version);
    log.commit(Commit::one(write(name, expected, "x", &[text])))
        .await
        .unwrap();
}

#[tokio::test]
async fn daemons_that_start_together_make_the_tables_once() {
    let Some(database) = Database::new() else { return };
    let database = Arc::new(database);
    let opening: Vec<_> = (0..6)
        .map(|_| {
            let database = Arc::clone(&database);
            tokio::spawn(async move { database.open().await })
        })
        .collect();
    let mut logs = Vec::new();
    for opened in opening {
        logs.push(opened.await.unwrap());
    }
    append(&logs[0], "s", "1").await;
    append(&logs[5], "s", "2").await;
    let expected = [(1, "1".to_owned()), (2, "2".to_owned())];
    assert_eq!(contents(&logs[3], "s").await, expected);
}

#[tokio::test]
async fn a_log_of_the_schema_before_this_one_is_brought_up_to_date() {
    let Some(database) = Database::new() else { return };
    let log = database.open().await;
    append(&log, "s", "1").await;
    drop(log);
    database.run(
        "DO $$ DECLARE made regprocedure; BEGIN
             SELECT oid::regprocedure INTO made FROM pg_proc WHERE proname = 'write_commit'
                 AND pronamespace = current_schema()::regnamespace;
             EXECUTE 'DROP FUNCTION ' || made;
         END $$;
         ALTER TABLE streams DROP COLUMN mark;
         UPDATE meta SET value = 2 WHERE key = 'schema'",
    );
    let log = database.open().await;
    append(&log, "s", "2").await;
    let expected = [(1, "1".to_owned()), (2, "2".to_owned())];
    assert_eq!(contents(&log, "s").await, expected);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let Some(database) = Database::new() else { return };
    drop(database.open().await);
    database.run("UPDATE meta SET value = 1000 WHERE key = 'schema'; DROP TABLE events");
    let error = Log::open_postgres(&database.options()).await.unwrap_err();
    assert!(
        matches!(error, OpenError::NewerDatabase { found: 1000, .. }),
        "{error}"
    );
    assert!(
        error.to_string().ends_with("knows schemas up to 3; update it"),
        "{error}"
    );
    assert_eq!(
        database.number("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"),
        8
    );
}

/// A daemon that ended right after it removed a stream has left its events behind. Whoever comes next drops them.
#[tokio::test]
async fn what_a_removal_has_left_behind_is_swept_by_the_next() {
    let Some(database) = Database::new() else { return };
    let log = database.open().await;
    for (round, left) in [("compact", 1), ("remove", 0)] {
        let gone = write("gone", Version::NONE, "x", &["1", "2", "3"]);
        log.commit(Commit::one(gone)).await.unwrap();
        append(&log, "other", "kept").await;
        let other = log.head(&stream("other")).await.unwrap().unwrap().version;
        database.run(
            "INSERT INTO removed_streams SELECT number FROM streams WHERE id = 'gone';
             DELETE FROM streams WHERE id = 'gone'",
        );
        assert_eq!(contents(&log, "gone").await, []);
        assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
        match round {
            "compact" => log.compact().await.unwrap(),
            _ => log.remove(vec![(stream("other"), other)]).await.unwrap(),
        }
        let rows = "SELECT (SELECT count(*) FROM events) + 10 * (SELECT count(*) FROM removed_streams)";
        assert_eq!(database.number(rows), left, "{round}");
    }
    assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_be_so() {
    let Some(database) = Database::new() else { return };
    let mut options = database.options();
    options.url = "postgres://somebody:secret@127.0.0.1:1/nowhere".to_owned();
    let error = Log::open_postgres(&options).await.unwrap_err();
    assert!(
        matches!(
            &error,
            OpenError::Database {
                source: LogError::Unreachable(_),
                ..
            }
        ),
        "{error:?}"
    );
    assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn connections_and_tasks_end_with_the_last_handle() {
    let Some(database) = Database::new() else { return };
    let (log, other) = (database.open().await, database.open().await);
    let token = CancellationToken::new();
    let tail = log.tail(&stream("s"), Sequence::START, &token.scope());
    append(&log, "s", "1").await;
    append(&other, "s", "2").await;
    eventually("both logs listen", || {
        database.connections("query LIKE 'LISTEN%'") == 2
    })
    .await;
    drop(other);
    eventually("one log listens", || {
        database.connections("query LIKE 'LISTEN%'") == 1
    })
    .await;
    drop(log);
    assert!(database.connections("true") > 0, "a tail is a handle too");
    drop(tail);
    eventually("nothing is left", || database.connections("true") == 0).await;
}

#[tokio::test]
async fn a_commit_elsewhere_wakes_a_tail_here_at_once() {
    let Some(database) = Database::new() else { return };
    let (here, elsewhere) = (database.open().await, database.open().await);
    eventually("both logs listen", || {
        database.connections("query LIKE 'LISTEN%'") == 2
    })
    .await;
    let token = CancellationToken::new();
    let mut tail = here.tail(&stream("s"), Sequence::START, &token.scope());
    let (seen, mut sequences) = mpsc::channel(1);
    let reader = tokio::spawn(async move {
        for _ in 0..20 {
            seen.send(next(&mut tail).await).await.unwrap();
        }
    });
    let mut waited = Duration::ZERO;
    for expected in 1..=20 {
        // The tail has time to find nothing new and to wait. Without that it would need no hint.
        tokio::time::sleep(Duration::from_millis(20)).await;
        append(&elsewhere, "s", "event").await;
        let committed = Instant::now();
        assert_eq!(sequences.recv().await, Some(expected));
        waited += committed.elapsed();
    }
    reader.await.unwrap();
    // Looking without a hint, every few seconds, would take far longer.
    assert!(waited < Duration::from_secs(4), "{waited:?}");
}

#[tokio::test]
async fn large_events_from_elsewhere_are_seen_too() {
    let Some(database) = Database::new() else { return };
    let (here, elsewhere) = (database.open().await, database.open().await);
    let token = CancellationToken::new();
    let mut tail = here.tail(&stream("s"), Sequence::START, &token.scope());
    // More than a window holds, in one event and in many.
    let large = "x".repeat(300 * 1024);
    append(&elsewhere, "s", &large).await;
    let head = elsewhere.head(&stream("s")).await.unwrap().unwrap();
    let many = Write {
        stream: stream("s"),
        expected: head.version,
        head: None,
        events: vec![event("y"); 500],
    };
    elsewhere.commit(Commit::one(many)).await.unwrap();
    for expected in 1..=501 {
        assert_eq!(next(&mut tail).await, expected);
    }
}

/// A relaxed commit is seen at once, here and elsewhere, and keeps its place among durable ones.
#[tokio::test]
async fn relaxed_commits_keep_their_order() {
    let Some(database) = Database::new() else { return };
    let (here, elsewhere) = (database.open().await, database.open().await);
    let token = CancellationToken::new();
    let mut tail = elsewhere.tail(&stream("s"), Sequence::START, &token.scope());
    append(&here, "s", "1").await;
    let mut version = here.head(&stream("s")).await.unwrap().unwrap().version;
    for index in 0..100 {
        let append = Write {
            stream: stream("s"),
            expected: version,
            head: None,
            events: vec![event("delta")],
        };
        let commit = Commit::one(append);
        let commit = if index % 10 == 9 { commit } else { commit.relaxed() };
        version = here.commit(commit).await.unwrap()[0].version;
        let seen = elsewhere.head(&stream("s")).await.unwrap().unwrap();
        assert_eq!((seen.version, seen.last_sequence.get()), (version, index + 2));
    }
    for expected in 1..=101 {
        assert_eq!(next(&mut tail).await, expected);
    }
}

/// Commits to the same streams, named in different orders by two daemons, never wait for each other in a ring.
#[tokio::test]
async fn commits_to_many_streams_do_not_deadlock() {
    const WRITERS: usize = 12;
    const ROUNDS: usize = 16;
    const STREAMS: usize = 8;
    let Some(database) = Database::new() else { return };
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let deadlocks_before = database.number(deadlocks);
    let (one, two) = (database.open().await, database.open().await);
    let together = Arc::new(Barrier::new(WRITERS));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer: usize| {
            let log = if writer.is_multiple_of(2) {
                one.clone()
            } else {
                two.clone()
            };
            let together = Arc::clone(&together);
            tokio::spawn(async move {
                let mut made = Vec::new();
                for round in 0..ROUNDS {
                    // In every other round the streams are new.
                    let place = if round.is_multiple_of(2) { 0 } else { round };
                    let mut writes = Vec::new();
                    for index in 0..STREAMS {
                        let name = format!("s/{place}/{}", (index * 3 + writer) % STREAMS);
                        let head = log.head(&stream(&name)).await.unwrap();
                        let expected = head.map_or(Version::NONE, |head| head.version);
                        writes.push(write(&name, expected, "x", &["event"]));
                    }
                    together.wait().await;
                    match log.commit(Commit::all(writes)).await {
                        Ok(_) => made.push(place),
                        Err(CommitError::Conflict { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    together.wait().await;
                }
                made
            })
        })
        .collect();
    let mut made = Vec::new();
    for writer in writers {
        made.extend(writer.await.unwrap());
    }
    assert_eq!(made.len(), ROUNDS, "one wins each round");
    for (place, expected) in (0..ROUNDS)
        .filter(|place| *place == 0 || !place.is_multiple_of(2))
        .map(|place| (place, made.iter().filter(|made| **made == place).count()))
    {
        for index in 0..STREAMS {
            let found = contents(&one, &format!("s/{place}/{index}")).await.len();
            assert_eq!(found, expected, "each commit is in each of its streams");
        }
    }
    // A session counts what it met when it ends, at the latest.
    drop((one, two));
    eventually("nothing is left", || database.connections("true") == 0).await;
    assert_eq!(database.number(deadlocks), deadlocks_before);
}

/// New streams cannot be locked before they are there, so they are made in the order of their names: whoever waits
/// for a name holds none that comes after it.
#[tokio::test]
async fn new_streams_are_made_in_the_order_of_their_names() {
    let Some(database) = Database::new() else { return };
    let log = database.open().await;
    let making = |name: &str| {
        format!(
            "INSERT INTO {}.streams VALUES (nextval('{}.versions'), '{name}', 'job', 'x', 1, 1, 0, '')",
            database.schema, database.schema
        )
    };
    let other = database.client().await;
    other
        .batch_execute(&format!(
            "BEGIN; SET LOCAL lock_timeout = '300ms'; {}",
            making("a")
        ))
        .await
        .unwrap();
    let committing = tokio::spawn(async move {
        let both = vec![
            write("b", Version::NONE, "x", &["b"]),
            write("a", Version::NONE, "x", &["a"]),
        ];
        log.commit(Commit::all(both)).await
    });
    eventually("the commit waits", || {
        database.connections("wait_event_type = 'Lock'") == 1
    })
    .await;
    other.batch_execute(&making("b")).await.unwrap();
    other.batch_execute("COMMIT").await.unwrap();
    let error = committing.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, CommitError::Conflict { stream, .. } if stream.as_str() == "b"),
        "{error:?}"
    );
}

/// Blobs that commits of one daemon refer to, while another one collects all the time.
#[tokio::test]
async fn a_commit_and_a_collection_elsewhere_agree() {
    let Some(database) = Database::new() else { return };
    let (here, elsewhere) = (database.open().await, database.open().await);
    // No blob is kept for being new, so that each commit races with the collection.
    let database = Arc::new(database);
    database.run(
        "CREATE FUNCTION unpin() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.pinned_until = '-infinity'; RETURN NEW; END $$;
         CREATE TRIGGER unpin BEFORE INSERT OR UPDATE ON blobs FOR EACH ROW EXECUTE FUNCTION unpin()",
    );
    let token = CancellationToken::new();
    let scope = token.scope();
    let collecting = tokio::spawn(async move {
        let mut collected = 0;
        while !scope.is_cancelled() {
            collected += elsewhere.collect_blobs().await.unwrap().blobs;
        }
        collected
    });
    let (mut kept, mut missing) = (Vec::new(), 0);
    for index in 0..150_u8 {
        let content = noise(1000, u64::from(index));
        let blob = match here.put_blob(&content[..]).await {
            Ok((blob, _)) => blob,
            Err(BlobError::Missing(_)) => {
                missing += 1;
                continue;
            }
            Err(error) => panic!("{error:?}"),
        };
        let name = format!("s/{index}");
        let referring = with_blobs(write(&name, Version::NONE, "x", &[]), &[blob]);
        match here.commit(Commit::one(referring)).await {
            Ok(_) => kept.push((blob, content)),
            Err(CommitError::BlobMissing(gone)) => {
                assert_eq!(gone, blob);
                missing += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    token.cancel(kernel::Cause::new("test", "done"));
    let collected = collecting.await.unwrap();
    for (blob, content) in &kept {
        assert!(read_blob(&here, *blob).await.unwrap() == *content);
    }
    assert_eq!((kept.len() + missing, collected), (150, missing as u64));
    assert_eq!(here.check_integrity().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn damage_is_found() {
    let Some(database) = Database::new() else { return };
    let log = database.open().await;
    let blob = put(&log, b"content").await;
    let commit = Commit::one(with_blobs(
        write("s", Version::NONE, "x", &["1", "2", "3"]),
        &[blob],
    ));
    log.commit(commit).await.unwrap();
    assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
    database.run("DELETE FROM events WHERE sequence = 2; DELETE FROM blobs");
    let problems = log.check_integrity().await.unwrap();
    for expected in [
        "the stream `s` should have the events from 1 to 3, but has 2 of them".to_owned(),
        format!("the blob {blob} is referred to, but is not there"),
    ] {
        assert!(problems.contains(&expected), "{problems:?}");
    }
}

/// Every life of a daemon has a lease of its own. Those of lives that are over go with the upkeep.
#[tokio::test]
async fn leases_that_have_expired_are_dropped() {
    let Some(database) = Database::new() else { return };
    let log = database.open().await;
    for number in 0..20 {
        let life = format!("life {number}");
        log.lease(&life, "one", Duration::from_millis(1)).await.unwrap();
    }
    log.lease("alive", "one", Duration::from_secs(600)).await.unwrap();
    let expired = "SELECT count(*) FROM leases WHERE expires_at <= clock_timestamp()";
    eventually("they have expired", || database.number(expired) == 20).await;
    log.compact().await.unwrap();
    assert_eq!(database.number("SELECT count(*) FROM leases"), 1);
}
