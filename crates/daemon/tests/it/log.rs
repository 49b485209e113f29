//! The log over HTTP: its state, a check of it, and copies.

use std::fs;
use std::io::Cursor;

use daemon::{Database, import_log};
use eventlog::{HeadsOrder, HeadsQuery, Log, Sequence, SqliteOptions};
use kernel::SystemClock;
use protocol::{ErrorCode, LogBackup, LogCheck, LogEngine, LogIntegrity, LogState, LogStatus};

use crate::running::{Running, options, until_answer};

async fn force(running: &Running, name: &str, state: &str) {
    let path = format!("/v1/breakers/{name}/force");
    let body = format!(r#"{{"state":"{state}"}}"#);
    assert_eq!(running.unix().post(&path).json(&body).send().await.status, 200);
}

/// A daemon whose log says that it is ready. That is written behind its first answers.
async fn started() -> Running {
    let running = Running::start().await;
    let ask = async || -> LogStatus { running.unix().get("/v1/log").send().await.json() };
    until_answer("a note of readiness", ask, |status| status.sizes.events == 2).await;
    running
}

/// Everything that is in a log about breakers, without the versions.
async fn breakers(log: &Log) -> Vec<(String, String, Vec<eventlog::Event>)> {
    let query = HeadsQuery {
        kind: "breaker".into(),
        status: None,
        order: HeadsOrder::OldestFirst,
        after: None,
        limit: 100,
    };
    let mut found = Vec::new();
    for head in log.heads(query).await.unwrap() {
        let page = log.read(&head.stream, Sequence::START, 1000).await.unwrap();
        found.push((head.stream.to_string(), head.head.status.to_string(), page.events));
    }
    found
}

#[tokio::test]
async fn the_log_says_how_it_is_and_whether_it_is_whole() {
    let running = started().await;
    force(&running, "a", "open").await;
    force(&running, "a", "closed").await;
    let status: LogStatus = running.unix().get("/v1/log").send().await.json();
    assert_eq!(
        (status.engine, status.state, &status.reason),
        (LogEngine::Sqlite, LogState::Writable, &None)
    );
    // A life with its start and its readiness, a breaker with two changes, and the row of a process that was tried.
    assert_eq!((status.sizes.streams, status.sizes.events), (3, 4), "{status:?}");
    assert!(status.sizes.total_bytes > 0, "{status:?}");
    let check: LogCheck = running.unix().post("/v1/log/check").send().await.json();
    assert_eq!(
        check,
        LogCheck {
            state: LogIntegrity::Whole,
            problems: Vec::new()
        }
    );
    let metrics = running.unix().get("/metrics").send().await.body;
    for line in [
        "tidelock_log_state{state=\"writable\"} 1",
        "tidelock_log_streams 3",
        "tidelock_log_events 4",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    let page = running.unix().get("/v1/status").send().await;
    assert_eq!(page.json::<protocol::Status>().log, Some(LogState::Writable));
}

#[tokio::test]
async fn a_backup_is_a_log_and_replaces_nothing() {
    let running = Running::start().await;
    force(&running, "a", "open").await;
    let path = running.home.state.join("copy");
    let body = format!(r#"{{"path":"{}"}}"#, path.display());
    let back_up = async |body: &str| running.unix().post("/v1/log/backup").json(body).send().await;
    let made: LogBackup = back_up(&body).await.json();
    assert_eq!(made.path, path.display().to_string());
    assert_eq!(made.size_bytes, fs::metadata(&path).unwrap().len());
    // What comes later is not in it.
    force(&running, "a", "closed").await;
    let copy = Log::open_sqlite(&SqliteOptions { path: path.clone() }, SystemClock::shared()).unwrap();
    let found = breakers(&copy).await;
    assert_eq!(
        (found.len(), found[0].1.as_str(), found[0].2.len()),
        (1, "forced_open", 1)
    );
    drop(copy);

    let before = fs::read(&path).unwrap();
    let refused = back_up(&body).await.problem();
    assert_eq!(
        (refused.code, refused.detail),
        (
            ErrorCode::BackupExists,
            format!("`{}` exists already.", path.display())
        )
    );
    assert!(fs::read(&path).unwrap() == before, "it was touched");
    let nowhere = back_up(r#"{"path":"/nowhere/at/all"}"#).await.problem();
    assert_eq!(nowhere.code, ErrorCode::BackupFailed, "{nowhere:?}");
}

#[tokio::test]
async fn an_archive_moves_to_another_home_with_all_that_is_held_by_hand() {
    let running = started().await;
    for number in 0..50 {
        let state = if number % 2 == 0 { "open" } else { "closed" };
        force(&running, &format!("breaker-{}", number % 7), state).await;
    }
    let archive = running.unix().get("/v1/log/export").send().await;
    assert_eq!(archive.header("content-type"), Some(protocol::ARCHIVE_MEDIA_TYPE));
    let held: protocol::BreakerList = running.unix().get("/v1/breakers").send().await.json();
    let copy = running.home.state.join("copy");
    let body = format!(r#"{{"path":"{}"}}"#, copy.display());
    running.unix().post("/v1/log/backup").json(&body).send().await;
    let log = Log::open_sqlite(&SqliteOptions { path: copy }, SystemClock::shared()).unwrap();
    let expected = breakers(&log).await;

    let other = tempfile::tempdir().unwrap();
    let home = options(&other).home;
    let imported = import_log(&home, &Database::File, Cursor::new(archive.bytes.clone()))
        .await
        .unwrap();
    assert_eq!((imported.streams, imported.events), (9, 52));
    let path = home.log_database();
    let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap();
    assert_eq!(breakers(&log).await, expected);
    drop(log);
    let again = import_log(&home, &Database::File, Cursor::new(archive.bytes.clone())).await;
    assert_eq!(again.unwrap_err().code(), "log_not_empty");

    let next = Running::start_in(other, SystemClock::shared(), |_| {}).await;
    let found: protocol::BreakerList = next.unix().get("/v1/breakers").send().await.json();
    let states = |list: &protocol::BreakerList| -> Vec<_> {
        let state = |breaker: &protocol::Breaker| (breaker.id.clone(), breaker.state);
        list.breakers.iter().map(state).collect()
    };
    assert_eq!(states(&found), states(&held));
    let running_now = import_log(&next.home, &Database::File, Cursor::new(archive.bytes.clone())).await;
    assert_eq!(running_now.unwrap_err().code(), "already_running");

    let empty = tempfile::tempdir().unwrap();
    let cut = archive.bytes.slice(..archive.bytes.len() / 2);
    let cut = import_log(&options(&empty).home, &Database::File, Cursor::new(cut)).await;
    assert_eq!(cut.unwrap_err().code(), "archive_unusable");
    let whole = import_log(&options(&empty).home, &Database::File, Cursor::new(archive.bytes)).await;
    assert_eq!(whole.unwrap(), imported, "the half was taken back");
}
