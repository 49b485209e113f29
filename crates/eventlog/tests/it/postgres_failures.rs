//! Connections that are lost at any moment, and servers that refuse.

use std::{
    collections::BTreeSet,
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use eventlog::{
    Commit, CommitError, Health, LeaseError, Log, LogError, Sequence, StreamId, TailItem, Version,
};
use kernel::{CancellationToken, SystemClock};
use tokio::sync::watch;

use crate::{
    postgres::{append, eventually, next},
    postgres_database::Database,
    postgres_proxy::{Cut, Proxy, TRANSACTION, Words},
    support::{contents, stream, text, write},
};

/// The version that the next write to a stream must name, however often one has to ask.
async fn version(log: &Log, stream: &StreamId) -> Version {
    for _ in 0..50 {
        match log.head(stream).await {
            Ok(head) => return head.map_or(Version::NONE, |head| head.version),
            Err(LogError::Unreachable(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("the server could not be reached")
}

/// What a writer was told about each of its events.
#[derive(Default)]
struct Told {
    acknowledged: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

async fn write_many(log: Log, name: String, count: u32, progress: watch::Sender<u64>) -> Told {
    let mut told = Told::default();
    let id = stream(&name);
    let mut expected = version(&log, &id).await;
    let mut number = 0;
    while number < count {
        let text = format!("{name} {number}");
        match log
            .commit(Commit::one(write(&name, expected, "x", &[&text])))
            .await
        {
            Ok(made) => {
                expected = made[0].version;
                told.acknowledged.insert(text);
            }
            // Whatever was unknown has turned out to be made after all. The event is tried again.
            Err(CommitError::Conflict { actual, .. }) => {
                expected = actual.map_or(Version::NONE, |head| head.version);
                continue;
            }
            Err(CommitError::Log(LogError::OutcomeUnknown(_))) => {
                told.unknown.insert(text);
                expected = version(&log, &id).await;
            }
            Err(CommitError::Log(LogError::Unreachable(_))) => {
                told.refused.insert(text);
            }
            Err(error) => panic!("{error:?}"),
        }
        number += 1;
        progress.send_modify(|done| *done += 1);
    }
    told
}

/// Connections are ended again and again while many commit: what was acknowledged is there once, what was refused is
/// not there, and what is unknown is there once or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_commit_is_lost_with_a_connection() {
    const WRITERS: u32 = 8;
    const EACH: u32 = 60;
    let Some(database) = Database::new() else { return };
    let database = Arc::new(database);
    let (one, two) = (database.open().await, database.open().await);
    let (progress, mut watched) = watch::channel(0_u64);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let log = if writer % 2 == 0 { one.clone() } else { two.clone() };
            let name = format!("s/{writer}");
            tokio::spawn(write_many(log, name, EACH, progress.clone()))
        })
        .collect();
    let killing = Arc::clone(&database);
    let killer = tokio::spawn(async move {
        let (mut killed, total) = (0, u64::from(WRITERS * EACH));
        for target in (10..total).step_by(10) {
            watched.wait_for(|done| *done >= target).await.unwrap();
            let killing = Arc::clone(&killing);
            let kill = move || killing.kill_connections("query NOT LIKE 'LISTEN%'");
            killed += tokio::task::spawn_blocking(kill).await.unwrap();
        }
        killed
    });
    let (mut acknowledged, mut unknown) = (0, 0);
    let mut all_told = Vec::new();
    for writing in writers {
        all_told.push(writing.await.unwrap());
    }
    // Nothing is read while connections are still ended.
    let killed = killer.await.unwrap();
    for (writer, told) in all_told.into_iter().enumerate() {
        let name = format!("s/{writer}");
        let found = contents(&one, &name).await;
        let sequences: Vec<u64> = found.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(sequences, (1..=found.len() as u64).collect::<Vec<_>>());
        let texts: BTreeSet<String> = found.iter().map(|(_, text)| text.clone()).collect();
        assert_eq!(texts.len(), found.len(), "nothing is there twice");
        assert!(told.acknowledged.is_subset(&texts), "{name} has lost something");
        assert!(told.refused.is_disjoint(&texts), "{name} has what was refused");
        let known: BTreeSet<_> = told.acknowledged.union(&told.unknown).cloned().collect();
        assert!(texts.is_subset(&known));
        acknowledged += told.acknowledged.len();
        unknown += told.unknown.len();
    }
    println!("{acknowledged} acknowledged, {unknown} unknown, {killed} connections ended");
    assert!(killed >= 10 && acknowledged > 100);
}

/// The connection is lost just before or just after a commit is made. It is found out which, and the commit is there once.
#[tokio::test]
async fn what_became_of_a_commit_whose_answer_was_lost_is_found_out() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::start(&database.options().url).await;
    let direct = database.open().await;
    let log = Log::open_postgres(&database.options_through(proxy.address))
        .await
        .unwrap();
    for (number, cut) in [Cut::BeforeCommit, Cut::AfterCommit].into_iter().enumerate() {
        // A stream that is new, and then the same one again.
        let name = format!("s/{number}");
        for count in 1..=2 {
            let version = version(&direct, &stream(&name)).await;
            let words = Words {
                asked: "once",
                answered: "SELECT 1",
            };
            proxy.cut(cut, words);
            let made = log
                .commit(Commit::one(write(&name, version, "x", &["once"])))
                .await
                .unwrap();
            let head = direct.head(&stream(&name)).await.unwrap().unwrap();
            assert_eq!(
                (made[0].version, made[0].last_sequence),
                (head.version, head.last_sequence),
                "{cut:?}"
            );
            assert_eq!(contents(&direct, &name).await.len(), count, "{cut:?}");
        }
        append(&log, &name, "another").await;
    }
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_not_known_to_be_held() {
    let Some(database) = Database::new() else { return };
    let proxy = Proxy::start(&database.options().url).await;
    let log = Log::open_postgres(&database.options_through(proxy.address))
        .await
        .unwrap();
    proxy.cut(Cut::AfterCommit, TRANSACTION);
    let error = log.lease("key", "me", Duration::from_secs(60)).await.unwrap_err();
    assert!(
        matches!(error, LeaseError::Log(LogError::OutcomeUnknown(_))),
        "{error:?}"
    );
    let error = log.lease("key", "me", Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(error, LeaseError::Held { .. }), "{error:?}");
}

/// The connection that listens is ended, and cannot be made again until something was committed elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_sees_what_was_committed_while_nobody_listened() {
    let Some(database) = Database::new() else { return };
    let role = format!("{}_role", database.schema);
    database.run(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN SUPERUSER"
    ));
    let elsewhere = database.open().await;
    let here = Log::open_postgres(&database.options_as(&role)).await.unwrap();
    let listens = format!("usename = '{role}' AND query LIKE 'LISTEN%'");
    let token = CancellationToken::new();
    let mut tail = here.tail(&stream("s"), Sequence::START, &token.scope());
    append(&elsewhere, "s", "1").await;
    assert_eq!(next(&mut tail).await, 1);

    // While the listener is dealt with, this one looks by itself for the last time, and then waits to be told.
    let waiting = tokio::spawn(async move {
        let sequence = next(&mut tail).await;
        (sequence, tail)
    });
    eventually("it listens", || database.connections(&listens) == 1).await;
    database.run(&format!("ALTER ROLE {role} NOLOGIN"));
    assert_eq!(database.kill_connections(&listens), 1);
    eventually("it listens no more", || database.connections(&listens) == 0).await;
    append(&elsewhere, "s", "2").await;
    database.run(&format!("ALTER ROLE {role} LOGIN"));
    let (sequence, mut tail) = waiting.await.unwrap();
    assert_eq!(sequence, 2);

    // And then hints come again.
    append(&elsewhere, "s", "3").await;
    assert_eq!(next(&mut tail).await, 3);
    drop((tail, here));
    let of_role = format!("usename = '{role}'");
    eventually("nothing is left of it", || database.connections(&of_role) == 0).await;
    database.run(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));
}

#[tokio::test]
async fn the_health_follows_the_server() {
    let Some(database) = Database::new() else { return };
    let role = format!("{}_role", database.schema);
    database.run(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN SUPERUSER"
    ));
    let log = Log::open_postgres(&database.options_as(&role)).await.unwrap();
    append(&log, "s", "1").await;
    assert!(matches!(log.health(), Health::Writable));

    database.run(&format!("ALTER ROLE {role} NOLOGIN"));
    database.kill_connections("true");
    eventually("it has no connection", || database.connections("true") == 0).await;
    let error = log.head(&stream("s")).await.unwrap_err();
    assert!(matches!(error, LogError::Unreachable(_)), "{error:?}");
    assert!(matches!(
        log.health(),
        Health::Refusing {
            reason: LogError::Unreachable(_)
        }
    ));
    database.run(&format!("ALTER ROLE {role} LOGIN"));
    log.head(&stream("s")).await.unwrap();
    assert!(matches!(log.health(), Health::Writable));

    // A database that can be read but not written.
    database.run(&format!(
        "ALTER ROLE {role} SET default_transaction_read_only = on"
    ));
    database.kill_connections("true");
    let expected = version(&log, &stream("s")).await;
    let error = log
        .commit(Commit::one(write("s", expected, "x", &["2"])))
        .await
        .unwrap_err();
    assert!(matches!(error, CommitError::Log(LogError::ReadOnly)), "{error:?}");
    assert_eq!(contents(&log, "s").await.len(), 1);
    assert!(matches!(
        log.health(),
        Health::Refusing {
            reason: LogError::ReadOnly
        }
    ));
    database.run(&format!(
        "ALTER ROLE {role} SET default_transaction_read_only = off"
    ));
    database.kill_connections("true");
    let expected = version(&log, &stream("s")).await;
    log.commit(Commit::one(write("s", expected, "x", &["2"])))
        .await
        .unwrap();
    assert!(matches!(log.health(), Health::Writable));
    drop(log);
    eventually("nothing is left of it", || database.connections("true") == 0).await;
    database.run(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));
}

/// A commit that is dropped after any number of steps is made in full or not at all, and blocks nobody.
#[tokio::test]
async fn a_commit_may_be_dropped_half_way() {
    let Some(database) = Database::new() else { return };
    let (log, other) = (database.open().await, database.open().await);
    let both = async |text: &str| {
        let (a, b) = (
            version(&log, &stream("a")).await,
            version(&log, &stream("b")).await,
        );
        Commit::all(vec![write("a", a, "x", &[text]), write("b", b, "x", &[text])])
    };
    log.commit(both("whole").await).await.unwrap();
    let (started, mut dropped) = (Instant::now(), 0);
    for steps in 0..40 {
        let commit = both("dropped").await;
        let mut committing = Box::pin(log.commit(commit));
        let mut left = steps % 2;
        let ended = poll_fn(|context| match committing.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => {
                left -= 1;
                Poll::Pending
            }
        })
        .await;
        drop(committing);
        dropped += u32::from(ended.is_none());
        // The dropped one may still be on its way, and then this one is refused and knows why.
        let mut attempts = 0;
        while let Err(error) = other.commit(both("whole").await).await {
            assert!(matches!(error, CommitError::Conflict { .. }), "{error:?}");
            attempts += 1;
            assert!(attempts < 5, "{error:?}");
        }
    }
    let (a, b) = (contents(&log, "a").await, contents(&log, "b").await);
    assert_eq!(a, b);
    assert_eq!(a.iter().filter(|(_, text)| text == "whole").count(), 41);
    assert!(dropped >= 10, "{dropped}");
    // A transaction that is left open keeps others waiting until the server ends it, which is after 10 s.
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "{:?}",
        started.elapsed()
    );
}

/// A server that crashes loses relaxed commits that it has shown: tails that have seen them resync and go on, and the writer
/// is told that its own write was lost.
#[tokio::test]
async fn what_a_server_lost_in_a_crash_is_told_to_readers_and_to_the_writer() {
    let Some(database) = Database::new() else { return };
    let (here, elsewhere) = (database.open().await, database.open().await);
    let token = CancellationToken::new();
    let tail = |log: &Log| log.tail(&stream("s"), Sequence::START, &token.scope());
    let (mut own, mut far) = (tail(&here), tail(&elsewhere));
    let made = here.commit(Commit::one(write("s", Version::NONE, "x", &["1"])));
    let durable = made.await.unwrap()[0].version;
    let relaxed = Commit::one(write("s", durable, "x", &["2", "3"])).relaxed();
    let lost = here.commit(relaxed).await.unwrap()[0].version;
    for tail in [&mut own, &mut far] {
        for expected in 1..=3 {
            assert_eq!(next(tail).await, expected);
        }
    }
    // As the server finds it when it has come back.
    database.run(&format!(
        "BEGIN; DELETE FROM events WHERE sequence > 1;
         UPDATE streams SET last_sequence = 1, version = {durable} WHERE id = 's'; COMMIT"
    ));
    database.kill_connections("true");
    let resync = TailItem::Resync {
        after: Sequence::from_u64(1),
    };
    for tail in [&mut own, &mut far] {
        let item = tokio::time::timeout(Duration::from_secs(20), tail.next()).await;
        assert_eq!(item.expect("the tail hangs").unwrap(), resync);
    }
    let clock = SystemClock::shared();
    let next_write = |expected| Commit::one(write("s", expected, "x", &["2, again"]));
    let refused = here
        .commit_through(next_write(lost), &clock, &token.scope())
        .await;
    match refused.unwrap_err() {
        CommitError::RolledBack {
            actual: Some(actual), ..
        } => assert_eq!(actual.version, durable),
        other => panic!("{other:?}"),
    }
    here.commit(next_write(durable)).await.unwrap();
    // Now somebody else has written.
    let refused = here
        .commit_through(next_write(durable), &clock, &token.scope())
        .await;
    assert!(
        matches!(refused, Err(CommitError::Conflict { .. })),
        "{refused:?}"
    );
    for tail in [&mut own, &mut far] {
        let item = tokio::time::timeout(Duration::from_secs(20), tail.next()).await;
        let TailItem::Event(event) = item.expect("the tail hangs").unwrap() else {
            panic!("no event")
        };
        assert_eq!((event.sequence.get(), text(&event)), (2, "2, again".to_owned()));
    }
}
