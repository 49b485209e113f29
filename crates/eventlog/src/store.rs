//! What an engine must do. Both engines pass the same conformance suite.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed, Event, StoredHead},
    error::{BackupError, LogError},
    lease::{Lease, LeaseError},
    names::{Life, Sequence, StreamId, Version, after_all_names},
    record::{Record, RestoreError},
};

/// Which heads to list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeadsQuery {
    /// Heads of this kind.
    pub kind: Arc<str>,
    /// Only with this status.
    pub status: Option<Arc<str>>,
    /// In which order.
    pub order: HeadsOrder,
    /// Only streams that come after this one in that order, to go on where a page ended.
    pub after: Option<StreamId>,
    /// At most so many.
    pub limit: u32,
}

impl HeadsQuery {
    /// The name that the list goes on after, in its order.
    pub(crate) fn place(&self) -> Cow<'_, str> {
        match (&self.after, self.order) {
            (Some(stream), _) => stream.as_str().into(),
            (None, HeadsOrder::OldestFirst) => "".into(),
            (None, HeadsOrder::NewestFirst) => after_all_names().into(),
        }
    }
}

/// In which order heads are listed: by the names of their streams, byte by byte. Where names carry ids that grow with
/// time, that is by age.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HeadsOrder {
    /// From the first name to the last.
    #[default]
    OldestFirst,
    /// From the last name to the first.
    NewestFirst,
}

/// Which heads to list by when they last moved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MovedQuery {
    /// Heads of this kind.
    pub kind: Arc<str>,
    /// Only the last so many by name are looked at, so that the cost has a bound however many there are.
    pub among: u32,
    /// At most so many.
    pub limit: u32,
}

/// Some events of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// The oldest event that is still there; events before it were dropped.
    pub first: Sequence,
    /// The newest event of the stream, in this page or not.
    pub last: Sequence,
    /// The events, in order and without a gap.
    pub events: Vec<Event>,
    /// Which of the streams of that name they are of.
    pub(crate) life: Life,
}

/// Whether the log takes writes.
#[derive(Clone, Debug)]
pub enum Health {
    /// It does.
    Writable,
    /// It does not; reads go on where they can.
    Refusing {
        /// Why.
        reason: LogError,
    },
}

/// A server that keeps a log, and how it was reached when the log was opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerInfo {
    /// The database and the server in words, without user and password.
    pub place: String,
    /// What the server calls its version.
    pub version: String,
    /// How the connection is encrypted, such as `TLS 1.3`; `None` if it is not.
    pub encryption: Option<String>,
}

/// An engine.
#[async_trait]
pub(crate) trait Store: Send + Sync + std::fmt::Debug {
    /// Makes all writes, or none and says why. *Cancel safety*: dropped half-way, the commit may or may not be
    /// made, but never in part.
    async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError>;

    /// Forgets streams whole, all or none, each only if it is at the version that the caller saw. The streams are
    /// gone when this answers, and never come back; what they leave behind is dropped bit by bit, at the latest when
    /// the log is next compacted. Tails are told.
    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError>;

    /// The head of a stream.
    async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError>;

    /// Heads by kind and status, in the order that the query names.
    async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError>;

    /// Heads of a kind, the one that moved last first. There is no index for that, because every commit would have to
    /// keep it; so it looks at a bounded number of heads.
    async fn last_moved(&self, query: MovedQuery) -> Result<Vec<StoredHead>, LogError>;

    /// Events after a place, oldest first. A stream that does not exist has none.
    async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError>;

    /// Takes a lease that is free or expired.
    async fn lease(&self, key: Arc<str>, owner: Arc<str>, ttl: Duration) -> Result<Lease, LeaseError>;

    /// Extends a lease that is still held.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError>;

    /// Gives a lease back that is still held.
    async fn release(&self, lease: &Lease) -> Result<(), LeaseError>;

    /// Starts an upload. One that is not finished within [`UPLOAD_TTL`] is given up.
    async fn begin_upload(&self) -> Result<UploadId, LogError>;

    /// Adds a chunk to an upload, compressed. Chunks are numbered from 0. An upload that was given up is
    /// [`BlobError::UploadLost`].
    async fn put_chunk(&self, upload: UploadId, number: u32, compressed: Vec<u8>) -> Result<(), BlobError>;

    /// Makes an upload the blob of that address, durably. If there is one already, the upload is dropped. Either
    /// way the blob is kept for [`PIN_TTL`] even if nothing refers to it yet. An upload that was given up, or
    /// that has not all chunks that `info` speaks of, is [`BlobError::UploadLost`].
    async fn finish_upload(&self, upload: UploadId, id: BlobId, info: BlobInfo) -> Result<(), BlobError>;

    /// What is known of a blob.
    async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError>;

    /// A chunk of a blob, compressed.
    async fn blob_chunk(&self, id: BlobId, number: u32) -> Result<Option<Vec<u8>>, LogError>;

    /// How blobs begin, in the order of the addresses; `None` for one that is not there. Most blobs have one chunk only, so
    /// an engine that can read all of this in one go should.
    async fn blob_starts(&self, ids: Vec<BlobId>) -> Result<Vec<Option<BlobStart>>, LogError> {
        let mut starts = Vec::with_capacity(ids.len());
        for id in ids {
            starts.push(match self.blob_info(id).await? {
                Some(info) => Some(BlobStart {
                    info,
                    first: self.blob_chunk(id, 0).await?,
                }),
                None => None,
            });
        }
        Ok(starts)
    }

    /// No longer keeps blobs just because they were put a short while ago. Whoever has put one and not referred to it yet
    /// may find it gone, is refused, and puts it again.
    async fn unpin_blobs(&self, ids: Vec<BlobId>) -> Result<(), LogError>;

    /// Drops blobs that nothing refers to and that are not pinned, and uploads that were given up. A commit that
    /// is about to refer to a blob either keeps it or is refused.
    async fn collect_blobs(&self) -> Result<Collected, LogError>;

    /// Drops events of streams of a kind that are older or more than the policy allows, oldest first, and says
    /// what was dropped of each stream.
    async fn trim(
        &self,
        kind: Arc<str>,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError>;

    /// Drops the events of one stream up to a place, oldest first, as long as it is at the version that the caller saw,
    /// and says how many. The version stays as it is.
    async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError>;

    /// How large the log is.
    async fn sizes(&self) -> Result<Sizes, LogError>;

    /// Checks that what is stored is whole, and lists what is not.
    async fn check_integrity(&self) -> Result<Vec<String>, LogError>;

    /// Gives space back that is no longer used, and keeps the write-ahead log short.
    async fn compact(&self) -> Result<(), LogError>;

    /// Sends everything there is at one moment, in the order that [`Record`] says, [`Record::End`] included. It
    /// gives up when nobody takes the records any more.
    async fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError>;

    /// Fills an empty log (no stream, no blob) with records, all or nothing. Streams keep their sequence numbers
    /// and times, and get new versions in the order in which they come. Nothing else is written meanwhile. If the
    /// records stop before [`Record::End`], are out of order, or name a stream or a blob twice, nothing is kept.
    /// Tails that wait are told.
    async fn restore(&self, records: mpsc::Receiver<Record>) -> Result<(), RestoreError>;

    /// Writes a copy of one moment to a new file, while the log is in use. An engine whose data are kept by a
    /// server leaves that to the server's own tools.
    async fn backup(&self, _path: PathBuf) -> Result<(), BackupError> {
        Err(BackupError::NotSupported)
    }

    /// The file that says that writes were lost with a write-ahead log that somebody removed, if there is one.
    fn lost_writes(&self) -> Option<PathBuf> {
        None
    }

    /// The server that has the data, if there is one.
    fn server(&self) -> Option<&ServerInfo> {
        None
    }

    /// Whether the engine takes writes.
    fn health(&self) -> Health;
}

/// An upload is given up after this time.
pub(crate) const UPLOAD_TTL: Duration = Duration::from_secs(60 * 60);
/// What is known of a blob, and how it begins.
#[derive(Debug)]
pub(crate) struct BlobStart {
    pub(crate) info: BlobInfo,
    /// The first chunk, compressed; a blob of nothing has none.
    pub(crate) first: Option<Vec<u8>>,
}

/// A blob is kept for this time after it was put, even if nothing refers to it.
pub(crate) const PIN_TTL: Duration = Duration::from_secs(10 * 60);

/// An upload that is under way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UploadId(pub(crate) i64);

/// How much of the past is kept, for the streams of one kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetentionPolicy {
    /// Events older than this are dropped.
    pub max_age: Option<Duration>,
    /// The oldest events are dropped until the bodies of each stream's events take no more than this.
    pub max_bytes_per_stream: Option<u64>,
}

/// How large a log is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sizes {
    /// The whole of it on disk.
    pub total_bytes: u64,
    /// What of that is free for reuse.
    pub free_bytes: u64,
    /// The write-ahead log, where there is one.
    pub wal_bytes: u64,
    /// How many streams.
    pub streams: u64,
    /// How many events.
    pub events: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What the blobs take.
    pub blob_bytes: u64,
}
