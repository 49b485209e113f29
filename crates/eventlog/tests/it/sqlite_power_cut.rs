//! A power cut: whatever of the write-ahead log has reached the disk, the file opens with a gapless prefix of what
//! was committed; and what was acknowledged is all there if the disk kept what it said it had.

use std::{
    fs,
    path::{Path, PathBuf},
};

use eventlog::{Commit, Log, SqliteOptions, Version};
use kernel::SystemClock;
use tempfile::TempDir;

use crate::support::{contents, put, read_blob, stream, with_blobs, write};

const COMMITS: u64 = 40;
const WAL_HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + 4096;

fn open(path: PathBuf) -> Log {
    Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Commits number by number: two streams move together, and the head says how far.
async fn commit_all(log: &Log) {
    let mut versions = [Version::NONE; 2];
    for number in 1..=COMMITS {
        let status = number.to_string();
        let blob = put(log, format!("blob {number}").as_bytes()).await;
        let one = with_blobs(write("one", versions[0], &status, &["event"]), &[blob]);
        let two = write("two", versions[1], &status, &["event", "event"]);
        let committed = log.commit(Commit::all(vec![one, two])).await.unwrap();
        versions = [committed[0].version, committed[1].version];
    }
}

/// How many commits a copy holds, after a look at whether they are whole.
async fn commits_in(log: &Log) -> u64 {
    assert_eq!(log.check_integrity().await.unwrap(), Vec::<String>::new());
    let (one, two) = (contents(log, "one").await, contents(log, "two").await);
    let found = one.len() as u64;
    let places = |rows: &[(u64, String)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
    assert_eq!(places(&one), (1..=found).collect::<Vec<_>>());
    assert_eq!(places(&two), (1..=2 * found).collect::<Vec<_>>());
    if found > 0 {
        let head = log.head(&stream("one")).await.unwrap().unwrap();
        assert_eq!(&*head.head.status, found.to_string());
        let content = read_blob(log, head.head.blobs[0]).await.unwrap();
        assert_eq!(content, format!("blob {found}").into_bytes());
    }
    found
}

#[tokio::test]
async fn a_power_cut_leaves_a_gapless_prefix() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let log = open(path.clone());
    commit_all(&log).await;
    let (main, wal) = (fs::read(&path).unwrap(), fs::read(beside(&path, "-wal")).unwrap());
    drop(log);

    let frames = (wal.len() - WAL_HEADER_BYTES) / FRAME_BYTES;
    assert!(frames as u64 > COMMITS, "{frames}");
    let boundaries = (0..=frames).map(|frame| WAL_HEADER_BYTES + frame * FRAME_BYTES);
    let between = (0..frames).step_by(7).flat_map(|frame| {
        let start = WAL_HEADER_BYTES + frame * FRAME_BYTES;
        [start + 1, start + 24, start + FRAME_BYTES - 1]
    });
    let mut lengths: Vec<usize> = [0, 1, 31].into_iter().chain(boundaries).chain(between).collect();
    lengths.sort_unstable();

    let mut before = 0;
    for (copy, length) in lengths.iter().enumerate() {
        let path = directory.path().join(format!("copy{copy}.sqlite3"));
        fs::write(&path, &main).unwrap();
        fs::write(beside(&path, "-wal"), &wal[..*length]).unwrap();
        let found = commits_in(&open(path)).await;
        assert!(found >= before, "{length} bytes hold less than fewer bytes did");
        before = found;
    }
    assert_eq!(before, COMMITS, "something that was acknowledged is gone");
}

/// The last frames of the write-ahead log are not what was written: what came before them is all there.
#[tokio::test]
async fn torn_frames_are_not_believed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("log.sqlite3");
    let log = open(path.clone());
    commit_all(&log).await;
    let (main, wal) = (fs::read(&path).unwrap(), fs::read(beside(&path, "-wal")).unwrap());
    drop(log);
    let frames = (wal.len() - WAL_HEADER_BYTES) / FRAME_BYTES;
    for frame in (0..frames).step_by(5) {
        let at = WAL_HEADER_BYTES + frame * FRAME_BYTES;
        let count = async |name: &str, wal: &[u8]| {
            let path = directory.path().join(format!("{name}{frame}.sqlite3"));
            fs::write(&path, &main).unwrap();
            fs::write(beside(&path, "-wal"), wal).unwrap();
            commits_in(&open(path)).await
        };
        let mut torn = wal.clone();
        torn[at + 24 + 2000] ^= 0xFF;
        assert_eq!(count("torn", &torn).await, count("cut", &wal[..at]).await);
    }
}
