//! What several contents have in common is kept once, and what is dropped is really gone.

use std::fs;
use std::path::Path;

use eventlog::{CHUNK_BYTES, Commit, Log, SqliteOptions, Version};
use kernel::SystemClock;
use tempfile::TempDir;

use crate::support::{noise, put, read_blob, stream, with_blobs, write};

fn open(path: &Path) -> Log {
    let path = path.to_owned();
    Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap()
}

async fn blob_bytes(log: &Log) -> u64 {
    log.sizes().await.unwrap().blob_bytes
}

#[tokio::test]
async fn a_change_to_a_large_content_costs_about_a_chunk() {
    let directory = TempDir::new().unwrap();
    let log = open(&directory.path().join("log.sqlite3"));
    let first = noise(8 << 20, 1);
    let mut byte = first.clone();
    byte[5 << 20] ^= 1;
    let mut longer = byte.clone();
    longer.splice(
        100..100,
        *b"three more bytes, so that everything after them moves",
    );
    let mut ids = vec![put(&log, &first).await];
    let whole = blob_bytes(&log).await;
    for changed in [&byte, &longer] {
        let before = blob_bytes(&log).await;
        ids.push(put(&log, changed).await);
        let cost = blob_bytes(&log).await - before;
        assert!(cost <= 3 * CHUNK_BYTES as u64, "{cost} bytes");
    }
    assert!(read_blob(&log, ids[1]).await.unwrap() == byte);

    // The first goes, and what the others have of it stays.
    log.unpin_blobs(&ids[..1]).await.unwrap();
    assert_eq!(log.collect_blobs().await.unwrap().blobs, 1);
    assert!(read_blob(&log, ids[2]).await.unwrap() == longer);
    assert!(blob_bytes(&log).await <= whole + 6 * CHUNK_BYTES as u64);
    log.unpin_blobs(&ids).await.unwrap();
    assert_eq!(log.collect_blobs().await.unwrap().blobs, 2);
    log.compact().await.unwrap();
    let sizes = log.sizes().await.unwrap();
    assert_eq!(sizes.blob_bytes, 0);
    assert!(sizes.total_bytes < 1 << 20, "space was given back: {sizes:?}");
}

#[tokio::test]
async fn what_was_dropped_is_not_found_in_the_files() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let log = open(&path);
    // As it is: noise does not compress, so it would stand in the file byte by byte.
    let secret = noise(3000, 5);
    let large = [noise(2 * CHUNK_BYTES, 6), secret.clone(), noise(CHUNK_BYTES, 7)].concat();
    let text = "a secret in the body of an event";
    let ids = [put(&log, &secret).await, put(&log, &large).await];
    let commit = Commit::one(with_blobs(write("s", Version::NONE, "x", &[text]), &ids));
    let seen = log.commit(commit).await.unwrap()[0].version;
    let other = Commit::one(write("other", Version::NONE, "x", &["somebody else's"]));
    log.commit(other).await.unwrap();
    let is_found = |wanted: &[u8]| {
        let files = fs::read_dir(directory.path()).unwrap();
        files
            .map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .any(|file| file.windows(wanted.len()).any(|part| part == wanted))
    };
    assert!(is_found(&secret[..500]) && is_found(text.as_bytes()));
    log.remove(vec![(stream("s"), seen)]).await.unwrap();
    log.unpin_blobs(&ids).await.unwrap();
    log.collect_blobs().await.unwrap();
    log.compact().await.unwrap();
    assert!(!is_found(&secret[..500]) && !is_found(&secret[2000..2500]) && !is_found(text.as_bytes()));
    assert!(is_found(b"somebody else's"));
}
