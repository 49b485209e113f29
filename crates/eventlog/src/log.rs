//! The log as everybody else sees it: an engine, and the tails that follow it.

use std::{
    error::Error,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use kernel::{Clock, Scope};
use tokio::io::AsyncRead;

use crate::{
    audit,
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    blob_io::{self, BlobReader, FileBlocks, StreamBlocks},
    bookmark::Bookmark,
    commit::{Commit, CommitError, Committed, Head, StoredHead, check_streams},
    error::{BackupError, LogError, OpenError},
    faults::{Faults, Faulty},
    hub::Hub,
    lease::{Lease, LeaseError},
    moves::Moves,
    names::{Sequence, StreamId, Version, check_name},
    postgres::{Postgres, PostgresOptions},
    quarantine::{Quarantine, Quarantined},
    salvage,
    sqlite::{Sqlite, SqliteOptions},
    store::{HeadsOrder, HeadsQuery, Health, MovedQuery, Page, RetentionPolicy, ServerInfo, Sizes, Store},
    tail::Tail,
    time::{LogTime, UnixMs, WallClock},
};

/// Finds out why a head cannot be read by whoever wrote it; nothing if it can be.
pub type HeadCheck = fn(&StreamId, &Head) -> Option<String>;

/// How many heads are held in memory at a time where all of a kind are looked at.
const PAGE_HEADS: u32 = 256;

/// A durable log. Clones are the same log.
#[derive(Clone, Debug)]
pub struct Log {
    store: Arc<dyn Store>,
    hub: Hub,
    quarantine: Quarantine,
    time: LogTime,
}

impl Log {
    /// Opens a log in a file of its own, which is made if need be. Only one process may have it open.
    pub fn open_sqlite(options: &SqliteOptions, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let (hub, quarantine) = (Hub::default(), Quarantine::default());
        let time = LogTime::of_machine(clock.now());
        let store = Arc::new(Sqlite::open(options, clock, (hub.clone(), quarantine.clone()))?);
        Ok(Self {
            store,
            hub,
            quarantine,
            time,
        })
    }

    /// Opens a log in a Postgres database, which several processes may share. It must be inside a runtime of tokio,
    /// and the log works as long as that runtime does. *Cancel safety*: dropped half-way, the tables are as they
    /// were or as they should be.
    pub async fn open_postgres(options: &PostgresOptions) -> Result<Self, OpenError> {
        let (hub, quarantine) = (Hub::default(), Quarantine::default());
        let (store, time) = Postgres::open(options, hub.clone()).await?;
        Ok(Self {
            store: Arc::new(store),
            hub,
            quarantine,
            time,
        })
    }

    /// The same log, with faults that a test has planned.
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(&self, faults: &Faults) -> Self {
        let (store, faults) = (Arc::clone(&self.store), faults.clone());
        Self {
            store: Arc::new(Faulty { store, faults }),
            hub: self.hub.clone(),
            quarantine: self.quarantine.clone(),
            time: self.time.clone(),
        }
    }

    /// What time it is for everybody who has this log, with a clock to wait by.
    #[must_use]
    pub fn wall_clock(&self, clock: Arc<dyn Clock>) -> WallClock {
        WallClock::new(clock, self.time.clone())
    }

    /// What time it is for everybody who has this log.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.time.at(Instant::now())
    }

    /// Makes all writes, or none and says why. *Cancel safety*: dropped half-way, the commit may or may not be
    /// made, but never in part.
    pub async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError> {
        commit.check()?;
        self.store.commit(commit).await
    }

    /// Forgets streams whole: head, events and references to blobs; all of them or none, each only if it is at the
    /// version that the caller saw. When this returns, they are gone for good. A stream of the same name that is made
    /// later is another one: its events count from 1, and its versions were never used before. A tail starts over,
    /// see [`TailItem::Resync`](crate::TailItem). *Cancel safety*: dropped half-way, all of them may or may not be gone.
    pub async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        check_streams(streams.iter().map(|(stream, _)| stream))?;
        self.store.remove(streams).await
    }

    /// Tells from now on that a stream whose name begins with `prefix` and a slash was written or removed, by
    /// whomever.
    pub fn moved(&self, prefix: &str) -> Moves {
        Moves::new(self.hub.watch_prefix(prefix))
    }

    /// The head of a stream.
    pub async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError> {
        self.store.head(stream).await
    }

    /// Heads by kind and status, in the order that the query names.
    pub async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.heads(query).await
    }

    /// Gives every head of a kind (and status) to somebody, in the order of their streams, page by page.
    pub async fn each_head(
        &self,
        kind: &str,
        status: Option<&str>,
        mut look: impl FnMut(StoredHead),
    ) -> Result<(), LogError> {
        let mut after = None;
        loop {
            let query = HeadsQuery {
                kind: Arc::from(kind),
                status: status.map(Arc::from),
                order: HeadsOrder::OldestFirst,
                after: after.take(),
                limit: PAGE_HEADS,
            };
            let page = self.heads(query).await?;
            let is_last = page.len() < PAGE_HEADS as usize;
            after = page.last().map(|last| last.stream.clone());
            page.into_iter().for_each(&mut look);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Hands on what was read from a head. If it could not be read, the head is quarantined: it stays in the log as it
    /// is, and is logged once.
    pub fn looked_at<T, E: Error>(&self, stored: &StoredHead, read: Result<T, E>) -> Result<T, E> {
        self.quarantine.look(stored, &read);
        read
    }

    /// The same for lists, which leave out what is quarantined.
    pub fn readable<T, E: Error>(&self, stored: &StoredHead, read: Result<T, E>) -> Option<T> {
        self.looked_at(stored, read).ok()
    }

    /// The heads that could not be read since the log was opened, by name.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.quarantine.list()
    }

    /// Takes a head off that list, because it is gone or can be read.
    pub fn end_quarantine(&self, stream: &str) {
        self.quarantine.forget(stream);
    }

    /// Heads of a kind, the one that moved last first. *Cancel safety*: it only reads.
    pub async fn last_moved(&self, query: MovedQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.last_moved(query).await
    }

    /// Events after a place, oldest first. A stream that does not exist has none.
    pub async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError> {
        self.store.read(stream, after, limit).await
    }

    /// Follows a stream from a place on: what is there, then what comes, until the scope is cancelled. The
    /// stream need not exist yet.
    pub fn tail(&self, stream: &StreamId, after: impl Into<Bookmark>, scope: &Scope) -> Tail {
        let progress = self.hub.watch(stream);
        Tail::new(
            Arc::clone(&self.store),
            stream.clone(),
            progress,
            after.into(),
            scope.clone(),
        )
    }

    /// Takes a lease that is free or expired, for a time.
    pub async fn lease(&self, key: &str, owner: &str, ttl: Duration) -> Result<Lease, LeaseError> {
        check_name(key)?;
        check_name(owner)?;
        self.store.lease(Arc::from(key), Arc::from(owner), ttl).await
    }

    /// Extends a lease that is still held: from now on for that time.
    pub async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError> {
        self.store.renew(lease, ttl).await
    }

    /// Gives a lease back that is still held.
    pub async fn release(&self, lease: &Lease) -> Result<(), LeaseError> {
        self.store.release(lease).await
    }

    /// Puts content into the log, chunk by chunk, and says where it is. It is kept for ten minutes, and then as
    /// long as a head or an event refers to it. *Cancel safety*: dropped half-way, what was put is collected later.
    pub async fn put_blob(
        &self,
        content: impl AsyncRead + Unpin + Send,
    ) -> Result<(BlobId, BlobInfo), BlobError> {
        blob_io::put(&*self.store, StreamBlocks(content)).await
    }

    /// The same with the content of a file, from its beginning. What it has of holes costs nothing.
    pub async fn put_file(&self, file: File) -> Result<(BlobId, BlobInfo), BlobError> {
        blob_io::put(&*self.store, FileBlocks::new(file)).await
    }

    /// Reads content from its start, chunk by chunk.
    pub async fn read_blob(&self, id: BlobId) -> Result<BlobReader, BlobError> {
        BlobReader::open(Arc::clone(&self.store), id).await
    }

    /// Reads several contents, whole, in the order of their addresses. All of them are in memory at once, so they had
    /// better be small.
    pub async fn read_blobs(&self, ids: &[BlobId]) -> Result<Vec<Vec<u8>>, BlobError> {
        blob_io::read_all(&self.store, ids).await
    }

    /// What is known of a blob; `None` if there is none of that address.
    pub async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError> {
        self.store.blob_info(id).await
    }

    /// No longer keeps blobs just because they were put a short while ago, so that the next
    /// [collection](Self::collect_blobs) drops those that nothing refers to. A commit that is about to refer to one is
    /// refused then, and its writer puts the content again.
    pub async fn unpin_blobs(&self, ids: &[BlobId]) -> Result<(), LogError> {
        self.store.unpin_blobs(ids.to_vec()).await
    }

    /// Drops blobs that nothing refers to any more, and uploads that were given up. *Cancel safety*: dropped
    /// half-way, the rest is dropped the next time; so it is with [`trim`](Self::trim) and
    /// [`compact`](Self::compact).
    pub async fn collect_blobs(&self) -> Result<Collected, LogError> {
        self.store.collect_blobs().await
    }

    /// Drops events of the streams of a kind that are older or more than the policy allows, and says what was
    /// dropped of which stream. Tails that have not seen them are told to resync.
    pub async fn trim(
        &self,
        kind: &str,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
        self.store.trim(Arc::from(kind), policy).await
    }

    /// Drops the events of one stream up to a place, if the stream is at the version that the caller saw, and says how
    /// many. That changes neither its state nor its version. Tails that have not seen them are told to resync. If the stream
    /// moves on meanwhile, that is a conflict, and the oldest of them may be gone. *Cancel safety*: dropped half-way, the
    /// same.
    pub async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError> {
        self.store.drop_events(stream, up_to, seen).await
    }

    /// How large the log is.
    pub async fn sizes(&self) -> Result<Sizes, LogError> {
        self.store.sizes().await
    }

    /// Reads everything, and lists what is not whole. It takes as long as the log is large, and writes nothing.
    pub async fn check_integrity(&self) -> Result<Vec<String>, LogError> {
        self.check_with(|_, _| None).await
    }

    /// The same, and heads that `check` finds something wrong with are listed and quarantined.
    pub async fn check_with(&self, check: HeadCheck) -> Result<Vec<String>, LogError> {
        let audited = audit::problems(&*self.store, check).await?;
        for head in audited.unreadable {
            self.quarantine
                .note(&head.stream, &head.kind, &std::io::Error::other(head.reason));
        }
        Ok(audited.problems)
    }

    /// The same for a log in a file that no process has open. It changes nothing in it.
    pub fn check_file(path: &Path, check: HeadCheck) -> Result<Vec<String>, OpenError> {
        audit::problems_of_file(path, check)
    }

    /// The file that says that writes were lost, because somebody removed the write-ahead log while no process had it
    /// open. It stays until it is removed by hand.
    pub fn lost_writes(&self) -> Option<PathBuf> {
        self.store.lost_writes()
    }

    /// Gives space back that is no longer used.
    pub async fn compact(&self) -> Result<(), LogError> {
        self.store.compact().await
    }

    /// Writes a copy of one moment to a new file, while the log is in use. It is a log that can be opened. The name
    /// appears when the copy is whole and on disk. Of a log that is damaged in places, the rest is copied, and what was left
    /// out is said. *Cancel safety*: dropped half-way, it may still be made.
    pub async fn backup(&self, path: &Path) -> Result<Vec<String>, BackupError> {
        match self.store.backup(path.to_owned()).await {
            Ok(()) => Ok(Vec::new()),
            Err(BackupError::Log(LogError::Corrupt(_))) => salvage::backup(&*self.store, path).await,
            Err(error) => Err(error),
        }
    }

    /// Whether the log takes writes.
    pub fn health(&self) -> Health {
        self.store.health()
    }

    /// The server that keeps the log, if it is not in a file.
    #[must_use]
    pub fn server(&self) -> Option<&ServerInfo> {
        self.store.server()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }
}
