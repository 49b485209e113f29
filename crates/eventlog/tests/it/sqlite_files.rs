//! The files of the SQLite engine: whose they are, what is refused, what is copied, and how long they get.

use std::{fs, path::Path, time::Duration};

use eventlog::{
    BackupError, CHUNK_BYTES, Commit, Health, Log, LogError, OpenError, Sequence, SqliteOptions, Version,
    read_holder,
};
use kernel::{CancellationToken, Cause, SystemClock};
use tempfile::TempDir;

use crate::{
    engines::sqlite_in_real_time,
    support::{contents, noise, put, read_blob, stream, with_blobs, write},
};

fn open(path: &Path) -> Result<Log, OpenError> {
    let path = path.to_owned();
    Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared())
}

/// What a program of a later version would leave behind, its write-ahead log included.
fn with_schema(path: &Path, schema: i64) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let no_checkpoint = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(no_checkpoint, true).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.pragma_update(None, "user_version", schema).unwrap();
    connection
        .execute_batch("CREATE TABLE of_the_future (x); INSERT INTO of_the_future VALUES (1)")
        .unwrap();
}

#[tokio::test]
async fn a_file_is_open_once_and_can_be_opened_again_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let mut version = Version::NONE;
    for round in 1..=10 {
        let log = open(&path).unwrap();
        let refused = open(&path).unwrap_err();
        let expected = Some(std::process::id());
        assert!(
            matches!(&refused, OpenError::Taken { pid, path: taken } if *pid == expected && *taken == path),
            "{refused}"
        );
        let commit = Commit::one(write("s", version, "x", &["event"]));
        version = log.commit(commit).await.unwrap()[0].version;
        assert_eq!(contents(&log, "s").await.len(), round);
    }
    let holder = read_holder(&directory.path().join("log.sqlite3.lock")).unwrap();
    assert!(holder.has_ended_cleanly());
}

/// Relaxed commits are acknowledged before they are on disk; closing the log puts them there.
#[tokio::test]
async fn closing_the_log_waits_for_what_was_acknowledged() {
    let directory = TempDir::new().unwrap();
    let (mut version, mut expected) = (Version::NONE, 0);
    for _ in 0..10 {
        let log = sqlite_in_real_time(&directory);
        for _ in 0..20 {
            let commit = Commit::one(write("s", version, "x", &["event"])).relaxed();
            version = log.commit(commit).await.unwrap()[0].version;
        }
        drop(log);
        expected += 20;
        let wal = directory.path().join("log.sqlite3-wal");
        assert!(!wal.exists(), "the file is still open");
        let log = sqlite_in_real_time(&directory);
        assert_eq!(contents(&log, "s").await.len(), expected);
    }
}

#[test]
fn a_newer_schema_is_refused_and_nothing_is_touched() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    with_schema(&path, 1000);
    let files = || {
        let wal = fs::read(directory.path().join("log.sqlite3-wal")).unwrap();
        assert!(!wal.is_empty(), "the newer program left something to be moved");
        (fs::read(&path).unwrap(), wal)
    };
    let before = files();
    for _ in 0..2 {
        let refused = open(&path).unwrap_err();
        assert!(
            matches!(refused, OpenError::NewerSchema { found: 1000, .. }),
            "{refused}"
        );
        assert!(files() == before, "the files have changed");
    }
}

#[test]
fn what_is_no_log_is_refused_and_not_touched() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let text = "this is a text and not a database\n".repeat(1000);
    fs::write(&path, &text).unwrap();
    let refused = open(&path).unwrap_err();
    assert!(
        matches!(
            &refused,
            OpenError::File {
                source: LogError::Corrupt(_),
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    // Nobody can make files in this one, whoever they are.
    let path = Path::new("/proc/tidelock.sqlite3");
    let refused = open(path).unwrap_err();
    assert!(
        matches!(&refused, OpenError::File { source: LogError::ReadOnly, path: named } if named == path),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_backup_is_a_log_of_one_moment_and_replaces_nothing() {
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let content = noise(3 * CHUNK_BYTES, 1);
    let blob = put(&log, &content).await;
    let first = with_blobs(write("s", Version::NONE, "x", &["1", "2"]), &[blob]);
    let version = log.commit(Commit::one(first)).await.unwrap()[0].version;
    let path = directory.path().join("copy.sqlite3");
    log.backup(&path).await.unwrap();
    // What comes later is not in it, and it is not written over.
    log.commit(Commit::one(write("s", version, "y", &["3"])))
        .await
        .unwrap();
    let before = fs::read(&path).unwrap();
    let refused = log.backup(&path).await.unwrap_err();
    assert!(
        matches!(&refused, BackupError::Exists(named) if *named == path),
        "{refused}"
    );
    assert!(fs::read(&path).unwrap() == before);

    let copy = open(&path).unwrap();
    let found = copy.head(&stream("s")).await.unwrap().unwrap();
    assert_eq!((found.version, found.head.blobs), (version, vec![blob]));
    assert_eq!(
        contents(&copy, "s").await,
        [(1, "1".to_owned()), (2, "2".to_owned())]
    );
    assert!(read_blob(&copy, blob).await.unwrap() == content);
    assert_eq!(copy.check_integrity().await.unwrap(), Vec::<String>::new());
    // It goes on like any other.
    copy.commit(Commit::one(write("s", version, "z", &["other"])))
        .await
        .unwrap();

    let nowhere = log.backup(Path::new("/proc/copy.sqlite3")).await.unwrap_err();
    assert!(matches!(nowhere, BackupError::File { .. }), "{nowhere:?}");
    let left: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".backup"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn backups_can_be_made_while_the_log_is_written() {
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let writing = log.clone();
    let writer = tokio::spawn(async move {
        let mut version = Version::NONE;
        for _ in 0..300 {
            let commit = Commit::one(write("s", version, "x", &["event"]));
            version = writing.commit(commit).await.unwrap()[0].version;
        }
    });
    for round in 0..5 {
        let path = directory.path().join(format!("copy{round}.sqlite3"));
        log.backup(&path).await.unwrap();
        let copy = open(&path).unwrap();
        assert_eq!(copy.check_integrity().await.unwrap(), Vec::<String>::new());
    }
    writer.await.unwrap();
}

#[tokio::test]
async fn the_files_stay_short() {
    const WAL_LIMIT: u64 = 20 * 1024 * 1024;
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let mut version = Version::NONE;
    let mut largest = 0;
    for round in 0..60 {
        let blob = put(&log, &noise(4 * CHUNK_BYTES, round)).await;
        let commit = Commit::one(with_blobs(write("s", version, "x", &["event"]), &[blob]));
        version = log.commit(commit).await.unwrap()[0].version;
        log.read(&stream("s"), Sequence::START, 10).await.unwrap();
        largest = largest.max(log.sizes().await.unwrap().wal_bytes);
    }
    assert!((1..WAL_LIMIT).contains(&largest), "{largest}");

    // All but the last blob are free to go, but they are pinned: another process has no pins.
    drop(log);
    let log = sqlite_in_real_time(&directory);
    assert_eq!(log.collect_blobs().await.unwrap().blobs, 59);
    let before = log.sizes().await.unwrap();
    assert!(before.free_bytes > 59 * 4 * CHUNK_BYTES as u64, "{before:?}");
    log.compact().await.unwrap();
    let after = log.sizes().await.unwrap();
    assert_eq!((after.free_bytes, after.wal_bytes), (0, 0));
    assert!(after.total_bytes < 3 * 1024 * 1024, "{after:?}");
    assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
    assert!(matches!(log.health(), Health::Writable));
}

/// A long reader keeps the write-ahead log from starting over, and nobody waits for it.
#[tokio::test]
async fn compaction_does_not_wait_for_a_reader() {
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let commit = Commit::one(write("s", Version::NONE, "x", &["1"]));
    let version = log.commit(commit).await.unwrap()[0].version;
    let reader = rusqlite::Connection::open(directory.path().join("log.sqlite3")).unwrap();
    let reading = reader.unchecked_transaction().unwrap();
    reading
        .query_row("SELECT count(*) FROM events", [], |_| Ok(()))
        .unwrap();
    log.commit(Commit::one(write("s", version, "x", &["2"])))
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(3), log.compact())
        .await
        .unwrap()
        .unwrap();
    assert!(log.sizes().await.unwrap().wal_bytes > 0);
    drop(reading);
    log.compact().await.unwrap();
    assert_eq!(log.sizes().await.unwrap().wal_bytes, 0);
}

/// Readers that follow each other without a pause never let the write-ahead log start over by itself.
#[tokio::test(flavor = "multi_thread")]
async fn overlapping_readers_do_not_make_the_write_ahead_log_endless() {
    const LIMIT: u64 = 110 * 1024 * 1024;
    let directory = TempDir::new().unwrap();
    let log = sqlite_in_real_time(&directory);
    let path = directory.path().join("log.sqlite3");
    let token = CancellationToken::new();
    let scope = token.scope();
    let readers = std::thread::spawn(move || {
        let connections = [(); 2].map(|()| rusqlite::Connection::open(&path).unwrap());
        // A reader that takes some milliseconds, and starts before the one before it has ended.
        let begin = |connection: &rusqlite::Connection| {
            connection.execute_batch("BEGIN").unwrap();
            let slowly =
                "WITH RECURSIVE number (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM number WHERE x < 5000)
                SELECT (SELECT count(*) FROM streams) + count(*) FROM number";
            connection.query_row(slowly, [], |_| Ok(())).unwrap();
        };
        begin(&connections[0]);
        for next in [1, 0].into_iter().cycle().take_while(|_| !scope.is_cancelled()) {
            begin(&connections[next]);
            connections[1 - next].execute_batch("COMMIT").unwrap();
        }
    });
    let (mut version, mut largest) = (Version::NONE, 0);
    for _ in 0..1400 {
        let text = "x".repeat(100_000);
        let commit = Commit::one(write("s", version, "x", &[&text]));
        version = log.commit(commit).await.unwrap()[0].version;
        largest = largest.max(log.sizes().await.unwrap().wal_bytes);
    }
    token.cancel(Cause::new("test", "enough"));
    readers.join().unwrap();
    assert!(largest < LIMIT, "{largest}");
}
