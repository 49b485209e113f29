//! What an engine must do. Both engines pass the same conformance suite.

use std::{borrow::Cow, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::sync::mpsc;

use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed, Event, StoredHead},
    error::{BackupError, LogError},
    lease::{Lease, LeaseError},
    names::{Incarnation, Sequence, StreamId, Version, after_all_names},
    record::{Record, RestoreError},
};

/// Which heads to list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HeadsQuery {
    /// The kind of the heads.
    pub kind: Arc<str>,
    /// Only heads with this status.
    pub status: Option<Arc<str>>,
    /// The order of the list.
    pub order: HeadsOrder,
    /// Only streams after this one in that order, to continue after a page.
    pub after: Option<StreamId>,
    /// At most this many.
    pub limit: u32,
}

impl HeadsQuery {
    /// The name after which the list continues.
    pub(crate) fn place(&self) -> Cow<'_, str> {
        match (&self.after, self.order) {
            (Some(stream), _) => stream.as_str().into(),
            (None, HeadsOrder::OldestFirst) => "".into(),
            (None, HeadsOrder::NewestFirst) => after_all_names().into(),
        }
    }
}

/// The order of a list of heads: by the names of their streams, byte by byte. If names contain ids that grow with
/// time, that is by age.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HeadsOrder {
    /// From the first name to the last.
    #[default]
    OldestFirst,
    /// From the last name to the first.
    NewestFirst,
}

/// Which heads to list by the time of their last change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecentlyChangedQuery {
    /// The kind of the heads.
    pub kind: Arc<str>,
    /// Only the last so many names are considered, which bounds the cost however many there are.
    pub among: u32,
    /// At most this many.
    pub limit: u32,
}

/// Some events of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// The oldest event that still exists; events before it were dropped.
    pub first: Sequence,
    /// The newest event of the stream, in this page or not.
    pub last: Sequence,
    /// The events, in order and without a gap.
    pub events: Vec<Event>,
    /// The incarnation of the stream that they belong to.
    pub(crate) incarnation: Incarnation,
}

/// Whether the log accepts writes.
#[derive(Clone, Debug)]
pub enum Health {
    /// It does.
    Writable,
    /// It does not; reads continue where possible.
    Refusing {
        /// Why not.
        reason: LogError,
    },
}

/// A server that stores a log, and how it was reached when the log was opened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerInfo {
    /// The database and the server, without user and password.
    pub place: String,
    /// The version that the server reports.
    pub version: String,
    /// The encryption of the connection, such as `TLS 1.3`; `None` if it isn't encrypted.
    pub encryption: Option<String>,
}

/// An engine.
#[async_trait]
pub(crate) trait Store: Send + Sync + std::fmt::Debug {
    /// Makes all writes, or none and returns why. *Cancel safety*: if the future is dropped, the commit may or
    /// may not be made, but never in part.
    async fn commit(&self, commit: Commit) -> Result<Vec<Committed>, CommitError>;

    /// Removes whole streams, all or none, each only if it is at the version that the caller saw. The streams are
    /// gone when this returns, and never come back. Their remaining rows are dropped step by step, at the latest
    /// when the log is next compacted. Tails are told.
    async fn remove(&self, streams: Vec<(StreamId, Version)>) -> Result<(), CommitError>;

    async fn head(&self, stream: &StreamId) -> Result<Option<StoredHead>, LogError>;

    /// Heads by kind and status, in the order that the query names.
    async fn heads(&self, query: HeadsQuery) -> Result<Vec<StoredHead>, LogError>;

    /// Heads of a kind, most recently changed first. There is no index for this, because every commit would have
    /// to maintain it, so it looks at a bounded number of heads.
    async fn recently_changed(&self, query: RecentlyChangedQuery) -> Result<Vec<StoredHead>, LogError>;

    /// Events after a sequence number, oldest first. A stream that doesn't exist has none.
    async fn read(&self, stream: &StreamId, after: Sequence, limit: u32) -> Result<Page, LogError>;

    /// Takes a lease that is free or expired.
    async fn lease(&self, key: Arc<str>, owner: Arc<str>, ttl: Duration) -> Result<Lease, LeaseError>;

    /// Extends a lease that is still held.
    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<(), LeaseError>;

    async fn release(&self, lease: &Lease) -> Result<(), LeaseError>;

    /// Starts an upload. It is abandoned if it isn't finished within [`UPLOAD_TTL`].
    async fn begin_upload(&self) -> Result<UploadId, LogError>;

    /// Adds a compressed chunk to an upload. Chunks are numbered from 0. An abandoned upload is
    /// [`BlobError::UploadLost`].
    async fn put_chunk(&self, upload: UploadId, number: u32, compressed: Vec<u8>) -> Result<(), BlobError>;

    /// Durably makes an upload the blob with this address. If there is one already, the upload is dropped. Either
    /// way the blob is kept for [`PIN_TTL`] even if nothing refers to it yet. An upload that was abandoned, or
    /// that lacks chunks according to `info`, is [`BlobError::UploadLost`].
    async fn finish_upload(&self, upload: UploadId, id: BlobId, info: BlobInfo) -> Result<(), BlobError>;

    async fn blob_info(&self, id: BlobId) -> Result<Option<BlobInfo>, LogError>;

    /// A chunk of a blob, compressed.
    async fn blob_chunk(&self, id: BlobId, number: u32) -> Result<Option<Vec<u8>>, LogError>;

    /// The first chunks of blobs, in the order of the addresses; `None` for a blob that doesn't exist. Most blobs
    /// have one chunk only, so an engine should read all of this at once if it can.
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

    /// Ends the grace period of blobs that were put recently. A writer that has put one and not referred to it
    /// yet may find it gone, is refused, and puts it again.
    async fn unpin_blobs(&self, ids: Vec<BlobId>) -> Result<(), LogError>;

    /// Drops blobs that nothing refers to and that aren't pinned, and abandoned uploads. A commit that is about
    /// to refer to a blob either keeps it or is refused.
    async fn collect_blobs(&self) -> Result<Collected, LogError>;

    /// Drops events of streams of a kind that exceed the policy, oldest first, and returns what was dropped from
    /// each stream.
    async fn trim(
        &self,
        kind: Arc<str>,
        policy: RetentionPolicy,
    ) -> Result<Vec<(StreamId, Trimmed)>, LogError>;

    /// Drops the events of one stream up to a sequence number, oldest first, as long as it is at the version that
    /// the caller saw, and returns how many. The version doesn't change.
    async fn drop_events(
        &self,
        stream: &StreamId,
        up_to: Sequence,
        seen: Version,
    ) -> Result<u64, CommitError>;

    /// How large the log is.
    async fn sizes(&self) -> Result<Sizes, LogError>;

    /// Checks that the stored data is intact, and lists what isn't.
    async fn check_integrity(&self) -> Result<Vec<String>, LogError>;

    /// Returns unused space, and keeps the write-ahead log short.
    async fn compact(&self) -> Result<(), LogError>;

    /// Sends a snapshot of everything, in the order described at [`Record`], including [`Record::End`]. It stops
    /// when the receiver is dropped.
    async fn dump(&self, records: mpsc::Sender<Record>) -> Result<(), LogError>;

    /// Fills an empty log (no stream, no blob) with records, all or nothing. Streams keep their sequence numbers
    /// and times, and get new versions in the order in which they arrive. Nothing else is written in the
    /// meantime. If the records stop before [`Record::End`], are out of order, or name a stream or a blob twice,
    /// nothing is kept. Waiting tails are told.
    async fn restore(&self, records: mpsc::Receiver<Record>) -> Result<(), RestoreError>;

    /// Writes a snapshot to a new file while the log is in use. Engines with a server leave this to the server's
    /// tools.
    async fn backup(&self, _path: PathBuf) -> Result<(), BackupError> {
        Err(BackupError::NotSupported)
    }

    /// The file that records that writes were lost with a write-ahead log that somebody removed, if there is one.
    fn lost_writes(&self) -> Option<PathBuf> {
        None
    }

    /// The server that has the data, if there is one.
    fn server(&self) -> Option<&ServerInfo> {
        None
    }

    /// Whether the engine accepts writes.
    fn health(&self) -> Health;
}

/// An upload is abandoned after this time.
pub(crate) const UPLOAD_TTL: Duration = Duration::from_secs(60 * 60);
/// The size of a blob, and its first chunk.
#[derive(Debug)]
pub(crate) struct BlobStart {
    pub(crate) info: BlobInfo,
    /// The first chunk, compressed; an empty blob has none.
    pub(crate) first: Option<Vec<u8>>,
}

/// A blob is kept for this time after it was put, even if nothing refers to it.
pub(crate) const PIN_TTL: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct UploadId(pub(crate) i64);

/// How much history to keep, for the streams of one kind.
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
    /// The total size on disk.
    pub total_bytes: u64,
    /// The part of it that is free for reuse.
    pub free_bytes: u64,
    /// The size of the write-ahead log, if there is one.
    pub wal_bytes: u64,
    /// The number of streams.
    pub streams: u64,
    /// The number of events.
    pub events: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// The size of the blobs in the log.
    pub blob_bytes: u64,
}
