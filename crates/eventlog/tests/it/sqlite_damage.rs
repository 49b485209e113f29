//! Damage to the file: it is said, it is contained, and nothing wrong is handed out as right.

use std::{fs, path::Path};

use eventlog::{
    BlobError, BlobId, CHUNK_BYTES, Commit, ExportError, Log, LogError, OpenError, Sequence, SqliteOptions,
    Version, Write, export,
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
        let Err(error) = export(&log, Vec::new()).await else {
            panic!("it was exported: {damage}");
        };
        assert!(
            matches!(error, ExportError::DamagedBlob(damaged) if damaged == id),
            "{error}"
        );
    }
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
