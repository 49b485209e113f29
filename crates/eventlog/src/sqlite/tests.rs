//! What happens when the log can't be written. A limit on the pages of the file simulates a full disk.

use std::{sync::Arc, time::Duration};

use kernel::{Clock, ManualClock, SystemClock};
use tempfile::TempDir;

use super::{Sqlite, SqliteOptions, request::Request, writer_state::WriterState};
use crate::blob_io::StreamBlocks;
use crate::{
    blob::{BlobError, BlobId, BlobInfo},
    commit::{Commit, CommitError, Durability, Head, NewEvent, Write},
    error::LogError,
    lease::LeaseError,
    names::{Sequence, StreamId, Version},
    record::{Record, RestoreError},
    store::{Health, RetentionPolicy, Store},
};

struct Small {
    store: Sqlite,
    _directory: TempDir,
}

impl Small {
    /// A log whose clock stands still: a transaction is written out only when somebody waits for it.
    fn open() -> Self {
        Self::open_with(ManualClock::new())
    }

    fn open_with(clock: Arc<dyn Clock>) -> Self {
        let directory = TempDir::new().unwrap();
        let options = SqliteOptions {
            path: directory.path().join("log.sqlite3"),
        };
        let store = Sqlite::open(&options, clock, Default::default()).unwrap();
        Self {
            store,
            _directory: directory,
        }
    }

    async fn limit(&self, pages: u32) {
        let limited = self.store.ask(|reply| Request::LimitPages { pages, reply });
        limited.await.unwrap();
    }

    fn is_writable(&self) -> bool {
        match self.store.health() {
            Health::Writable => true,
            Health::Refusing { reason } => {
                assert!(matches!(reason, LogError::DiskFull), "{reason:?}");
                false
            }
        }
    }

    /// Appends until the disk is full, and returns what was acknowledged.
    async fn fill(&self, durability: Durability) -> (Version, u64) {
        let mut acknowledged = (Version::NONE, 0);
        for _ in 0..10_000 {
            let mut commit = Commit::one(append(acknowledged.0));
            commit.durability = durability;
            match self.store.commit(commit).await {
                Ok(committed) => acknowledged = (committed[0].version, acknowledged.1 + 1),
                Err(CommitError::Log(LogError::DiskFull)) => return acknowledged,
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("the disk was never full");
    }
}

fn stream() -> StreamId {
    StreamId::new("s").unwrap()
}

fn append(expected: Version) -> Write {
    let body: Arc<[u8]> = Arc::from(vec![b'x'; 2000]);
    Write {
        stream: stream(),
        expected,
        head: Some(Head {
            kind: Arc::from("job"),
            status: Arc::from("open"),
            body: Arc::clone(&body),
            blobs: Vec::new(),
        }),
        events: vec![NewEvent {
            kind: Arc::from("output"),
            body,
            blobs: Vec::new(),
        }],
    }
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_space_again() {
    let small = Small::open();
    small.limit(100).await;
    let (version, acknowledged) = small.fill(Durability::Durable).await;
    assert!(acknowledged > 10 && !small.is_writable());

    // Nothing that was acknowledged is lost, nothing that was refused is there, and reads work.
    let page = small
        .store
        .read(&stream(), Sequence::START, 10_000)
        .await
        .unwrap();
    assert_eq!(
        (page.last.get(), page.events.len() as u64),
        (acknowledged, acknowledged)
    );
    let head = small.store.head(&stream()).await.unwrap().unwrap();
    assert_eq!(head.version, version);
    assert!(matches!(
        small.store.commit(Commit::one(append(version))).await,
        Err(CommitError::Log(LogError::DiskFull))
    ));
    assert!(!small.is_writable());

    // There is space again: the next write succeeds, and the health says so. No version is reused.
    small.limit(1000).await;
    let committed = small.store.commit(Commit::one(append(version))).await.unwrap()[0];
    assert!(small.is_writable());
    assert!(committed.version > Version::from_u64(version.get() + 2));
    assert_eq!(committed.last_sequence.get(), acknowledged + 1);
    assert_eq!(small.store.check_integrity().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_full_log_can_be_trimmed() {
    let small = Small::open();
    small.limit(100).await;
    let (version, acknowledged) = small.fill(Durability::Durable).await;
    let keep_one = RetentionPolicy {
        max_bytes_per_stream: Some(2000),
        max_age: None,
    };
    let trimmed = small.store.trim(Arc::from("job"), keep_one).await.unwrap();
    assert_eq!(trimmed[0].1.events, acknowledged - 1);
    assert!(small.is_writable());
    small.store.commit(Commit::one(append(version))).await.unwrap();
}

/// Relaxed commits may be lost when the disk is full, but never in the middle.
#[tokio::test]
async fn relaxed_commits_on_a_full_disk_leave_a_prefix() {
    let small = Small::open_with(SystemClock::shared());
    small.limit(100).await;
    let (_, acknowledged) = small.fill(Durability::Relaxed).await;
    let page = small
        .store
        .read(&stream(), Sequence::START, 10_000)
        .await
        .unwrap();
    let found: Vec<_> = page.events.iter().map(|event| event.sequence.get()).collect();
    assert_eq!(found, (1..=page.last.get()).collect::<Vec<_>>());
    assert!(page.last.get() <= acknowledged);
}

/// A stream that was acknowledged and rolled back isn't cached either.
#[tokio::test]
async fn a_stream_that_was_taken_back_can_be_made() {
    let small = Small::open();
    small.limit(100).await;
    let made = Commit::one(append(Version::NONE)).relaxed();
    let lost = small.store.commit(made).await.unwrap()[0].version;
    let mut large = append(Version::NONE);
    large.stream = StreamId::new("large").unwrap();
    large.events[0].body = Arc::from(vec![0; 1 << 20]);
    let full = small.store.commit(Commit::one(large)).await.unwrap_err();
    assert!(matches!(full, CommitError::Log(LogError::DiskFull)), "{full:?}");
    let late = small.store.commit(Commit::one(append(lost))).await.unwrap_err();
    assert!(
        matches!(late, CommitError::RolledBack { actual: None, .. }),
        "{late:?}"
    );
    let again = small.store.commit(Commit::one(append(Version::NONE))).await;
    assert_eq!(again.unwrap()[0].last_sequence.get(), 1);
}

/// A writer whose write was rolled back is told so; one that lost a race gets a conflict.
#[tokio::test]
async fn what_was_taken_back_is_no_conflict() {
    let small = Small::open();
    let kept = small
        .store
        .commit(Commit::one(append(Version::NONE)))
        .await
        .unwrap()[0]
        .version;
    small.limit(100).await;
    let mut large = append(Version::NONE);
    large.events[0].body = Arc::from(vec![0; 1 << 20]);
    let mut lost = Vec::new();
    for name in ["large", "larger"] {
        let acknowledged = small.store.commit(Commit::one(append(kept)).relaxed()).await;
        lost.push(acknowledged.unwrap()[0].version);
        large.stream = StreamId::new(name).unwrap();
        small.store.commit(Commit::one(large.clone())).await.unwrap_err();
    }
    small.limit(1000).await;
    for lost in &lost {
        let late = small.store.commit(Commit::one(append(*lost))).await.unwrap_err();
        let CommitError::RolledBack {
            actual: Some(actual), ..
        } = late
        else {
            panic!("{late:?}");
        };
        assert_eq!(actual.version, kept);
    }
    // The version before the rollback is still valid. Writers that saw the lost ones have been overtaken.
    small.store.commit(Commit::one(append(kept))).await.unwrap();
    for late in [kept, lost[0], lost[1]] {
        let refused = small.store.commit(Commit::one(append(late))).await.unwrap_err();
        assert!(matches!(refused, CommitError::Conflict { .. }), "{refused:?}");
    }
}

#[tokio::test]
async fn everything_else_that_writes_says_that_the_disk_is_full() {
    let small = Small::open();
    small.limit(100).await;
    small.fill(Durability::Durable).await;
    let content = vec![0; 1 << 20];
    let noise: Vec<u8> = (0..1 << 20)
        .map(|index: u32| blake3::hash(&index.to_le_bytes()).as_bytes()[0])
        .collect();
    let put = crate::blob_io::put(&small.store, StreamBlocks(&noise[..]))
        .await
        .unwrap_err();
    assert!(matches!(put, BlobError::Log(LogError::DiskFull)), "{put:?}");
    assert!(!small.is_writable());
    // What fits still goes in.
    crate::blob_io::put(&small.store, StreamBlocks(&content[..100]))
        .await
        .unwrap();
    assert!(small.is_writable());
}

/// Chunks are acknowledged before they are on disk. If one is rolled back, the end of the upload notices.
#[tokio::test]
async fn an_upload_that_lost_a_chunk_is_no_blob() {
    let small = Small::open();
    small.limit(100).await;
    let id = BlobId::from_bytes([7; 32]);
    let info = |chunks: u32| BlobInfo {
        size_bytes: 0,
        stored_bytes: u64::from(100 * chunks),
        chunks,
    };
    let upload = small.store.begin_upload().await.unwrap();
    // This waits for the disk, so that the upload is there and the chunk after it isn't.
    small
        .store
        .commit(Commit::one(append(Version::NONE)))
        .await
        .unwrap();
    small.store.put_chunk(upload, 0, vec![1; 100]).await.unwrap();
    let large = small
        .store
        .put_chunk(upload, 1, vec![1; 1 << 20])
        .await
        .unwrap_err();
    assert!(matches!(large, BlobError::Log(LogError::DiskFull)), "{large:?}");
    for chunks in [1, 2] {
        let finished = small
            .store
            .finish_upload(upload, id, info(chunks))
            .await
            .unwrap_err();
        assert!(matches!(finished, BlobError::UploadLost), "{finished:?}");
        assert_eq!(small.store.blob_info(id).await.unwrap(), None);
    }
    small.store.put_chunk(upload, 0, vec![1; 100]).await.unwrap();
    small.store.finish_upload(upload, id, info(1)).await.unwrap();
    assert_eq!(small.store.blob_info(id).await.unwrap(), Some(info(1)));
}

/// A lease that couldn't be written is held by nobody, and its token isn't reused.
#[test]
fn a_lease_that_was_taken_back_is_free() {
    let directory = TempDir::new().unwrap();
    let (connection, _lock, _mark) = super::open::open(&directory.path().join("log.sqlite3")).unwrap();
    let mut state = WriterState::new(connection, SystemClock::shared()).unwrap();
    let ttl = Duration::from_secs(60);
    let mut lease = |owner: &str, ends_well: bool| {
        state.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let taken = state.lease(Arc::from("key"), Arc::from(owner), ttl);
        if ends_well {
            state.write_out().unwrap();
        } else {
            assert!(state.roll_back());
        }
        taken.map(|lease| lease.token.get())
    };
    assert_eq!(lease("one", false).unwrap(), 1);
    assert_eq!(lease("two", true).unwrap(), 2);
    assert!(matches!(lease("three", false), Err(LeaseError::Held { owner, .. }) if &*owner == "two"));
    // The refused request took nothing from the holder.
    assert!(matches!(lease("four", true), Err(LeaseError::Held { owner, .. }) if &*owner == "two"));
}

#[tokio::test]
async fn an_import_that_does_not_fit_leaves_the_log_empty() {
    let small = Small::open();
    small.limit(100).await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let sending = async move {
        for number in 0..1000_u32 {
            // Each chunk differs, because equal chunks are stored once.
            let compressed = [&number.to_le_bytes()[..], &[7; 10_000]].concat();
            if sender.send(Record::Chunk { compressed }).await.is_err() {
                return;
            }
        }
        panic!("it fitted");
    };
    let (restored, ()) = tokio::join!(small.store.restore(receiver), sending);
    assert!(
        matches!(restored, Err(RestoreError::Log(LogError::DiskFull))),
        "{restored:?}"
    );
    assert!(!small.is_writable());
    let sizes = small.store.sizes().await.unwrap();
    assert_eq!((sizes.streams, sizes.blobs), (0, 0));
    small
        .store
        .commit(Commit::one(append(Version::NONE)))
        .await
        .unwrap();
    assert!(small.is_writable());
}
