//! Moves: whoever watches a prefix is told of every change below it.

use std::time::Duration;

use eventlog::{ChangesEnd, Commit, Log, StreamChanges, Version, Write, export, import};
use kernel::{CancellationToken, Cause, Deadline, Scope, SystemClock};

use crate::{
    engines::{self, Engine, on_every_engine},
    postgres_database::Database,
    support::{stream, write},
};

on_every_engine!(
    every_change_below_the_prefix_is_told,
    a_change_is_there_when_it_is_told,
    a_wait_that_is_cancelled_ends,
);

fn scope() -> Scope {
    CancellationToken::new().scope()
}

/// Waits for something to move; a long time, so that only a lost change fails it.
async fn moved(moves: &mut StreamChanges) {
    let deadline = Deadline::after(&SystemClock::shared(), Duration::from_secs(30));
    moves.next(deadline, &scope()).await.unwrap();
}

/// Whether something has moved already.
async fn has_moved(moves: &mut StreamChanges) -> bool {
    let now = Deadline::after(&SystemClock::shared(), Duration::ZERO);
    match moves.next(now, &scope()).await {
        Ok(()) => true,
        Err(ChangesEnd::DeadlineExceeded) => false,
        Err(ChangesEnd::Cancelled(cause)) => panic!("{cause}"),
    }
}

async fn commit(log: &Log, name: &str, expected: Version, events: &[&str]) -> Version {
    let commit = Commit::one(write(name, expected, "x", events));
    log.commit(commit).await.unwrap()[0].version
}

async fn every_change_below_the_prefix_is_told(engine: Engine) {
    let (mut here, mut there) = (engine.log.changes("job"), engine.other.changes("job"));
    let made = commit(&engine.log, "job/1", Version::NONE, &["made"]).await;
    moved(&mut here).await;
    moved(&mut there).await;
    // A new head alone is a change too.
    let headed = commit(&engine.other, "job/1", made, &[]).await;
    moved(&mut here).await;
    moved(&mut there).await;
    let append = Write {
        head: None,
        ..write("job/1", headed, "x", &["appended"])
    };
    let relaxed = Commit::all(vec![append, write("plan/1", Version::NONE, "x", &[])]).relaxed();
    let appended = engine.log.commit(relaxed).await.unwrap()[0].version;
    // On one engine it is flushed with the next one, since the clock stands still.
    commit(&engine.log, "plan/2", Version::NONE, &[]).await;
    moved(&mut here).await;
    moved(&mut there).await;
    engine
        .log
        .remove(vec![(stream("job/1"), appended)])
        .await
        .unwrap();
    moved(&mut here).await;
    moved(&mut there).await;
    // What an archive brings is a change of everything in it.
    let seen = engine.log.head(&stream("plan/1")).await.unwrap().unwrap().version;
    let two = engine.log.head(&stream("plan/2")).await.unwrap().unwrap().version;
    commit(&engine.log, "job/2", Version::NONE, &[]).await;
    let (archive, _) = export(&engine.log, Vec::new()).await.unwrap();
    let job = engine.log.head(&stream("job/2")).await.unwrap().unwrap().version;
    let all = vec![
        (stream("plan/1"), seen),
        (stream("plan/2"), two),
        (stream("job/2"), job),
    ];
    engine.log.remove(all).await.unwrap();
    moved(&mut there).await;
    let mut restored = engine.log.changes("job");
    import(&engine.log, std::io::Cursor::new(archive)).await.unwrap();
    moved(&mut restored).await;
}

async fn a_change_is_there_when_it_is_told(engine: Engine) {
    const JOBS: usize = 50;
    let mut moves = engine.other.changes("job");
    let writer = engine.log.clone();
    let writing = tokio::spawn(async move {
        for index in 0..JOBS {
            commit(&writer, &format!("job/{index}"), Version::NONE, &[]).await;
        }
    });
    // Whoever looks whenever it is told sees the last one in the end.
    let mut seen = 0;
    while seen < JOBS {
        moved(&mut moves).await;
        let name = |index| stream(&format!("job/{index}"));
        while seen < JOBS && engine.other.head(&name(seen)).await.unwrap().is_some() {
            seen += 1;
        }
    }
    writing.await.unwrap();
}

async fn a_wait_that_is_cancelled_ends(engine: Engine) {
    let token = CancellationToken::new();
    // On a database somebody may always say that something may have moved.
    let mut moves = engine.log.changes("job");
    token.cancel(Cause::new("test", "is over"));
    let ended = loop {
        match moves.next(Deadline::never(), &token.scope()).await {
            Ok(()) => {}
            Err(ended) => break ended,
        }
    };
    assert_eq!(ended.to_string(), "the wait was cancelled by test: is over");
}

/// Here nobody else can write, so that nothing is told for nothing.
#[tokio::test]
async fn changes_elsewhere_are_not_told_and_several_are_told_as_one() {
    let engine = engines::sqlite();
    let version = commit(&engine.log, "job/0", Version::NONE, &["before"]).await;
    let mut moves = engine.log.changes("job");
    assert!(!has_moved(&mut moves).await);
    for name in ["job", "jobs/1", "job-output/1", "plan/job/1", "jo"] {
        commit(&engine.log, name, Version::NONE, &["event"]).await;
        assert!(!has_moved(&mut moves).await, "{name}");
    }
    for index in 1..10 {
        commit(&engine.log, &format!("job/{index}"), Version::NONE, &[]).await;
    }
    let mut later = engine.log.changes("job");
    assert!(has_moved(&mut moves).await && !has_moved(&mut moves).await);
    assert!(!has_moved(&mut later).await);
    // A refused commit moves nothing.
    let stale = Commit::one(write("job/0", Version::NONE, "x", &[]));
    engine.log.commit(stale).await.unwrap_err();
    assert!(!has_moved(&mut moves).await);
    // Each of those who watch is told for themselves.
    commit(&engine.log, "job/0", version, &[]).await;
    assert!(has_moved(&mut later).await && has_moved(&mut moves).await);
}

/// What others do is told by their hints. Without those each round would wait for the next look, which is seconds away.
#[tokio::test]
async fn changes_of_others_are_told_at_once() {
    const ROUNDS: usize = 24;
    let Some(engine) = engines::postgres().await else {
        return;
    };
    let mut moves = engine.log.changes("job");
    let rounds = async {
        for index in 0..ROUNDS {
            let name = format!("job/{index}");
            commit(&engine.other, &name, Version::NONE, &[]).await;
            // One that was told for nothing before is used up here.
            while has_moved(&mut moves).await {}
            commit(&engine.other, &format!("job-output/{index}"), Version::NONE, &[]).await;
            let seen = engine.other.head(&stream(&name)).await.unwrap().unwrap().version;
            engine.other.remove(vec![(stream(&name), seen)]).await.unwrap();
            moved(&mut moves).await;
        }
    };
    let bound = Duration::from_secs(60);
    tokio::time::timeout(bound, rounds).await.unwrap();
}

/// What was not told because the connection was lost is told when there is a new one.
#[tokio::test]
async fn after_a_lost_connection_anything_may_have_moved() {
    let Some(database) = Database::new() else {
        return;
    };
    let (log, other) = (database.open().await, database.open().await);
    let mut moves = log.changes("job");
    commit(&other, "job/1", Version::NONE, &["1"]).await;
    moved(&mut moves).await;
    for round in 2..6 {
        database.kill_connections("query LIKE 'LISTEN%'");
        commit(&other, &format!("job/{round}"), Version::NONE, &[]).await;
        let name = stream(&format!("job/{round}"));
        while log.head(&name).await.unwrap().is_none() {
            moved(&mut moves).await;
        }
        moved(&mut moves).await;
    }
}
