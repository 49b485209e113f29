//! The log in a SQLite file: the embedded default.

mod apply;
mod backup;
mod blobs;
mod damage;
mod dump;
mod failure;
mod heads;
mod leases;
mod mark;
mod open;
mod readers;
mod removal;
mod request;
mod reserve;
mod restore;
mod retention;
mod schema;
mod stream_cache;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;
mod writer_state;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use async_trait::async_trait;
use kernel::{Clock, Slot};
use tokio::sync::{mpsc, oneshot};

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed, StoredHead},
    error::{BackupError, LogError, OpenError},
    file_lock::FileLock,
    hub::Hub,
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version},
    quarantine::Quarantine,
    record::{Record, RestoreError},
    store::{
        BlobStart, HeadsQuery, Health, Page, RecentlyChangedQuery, RetentionPolicy, Sizes, Store, UploadId,
    },
};
use mark::OpenMark;
use open::{BUSY_TIMEOUT, connect, wal_path};
use readers::Readers;
use removal::Swept;
use request::{Failure, Reply, Request};
use upkeep::Vacuumed;
use writer::Writer;
use writer_state::WriterState;

/// How many requests may wait for the writer. Beyond that, callers wait. Two batches keep the writer busy while
/// it works on the first.
const QUEUE_REQUESTS: usize = 512;

/// Where the log is stored.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// The file.
    pub path: PathBuf,
}

pub(crate) struct Sqlite {
    /// `None` only while it is dropped.
    requests: Option<mpsc::Sender<Request>>,
    readers: Arc<Readers>,
    health: Slot<Health>,
    quarantine: Quarantine,
    mark: OpenMark,
    thread: Option<JoinHandle<()>>,
    /// Released last, when nobody writes anymore.
    _lock: FileLock,
}

impl Sqlite {
    pub(crate) fn open(
        options: &SqliteOptions,
        clock: Arc<dyn Clock>,
        (hub, quarantine): (Hub, Quarantine),
    ) -> Result<Self, OpenError> {
        let (connection, lock, mark) = open::open(&options.path)?;
        let state = WriterState::new(connection, clock).map_err(|error| OpenError::File {
            path: options.path.clone(),
            source: error.into(),
        })?;
        let health = Slot::new(Health::Writable);
        let (requests, receiver) = mpsc::channel(QUEUE_REQUESTS);
        let writer = Writer::new(options.path.clone(), state, receiver, (hub, health.clone()));
        let thread = thread::Builder::new()
            .name("tidelock-log".into())
            .spawn(move || writer.run());
        assert!(thread.is_ok(), "cannot start the log's writer thread: {thread:?}");
        Ok(Self {
            requests: Some(requests),
            readers: Arc::new(Readers::new(options.path.clone())),
            health,
            quarantine,
            mark,
            thread: thread.ok(),
            _lock: lock,
        })
    }

    async fn ask<T, E: Failure>(&self, request: impl FnOnce(Reply<T, E>) -> Request) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or(LogError::Closed)?;
        requests
            .send(request(reply))
            .await
            .map_err(|_| LogError::Closed)?;
        answer.await.map_err(|_| LogError::Closed)?
    }

    /// Drops what is left of removed streams.
    async fn sweep(&self) -> Result<(), LogError> {
        while self.ask(|reply| Request::Sweep { reply }).await? == Swept::More {}
        Ok(())
    }

    /// Empties the write-ahead log. A reader does the long part, so that the writer is blocked only for a moment.
    async fn checkpoint(&self) -> Result<(), LogError> {
        Readers::run(&self.readers, |connection| {
            Ok::<(), LogError>(upkeep::checkpoint(connection)?)
        })
        .await?;
        self.ask(|reply| Request::Checkpoint { reply }).await
    }
}

impl Drop for Sqlite {
    /// Waits until all requests are on disk, so that the file can be opened again at once.
    fn drop(&mut self) {
        self.mark.remove();
        drop(self.requests.take());
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            drop(thread.join());
        }
    }
}

/// A file that no process has open, for reading only.
pub(crate) struct UnopenedFile {
    connection: rusqlite::Connection,
    _lock: FileLock,
}

impl UnopenedFile {
    pub(crate) fn at(path: &Path) -> Result<Self, OpenError> {
        let (connection, lock) = open::look(path)?;
        Ok(Self {
            connection,
            _lock: lock,
        })
    }

    pub(crate) fn problems(&self) -> Result<Vec<String>, LogError> {
        Ok(upkeep::problems(&self.connection)?)
    }

    pub(crate) fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError> {
        // Dropping the sender at the end stops the receiver.
        dump::dump(&self.connection, &records)
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError> {
        self.ask(|reply| Request::Commit { commit, reply }).await
    }

    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError> {
        self.ask(|reply| Request::Remove { streams, reply }).await?;
        // The streams are gone. If the rest can't be dropped now, it is invisible and swept later.
        if let Err(error) = self.sweep().await {
            tracing::warn!(%error, "the rest of removed streams could not be dropped yet");
        }
        Ok(())
    }

    async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError> {
        let stream = stream.clone();
        Readers::run(&self.readers, move |connection| {
            Ok(heads::head(connection, &stream)?)
        })
        .await
    }

    async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError> {
        let quarantine = self.quarantine.clone();
        Readers::run(&self.readers, move |connection| {
            let found = match heads::heads(connection, &query) {
                Err(error) if damage::is_damage(&error) => damage::heads(connection, &query, &quarantine),
                found => found,
            };
            Ok(found?)
        })
        .await
    }

    async fn recently_changed(&self, query: RecentlyChangedQuery) -> Result<Vec<StoredHead>, LogError> {
        let quarantine = self.quarantine.clone();
        Readers::run(&self.readers, move |connection| {
            let found = match heads::recently_changed(connection, &query) {
                Err(error) if damage::is_damage(&error) => {
                    damage::recently_changed(connection, &query, &quarantine)
                }
                found => found,
            };
            Ok(found?)
        })
        .await
    }

    async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError> {
        let stream = stream.clone();
        Readers::run(&self.readers, move |connection| {
            Ok(readers::read(connection, &stream, after, limit)?)
        })
        .await
    }

    async fn lease(&self, key: Arc<str>, owner: Arc<str>, ttl: Duration) -> Result<Lease, LeaseError> {
        self.ask(|reply| Request::Lease {
            key,
            owner,
            ttl,
            reply,
        })
        .await
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError> {
        let lease = lease.clone();
        self.ask(|reply| Request::Renew { lease, ttl, reply }).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), LeaseError> {
        let lease = lease.clone();
        self.ask(|reply| Request::Release { lease, reply }).await
    }

    async fn begin_upload(&self) -> Result<UploadId, LogError> {
        self.ask(|reply| Request::BeginUpload { reply }).await
    }

    async fn put_chunk(&self, upload: UploadId, number: u32, compressed: Vec<u8>) -> Result<(), BlobError> {
        self.ask(|reply| Request::PutChunk {
            upload,
            number,
            compressed,
            reply,
        })
        .await
    }

    async fn finish_upload(&self, upload: UploadId, id: BlobId, info: BlobInfo) -> Result<(), BlobError> {
        self.ask(|reply| Request::FinishUpload {
            upload,
            id,
            info,
            reply,
        })
        .await
    }

    async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError> {
        Readers::run(&self.readers, move |connection| Ok(blobs::info(connection, id)?)).await
    }

    async fn blob_chunk(&self, id: BlobId, number: u32) -> Result<Option<Vec<u8>>, LogError> {
        Readers::run(&self.readers, move |connection| {
            Ok(blobs::chunk(connection, id, number)?)
        })
        .await
    }

    async fn blob_starts(&self, ids: Vec<BlobId>) -> Result<Vec<Option<BlobStart>>, LogError> {
        Readers::run(&self.readers, move |connection| {
            let start = |id: BlobId| -> rusqlite::Result<Option<BlobStart>> {
                let Some(info) = blobs::info(connection, id)? else {
                    return Ok(None);
                };
                let first = blobs::chunk(connection, id, 0)?;
                Ok(Some(BlobStart { info, first }))
            };
            let starts: rusqlite::Result<Vec<_>> = ids.into_iter().map(start).collect();
            Ok(starts?)
        })
        .await
    }

    async fn unpin_blobs(&self, ids: Vec<BlobId>) -> Result<(), LogError> {
        self.ask(|reply| Request::UnpinBlobs { ids, reply }).await
    }

    async fn collect_blobs(&self) -> Result<Collected, LogError> {
        self.sweep().await?;
        let mut after = Some(0);
        while let Some(place) = after {
            after = self
                .ask(|reply| Request::MarkBlobs { after: place, reply })
                .await?;
        }
        let mut collected = Collected::default();
        while let Some(step) = self.ask(|reply| Request::FreeBlobs { reply }).await? {
            collected.blobs += step.blobs;
            collected.uploads += step.uploads;
            collected.stored_bytes += step.stored_bytes;
        }
        Ok(collected)
    }

    async fn trim(
        &self,
        kind: Arc<str>,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let kind = Arc::clone(&kind);
            let (cuts, more) = Readers::run(&self.readers, move |connection| {
                retention::cuts(connection, &kind, policy, after.as_ref())
            })
            .await?;
            for cut in cuts {
                let mut trimmed: Option<Trimmed> = None;
                while let Some(step) = self
                    .ask(|reply| Request::Trim {
                        cut: cut.clone(),
                        reply,
                    })
                    .await?
                {
                    let events = step.events + trimmed.map_or(0, |before| before.events);
                    trimmed = Some(Trimmed { events, ..step });
                }
                all.extend(trimmed.map(|trimmed| (cut.stream, trimmed)));
            }
            if more.is_none() {
                return Ok(all);
            }
            after = more;
        }
    }

    async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError> {
        let mut events = 0;
        loop {
            let stream = stream.clone();
            let step = self.ask(|reply| Request::DropEvents {
                stream,
                up_to,
                seen,
                reply,
            });
            let Some(step) = step.await? else {
                return Ok(events);
            };
            events += step.events;
        }
    }

    async fn sizes(&self) -> Result<Sizes, LogError> {
        let path = self.readers.path().to_owned();
        Readers::run(&self.readers, move |connection| {
            Ok(upkeep::sizes(connection, &path)?)
        })
        .await
    }

    async fn check_integrity(&self) -> Result<Vec<String>, LogError> {
        Readers::run(&self.readers, |connection| Ok(upkeep::problems(connection)?)).await
    }

    async fn compact(&self) -> Result<(), LogError> {
        // This comes first, because on a full disk the rest needs the space of the write-ahead log.
        self.checkpoint().await?;
        self.sweep().await?;
        while self.ask(|reply| Request::Vacuum { reply }).await? == Vacuumed::More {}
        self.checkpoint().await
    }

    async fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError> {
        Readers::run(&self.readers, move |connection| dump::dump(connection, &records)).await
    }

    async fn restore(&self, records: mpsc::Receiver<Record>) -> Result<(), RestoreError> {
        self.ask(|reply| Request::Restore { records, reply }).await
    }

    async fn backup(&self, path: PathBuf) -> Result<(), BackupError> {
        Readers::run(&self.readers, move |connection| backup::backup(connection, &path)).await
    }

    fn lost_writes(&self) -> Option<PathBuf> {
        self.mark.lost_writes()
    }

    fn health(&self) -> Health {
        if self.requests.as_ref().is_none_or(mpsc::Sender::is_closed) {
            return Health::Refusing {
                reason: LogError::Closed,
            };
        }
        (*self.health.read().state).clone()
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Sqlite")
            .field("readers", &self.readers)
            .finish_non_exhaustive()
    }
}
