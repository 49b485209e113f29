//! Damage to the file: it is said, it is contained, and nothing wrong is handed out as right.

use std::{fs, io, path::Path};

use eventlog::{
    BlobError, BlobId, CHUNK_BYTES, Commit, DAMAGED_EVENT, HeadsOrder, HeadsQuery, Log, LogError, OpenError,
    Sequence, SqliteOptions, Version, Write, export, import,
};
use kernel::SystemClock;
use tempfile::TempDir;

use crate::support::{event, noise, put, stream, text, with_blobs, write};

const STREAMS: usize = 12;
const EVENTS: u64 = 100;

fn open(path: &Path) -> Result<Log, OpenError> {
    let path = path.to_owned();
    Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared())
}

fn name(index: usize) -> String {
    format!("stream/{index}")
}

fn body(index: usize, sequence: u64) -> String {
    format!("event {sequence} of {index} {}", "x".repeat(40))
}

/// A log with some streams and a blob, closed.
async fn closed_log(path: &Path) -> BlobId {
    let log = open(path).unwrap();
    let blob = put(&log, &noise(3 * CHUNK_BYTES, 1)).await;
    for index in 0..STREAMS {
        let events = (1..=EVENTS).map(|sequence| event(&body(index, sequence)));
        let make = Write {
            events: events.collect(),
            ..write(&name(index), Version::NONE, "x", &[])
        };
        log.commit(Commit::one(with_blobs(make, &[blob]))).await.unwrap();
    }
    blob
}

/// Reads a stream. What is read is right, or there is an error.
async fn check_stream(log: &Log, index: usize) -> Result<(), LogError> {
    let found = log.head(&stream(&name(index))).await?;
    assert_eq!(
        found.map(|head| head.last_sequence.get()),
        Some(EVENTS),
        "stream {index} is not there"
    );
    let page = log.read(&stream(&name(index)), Sequence::START, 1000).await?;
    let found: Vec<_> = page.events.iter().map(text).collect();
    let expected: Vec<_> = (1..=EVENTS).map(|sequence| body(index, sequence)).collect();
    assert_eq!(found, expected);
    Ok(())
}

/// Each page in turn is overwritten. What can be read is right, the rest is an error that says so, and the check
/// finds it.
#[tokio::test]
async fn a_damaged_page_is_found_and_never_read_as_something_else() {
    const PAGE: usize = 4096;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    closed_log(&path).await;
    let whole = fs::read(&path).unwrap();
    let (mut refused, mut partly_read) = (0, 0);
    // Every page, but of the many that hold the blob only some.
    for page in (0..whole.len() / PAGE).filter(|page| *page < 60 || page % 16 == 0) {
        let copy = directory.path().join(format!("page{page}.sqlite3"));
        let mut damaged = whole.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        fs::write(&copy, damaged).unwrap();
        let log = match open(&copy) {
            Ok(log) => log,
            Err(OpenError::File {
                source: LogError::Corrupt(_),
                ..
            }) => {
                refused += 1;
                continue;
            }
            Err(error) => panic!("page {page}: {error:?}"),
        };
        let mut read = 0;
        for index in 0..STREAMS {
            match check_stream(&log, index).await {
                Ok(()) => read += 1,
                Err(LogError::Corrupt(_)) => {}
                Err(error) => panic!("page {page}: {error:?}"),
            }
        }
        partly_read += usize::from((1..STREAMS).contains(&read));
        let problems = log.check_integrity().await.unwrap();
        assert!(!problems.is_empty(), "the damage to page {page} was not found");
    }
    assert!(refused > 0 && partly_read > 0, "{refused} {partly_read}");
}

#[tokio::test]
async fn a_damaged_blob_is_an_error_and_never_short() {
    // As files of earlier versions have it, where every chunk has a body of its own.
    let unshare = "INSERT INTO chunks SELECT blob, number, body FROM all_chunks;
                   DELETE FROM shared_chunks; DELETE FROM pieces;";
    let unshared = |damage: &str| format!("{unshare} {damage}");
    for damage in [
        unshared("UPDATE chunks SET body = zeroblob(length(body)) WHERE number = 1"),
        unshared("UPDATE chunks SET body = (SELECT body FROM chunks WHERE number = 1) WHERE number = 2"),
        unshared("UPDATE chunks SET body = substr(body, 1, length(body) - 1) WHERE number = 2"),
        unshared("UPDATE chunks SET body = CAST('' AS BLOB) WHERE number = 0"),
        unshared("DELETE FROM chunks WHERE number = 2"),
        unshared("DELETE FROM chunks WHERE number = 0"),
        "UPDATE pieces SET body = zeroblob(length(body)) WHERE number = 2".to_owned(),
        "UPDATE pieces SET body = substr(body, 1, length(body) - 1) WHERE number = 3".to_owned(),
        "UPDATE shared_chunks SET piece = 2 WHERE number = 2".to_owned(),
        "DELETE FROM shared_chunks WHERE number = 2".to_owned(),
        "DELETE FROM pieces WHERE number = 1".to_owned(),
        "UPDATE blobs SET chunks = 2".to_owned(),
        "UPDATE blobs SET size_bytes = size_bytes + 1".to_owned(),
    ] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("log.sqlite3");
        let id = closed_log(&path).await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch(&damage).unwrap();
        drop(connection);

        let log = open(&path).unwrap();
        let mut reader = log.read_blob(id).await.unwrap();
        let mut read = Vec::new();
        let error = loop {
            match reader.next_chunk().await {
                Ok(Some(chunk)) => read.extend(chunk),
                Ok(None) => panic!("it was taken for whole: {damage}"),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(error, BlobError::Damaged(damaged) if damaged == id),
            "{damage}: {error}"
        );
        assert!(
            read.len() < 3 * CHUNK_BYTES,
            "the last piece was handed out: {damage}"
        );
        let expected = [format!("the blob {id} is damaged")];
        assert_eq!(log.check_integrity().await.unwrap(), expected, "{damage}");
        // The rest is exported, and what is damaged is named.
        let (archive, contents) = export(&log, Vec::new()).await.unwrap();
        assert_eq!(contents.left_out, expected, "{damage}");
        let copy = open(&directory.path().join("copy.sqlite3")).unwrap();
        let imported = import(&copy, io::Cursor::new(archive)).await.unwrap();
        assert_eq!(imported, contents, "{damage}");
        for index in 0..STREAMS {
            check_stream(&copy, index).await.unwrap();
        }
        assert_eq!(copy.check_integrity().await.unwrap(), Vec::<String>::new());
    }
}

/// The heads of all streams that can be listed, by name.
async fn listed(log: &Log) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let query = HeadsQuery {
            kind: "job".into(),
            status: None,
            order: HeadsOrder::OldestFirst,
            after: names.last().map(|name| stream(name)),
            limit: 5,
        };
        let page = log.heads(query).await.unwrap();
        names.extend(page.iter().map(|stored| stored.stream.to_string()));
        if page.len() < 5 {
            return names;
        }
    }
}

/// Some pages in turn are overwritten. A log that can be opened at all lists, exports and backs up the rest.
#[tokio::test]
async fn a_damaged_page_costs_what_is_on_it_and_the_rest_can_be_saved() {
    const PAGE: usize = 4096;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    closed_log(&path).await;
    let whole = fs::read(&path).unwrap();
    let (mut saved, mut damaged_events) = (0, 0);
    // Saving a log takes a while, so it is not done for every page.
    for page in (1..whole.len() / PAGE).filter(|page| page % 4 == 2 && *page < 60) {
        let copy = directory.path().join(format!("page{page}.sqlite3"));
        let mut damaged = whole.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0xA5);
        fs::write(&copy, damaged).unwrap();
        // What can be found out without opening it.
        let looked_at = copy.clone();
        let looked = tokio::task::spawn_blocking(move || Log::check_file(&looked_at, |_, _| None));
        assert!(
            !looked.await.unwrap().is_ok_and(|problems| problems.is_empty()),
            "the damage to page {page} was not found"
        );
        let Ok(log) = open(&copy) else { continue };
        let quarantined = {
            let names = listed(&log).await;
            names.len() + log.quarantined().len()
        };
        assert_eq!(quarantined, STREAMS, "page {page}: all are listed or quarantined");
        let (archive, contents) = match export(&log, Vec::new()).await {
            Ok(exported) => exported,
            Err(error) => panic!("page {page}: {error:?}"),
        };
        let other = open(&directory.path().join(format!("other{page}.sqlite3"))).unwrap();
        import(&other, io::Cursor::new(archive)).await.unwrap();
        assert_eq!(other.check_integrity().await.unwrap(), Vec::<String>::new());
        let backup = directory.path().join(format!("backup{page}.sqlite3"));
        let left_out = log.backup(&backup).await.unwrap();
        let backup = open(&backup).unwrap();
        assert_eq!(
            listed(&backup).await.len() as u64,
            contents.streams,
            "page {page}: {left_out:?}"
        );
        for name in listed(&other).await {
            let events = other
                .read(&stream(&name), Sequence::START, 1000)
                .await
                .unwrap()
                .events;
            assert_eq!(events.len() as u64, EVENTS, "page {page}: {name}");
            damaged_events += events
                .iter()
                .filter(|event| &*event.kind == DAMAGED_EVENT)
                .count();
        }
        saved += 1;
    }
    assert!(saved > 0 && damaged_events > 0, "{saved} {damaged_events}");
}

#[tokio::test]
async fn a_write_ahead_log_that_was_removed_is_noticed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let wal = directory.path().join("log.sqlite3-wal");
    // Closed as it should be: there is no such log, and nothing is missed.
    closed_log(&path).await;
    assert!(!wal.exists());
    let log = open(&path).unwrap();
    assert_eq!(log.lost_writes(), None);
    log.commit(Commit::one(write("stream/new", Version::NONE, "x", &["one"])))
        .await
        .unwrap();
    // Killed: what it leaves is copied here as the disk has it.
    let killed = directory.path().join("killed");
    fs::create_dir(&killed).unwrap();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
        }
    }
    // With its log it is whole.
    let again = open(&killed.join("log.sqlite3")).unwrap();
    assert!(again.head(&stream("stream/new")).await.unwrap().is_some());
    assert_eq!(again.lost_writes(), None);
    drop(again);
    // Removed while it is open: what is written then is in the file.
    fs::remove_file(&wal).unwrap();
    log.commit(Commit::one(write("stream/late", Version::NONE, "x", &["one"])))
        .await
        .unwrap();
    let bytes = fs::read(&path).unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(has("stream/new") && has("stream/late"));
    drop(log);
    // Killed again, and the log removed before the next start.
    let log = open(&path).unwrap();
    log.commit(Commit::one(write("stream/lost", Version::NONE, "x", &["one"])))
        .await
        .unwrap();
    let lost = directory.path().join("lost");
    fs::create_dir(&lost).unwrap();
    for name in ["log.sqlite3", "log.sqlite3.open"] {
        fs::copy(directory.path().join(name), lost.join(name)).unwrap();
    }
    let again = open(&lost.join("log.sqlite3")).unwrap();
    assert!(again.head(&stream("stream/lost")).await.unwrap().is_none());
    let note = again.lost_writes().unwrap();
    drop(again);
    // It is said until somebody has read it.
    let again = open(&lost.join("log.sqlite3")).unwrap();
    assert_eq!(again.lost_writes().as_ref(), Some(&note));
    fs::remove_file(&note).unwrap();
    assert_eq!(again.lost_writes(), None);
}

#[tokio::test]
async fn a_missing_event_is_found() {
    for (damage, problem) in [
        (
            "DELETE FROM events WHERE sequence = 7 AND stream = 1",
            "the stream `stream/0` has event 8 where 7 is due",
        ),
        (
            "DELETE FROM events WHERE sequence = 100 AND stream = 12",
            "the stream `stream/11` should end with event 100, but event 100 is missing",
        ),
        (
            "UPDATE streams SET first_sequence = 2 WHERE number = 2",
            "the stream `stream/1` has event 1 where 2 is due",
        ),
    ] {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("log.sqlite3");
        closed_log(&path).await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(connection.execute(damage, []).unwrap(), 1);
        drop(connection);
        let log = open(&path).unwrap();
        assert_eq!(log.check_integrity().await.unwrap(), [problem]);
    }
}
