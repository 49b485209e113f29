//! The whole of a log as a row of records: what an engine dumps and restores, and an archive holds.

use crate::{
    blob::{BlobId, BlobInfo},
    commit::{Event, Head},
    error::LogError,
    names::{Sequence, StreamId},
};

/// How many records may be on their way between an engine and an archive. A record is at most about a megabyte;
/// whoever is ahead waits.
pub(crate) const QUEUE_RECORDS: usize = 4;

/// A piece of a log. First come the blobs, the chunks of each in order and then the blob itself; then the streams,
/// oldest version first, each followed by its events in order; then the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    /// The next chunk of the blob that follows, compressed.
    Chunk { compressed: Vec<u8> },
    /// A blob, made of the chunks that came since the last one.
    Blob { id: BlobId, info: BlobInfo },
    /// A stream. Its events from `first` to `last` follow.
    Stream {
        id: StreamId,
        head: Head,
        first: Sequence,
        last: Sequence,
    },
    /// The next event of the last stream.
    Event { event: Event, blobs: Vec<BlobId> },
    /// Something that cannot be read, and the blob that it is, if it is one. It takes no place.
    LeftOut { what: String, blob: Option<BlobId> },
    /// There is nothing more. Records that stop without it are not whole.
    End,
}

/// A log was not filled. It is as empty as it was, or as full.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// There is something in it.
    #[error("the log is not empty")]
    NotEmpty,
    /// A head or event refers to a blob that did not come before it.
    #[error("the blob {0} is referred to, but is not there")]
    BlobMissing(BlobId),
    /// The records are out of order, name something twice, or stopped before the end.
    #[error("the records are not whole")]
    Broken,
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
