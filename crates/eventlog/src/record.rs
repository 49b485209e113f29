//! A whole log as a sequence of records: what an engine dumps and restores, and an archive contains.

use crate::{
    blob::{BlobId, BlobInfo},
    commit::{Event, Head},
    error::LogError,
    names::{Sequence, StreamId},
};

/// How many records may be queued between an engine and an archive. A record has at most about a megabyte. The
/// faster side waits.
pub(crate) const QUEUE_RECORDS: usize = 4;

/// A part of a log. Blobs come first: the chunks of each in order, then the blob itself. Then come the streams,
/// oldest version first, each followed by its events in order. Then comes the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Record {
    /// The next chunk of the following blob, compressed.
    Chunk { compressed: Vec<u8> },
    /// A blob, made of the chunks since the last one.
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
    /// Something that can't be read, and its blob, if it is one. It takes the place of nothing.
    LeftOut { what: String, blob: Option<BlobId> },
    /// The end. Records that stop without it are incomplete.
    End,
}

/// A log couldn't be filled. It is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The log isn't empty.
    #[error("the log is not empty")]
    NotEmpty,
    /// A head or event refers to a blob that did not come before it.
    #[error("the records refer to the blob {0}, which they do not contain")]
    BlobMissing(BlobId),
    /// The records are out of order, name something twice, or stopped before the end.
    #[error("the records are incomplete")]
    Broken,
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
