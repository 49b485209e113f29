//! The log as its users see it: an engine, and the tails that follow it.

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
    changes::StreamChanges,
    commit::{Commit, CommitError, Committed, Head, StoredHead, check_streams},
    error::{BackupError, LogError, OpenError},
    faults::{Faults, Faulty},
    hub::Hub,
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version, check_name},
    postgres::{Postgres, PostgresOptions},
    quarantine::{Quarantine, Quarantined},
    salvage,
    sqlite::{Sqlite, SqliteOptions},
    store::{
        HeadsOrder, HeadsQuery, Health, Page, RecentlyChangedQuery, RetentionPolicy, ServerInfo, Sizes, Store,
    },
    tail::Tail,
    time::{LogTime, UnixMs, WallClock},
};

/// Returns why the writer of a head couldn't read it, or `None` if it can.
pub type HeadCheck = fn(&StreamId, &Head) -> Option<String>;

/// How many heads are held in memory at a time when all of a kind are read.
const PAGE_HEADS: u32 = 1_000;

/// The heads that a query finds, page by page; see [`Log::pages`].
#[derive(Debug)]
pub struct HeadPages {
    log: Log,
    /// `None` after the last page.
    query: Option<HeadsQuery>,
}

impl HeadPages {
    /// The next page, which is never empty; `None` after the last one. *Cancel safety*: if the future is dropped,
    /// the same page comes next.
    pub async fn next(&mut self) -> Result<Option<Vec<StoredHead>>, LogError> {
        let Some(query) = &mut self.query else {
            return Ok(None);
        };
        let page = self.log.heads(query.clone()).await?;
        match page.last() {
            Some(last) if page.len() >= query.limit as usize => query.after = Some(last.stream.clone()),
            _ => self.query = None,
        }
        Ok(Some(page).filter(|page| !page.is_empty()))
    }
}

/// A durable log. Clones refer to the same log.
///
/// ```
/// use std::time::Duration;
/// use eventlog::{
///     Commit, CommitError, Head, Log, NewEvent, Sequence, SqliteOptions, StreamId, TailItem, Version, Write,
/// };
/// use kernel::{CancellationToken, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("log.sqlite3");
/// let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared())?;
///
/// let stream = StreamId::new("note/1")?;
/// let write = |expected: Version, text: &str| -> Result<Commit, CommitError> {
///     Ok(Commit::one(Write {
///         stream: stream.clone(),
///         expected,
///         head: Some(Head::json("note", "open", &text)?),
///         events: vec![NewEvent::json("written", &text)?],
///     }))
/// };
/// let version = log.commit(write(Version::NONE, "hello")?).await?[0].version;
///
/// // A writer that saw another version is refused and gets the current head.
/// let refused = log.commit(write(Version::NONE, "bye")?).await;
/// let Err(CommitError::Conflict { actual: Some(actual), .. }) = refused else {
///     panic!("{refused:?}");
/// };
/// assert_eq!(actual.version, version);
///
/// // A tail returns the events that exist, then new ones.
/// let token = CancellationToken::new();
/// let mut tail = log.tail(&stream, Sequence::START, &token.scope());
/// let TailItem::Event(event) = tail.next().await? else {
///     panic!("the stream was not removed");
/// };
/// assert_eq!(&*event.body, br#""hello""#);
///
/// // A commit under a lease is refused once the lease is lost.
/// let lease = log.lease("note/1", "me", Duration::from_secs(30)).await?;
/// let version = log.commit(write(version, "mine")?.under(&lease)).await?[0].version;
/// log.release(&lease).await?;
/// let refused = log.commit(write(version, "still mine")?.under(&lease)).await;
/// assert!(matches!(refused, Err(CommitError::Fenced { .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Log {
    store: Arc<dyn Store>,
    hub: Hub,
    quarantine: Quarantine,
    time: LogTime,
}

impl Log {
    /// Opens a log in its own file, which is created if necessary. Only one process may have it open.
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

    /// Opens a log in a Postgres database, which several processes may share. It must be called inside a tokio
    /// runtime, and the log works as long as that runtime does. *Cancel safety*: if the future is dropped, the
    /// tables are either unchanged or up to date.
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

    /// The time of day of this log, shared by all its users, with a clock to wait by.
    #[must_use]
    pub fn wall_clock(&self, clock: Arc<dyn Clock>) -> WallClock {
        WallClock::new(clock, self.time.clone())
    }

    /// The current time of this log, shared by all its users.
    #[must_use]
    pub fn now(&self) -> UnixMs {
        self.time.at(Instant::now())
    }

    /// Makes all writes, or none and returns why. *Cancel safety*: if the future is dropped, the commit may or
    /// may not be made, but never in part.
    pub async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError> {
        commit.check()?;
        self.store.commit(commit).await
    }

    /// Removes whole streams: head, events and references to blobs. Either all are removed or none, each only if
    /// it is at the version that the caller saw. When this returns, they are gone for good. A stream created
    /// later under the same name is a different one: its events start at 1, and its versions were never used
    /// before. Tails start over; see [`TailItem::Resync`](crate::TailItem). *Cancel safety*: if the future is
    /// dropped, all of them may or may not be gone.
    pub async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        check_streams(streams.iter().map(|(stream, _)| stream))?;
        self.store.remove(streams).await
    }

    /// Tells from now on when a stream whose name begins with `prefix` and a slash is written or removed, by any
    /// process.
    pub fn changes(&self, prefix: &str) -> StreamChanges {
        StreamChanges::new(self.hub.watch_prefix(prefix))
    }

    /// The head of a stream.
    pub async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError> {
        self.store.head(stream).await
    }

    /// Heads by kind and status, in the order that the query names.
    pub async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.heads(query).await
    }

    /// Passes every head of a kind (and status) to a callback, ordered by stream name, page by page.
    pub async fn each_head(
        &self,
        kind: &str,
        status: Option<&str>,
        mut look: impl FnMut(StoredHead),
    ) -> Result<(), LogError> {
        let mut pages = self.pages(HeadsQuery {
            kind: Arc::from(kind),
            status: status.map(Arc::from),
            order: HeadsOrder::OldestFirst,
            after: None,
            limit: PAGE_HEADS,
        });
        while let Some(page) = pages.next().await? {
            page.into_iter().for_each(&mut look);
        }
        Ok(())
    }

    /// The heads from where a query starts to the last one, in pages of as many as its limit.
    pub fn pages(&self, query: HeadsQuery) -> HeadPages {
        HeadPages {
            log: self.clone(),
            query: Some(query),
        }
    }

    /// All heads of a kind (and status), ordered by stream name.
    pub async fn all_heads(&self, kind: &str, status: Option<&str>) -> Result<Vec<StoredHead>, LogError> {
        let mut all = Vec::new();
        self.each_head(kind, status, |stored| all.push(stored)).await?;
        Ok(all)
    }

    /// Passes on what was read from a head. If it couldn't be read, the head is quarantined: it stays in the log
    /// as it is, and is logged once.
    pub fn or_quarantine<T, E: Error>(&self, stored: &StoredHead, read: Result<T, E>) -> Result<T, E> {
        self.quarantine.look(stored, &read);
        read
    }

    /// The same for lists, which omit quarantined heads.
    pub fn readable<T, E: Error>(&self, stored: &StoredHead, read: Result<T, E>) -> Option<T> {
        self.or_quarantine(stored, read).ok()
    }

    /// The heads that couldn't be read since the log was opened, by name.
    pub fn quarantined(&self) -> Vec<Quarantined> {
        self.quarantine.list()
    }

    /// Removes a head from that list, because it is gone or can be read now.
    pub fn end_quarantine(&self, stream: &str) {
        self.quarantine.forget(stream);
    }

    /// Heads of a kind, most recently changed first. *Cancel safety*: it only reads.
    pub async fn recently_changed(&self, query: RecentlyChangedQuery) -> Result<Vec<StoredHead>, LogError> {
        self.store.recently_changed(query).await
    }

    /// Events after a sequence number, oldest first. A stream that doesn't exist has none.
    pub async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError> {
        self.store.read(stream, after, limit).await
    }

    /// Follows a stream from a position on: the events that exist, then new ones, until the scope is cancelled.
    /// The stream need not exist yet.
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

    /// Extends a lease that is still held by this time from now.
    pub async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError> {
        self.store.renew(lease, ttl).await
    }

    /// Releases a lease that is still held.
    pub async fn release(&self, lease: &Lease) -> Result<(), LeaseError> {
        self.store.release(lease).await
    }

    /// Puts content into the log, chunk by chunk, and returns its address. The content is kept for ten minutes,
    /// and after that as long as a head or an event refers to it. *Cancel safety*: if the future is dropped, what
    /// was put is collected later.
    pub async fn put_blob(
        &self,
        content: impl AsyncRead + Unpin + Send,
    ) -> Result<(BlobId, BlobInfo), BlobError> {
        blob_io::put(&*self.store, StreamBlocks(content)).await
    }

    /// Puts the content of a file, from its beginning. Holes cost nothing.
    pub async fn put_file(&self, file: File) -> Result<(BlobId, BlobInfo), BlobError> {
        blob_io::put(&*self.store, FileBlocks::new(file)).await
    }

    /// Reads content from its start, chunk by chunk.
    pub async fn read_blob(&self, id: BlobId) -> Result<BlobReader, BlobError> {
        BlobReader::open(Arc::clone(&self.store), id).await
    }

    /// Reads several whole blobs, in the order of their addresses. All of them are in memory at once, so they
    /// should be small.
    pub async fn read_blobs(&self, ids: &[BlobId]) -> Result<Vec<Vec<u8>>, BlobError> {
        blob_io::read_all(&self.store, ids).await
    }

    /// The size of a blob, or `None` if there is none with this address.
    pub async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError> {
        self.store.blob_info(id).await
    }

    /// Ends the grace period of blobs that were put recently, so that the next [collection](Self::collect_blobs)
    /// drops those that nothing refers to. A commit that refers to one afterwards is refused, and its writer puts
    /// the content again.
    pub async fn unpin_blobs(&self, ids: &[BlobId]) -> Result<(), LogError> {
        self.store.unpin_blobs(ids.to_vec()).await
    }

    /// Drops blobs that nothing refers to, and abandoned uploads. *Cancel safety*: if the future is dropped, the
    /// rest is dropped the next time. The same holds for [`trim`](Self::trim) and [`compact`](Self::compact).
    pub async fn collect_blobs(&self) -> Result<Collected, LogError> {
        self.store.collect_blobs().await
    }

    /// Drops events of the streams of a kind that exceed the policy, and returns what was dropped from which
    /// stream. Tails that haven't seen these events are told to resync.
    pub async fn trim(
        &self,
        kind: &str,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
        self.store.trim(Arc::from(kind), policy).await
    }

    /// Drops the events of one stream up to a sequence number, if the stream is at the version that the caller
    /// saw, and returns how many. The head and the version of the stream don't change. Tails that haven't seen
    /// these events are told to resync. If the stream is written in the meantime, that is a conflict, and the
    /// oldest of them may be gone. *Cancel safety*: if the future is dropped, the oldest of them may be gone.
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

    /// Reads everything and lists what is damaged. It takes time proportional to the size of the log, and writes
    /// nothing.
    pub async fn check_integrity(&self) -> Result<Vec<String>, LogError> {
        self.check_with(|_, _| None).await
    }

    /// Like [`check_integrity`](Self::check_integrity). Heads in which `check` finds a problem are also listed,
    /// and quarantined.
    pub async fn check_with(&self, check: HeadCheck) -> Result<Vec<String>, LogError> {
        let audited = audit::problems(&*self.store, check).await?;
        for head in audited.unreadable {
            self.quarantine
                .note(&head.stream, &head.kind, &std::io::Error::other(head.reason));
        }
        Ok(audited.problems)
    }

    /// The same for a log in a file that no process has open. It changes nothing in the file.
    pub fn check_file(path: &Path, check: HeadCheck) -> Result<Vec<String>, OpenError> {
        audit::problems_of_file(path, check)
    }

    /// The file that records that writes were lost, because somebody removed the write-ahead log while no process
    /// had it open. It stays until somebody deletes it.
    pub fn lost_writes(&self) -> Option<PathBuf> {
        self.store.lost_writes()
    }

    /// Returns unused space to the file system.
    pub async fn compact(&self) -> Result<(), LogError> {
        self.store.compact().await
    }

    /// Writes a snapshot to a new file while the log is in use. The result is a log that can be opened. The file
    /// gets its name when it is complete and on disk. If the log is damaged in places, the rest is copied, and
    /// what was left out is returned. *Cancel safety*: if the future is dropped, the backup may still be made.
    pub async fn backup(&self, path: &Path) -> Result<Vec<String>, BackupError> {
        match self.store.backup(path.to_owned()).await {
            Ok(()) => Ok(Vec::new()),
            Err(BackupError::Log(LogError::Corrupt(_))) => salvage::backup(&*self.store, path).await,
            Err(error) => Err(error),
        }
    }

    /// Whether the log accepts writes.
    pub fn health(&self) -> Health {
        self.store.health()
    }

    /// The server that stores the log, if it isn't in a file.
    #[must_use]
    pub fn server(&self) -> Option<&ServerInfo> {
        self.store.server()
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }
}
