//! The requests to the writer.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use super::{removal::Swept, retention::Cut, upkeep::Vacuumed};
use crate::{
    blob::{BlobError, BlobId, BlobInfo, Collected, Trimmed},
    commit::{Commit, CommitError, Committed},
    error::LogError,
    lease::{Lease, LeaseError},
    names::{Sequence, StreamId, Version},
    record::{Record, RestoreError},
    store::UploadId,
};

/// The channel for an answer.
pub(super) type Reply<T, E> = oneshot::Sender<Result<T, E>>;

/// A request. Each is small, so that none delays the others; long work is a series of requests. Only a restore
/// keeps the writer for itself.
#[derive(Debug)]
pub(super) enum Request {
    Commit {
        commit: Commit,
        reply: Reply<Vec<Committed>, CommitError>,
    },
    Lease {
        key: Arc<str>,
        owner: Arc<str>,
        ttl: Duration,
        reply: Reply<Lease, LeaseError>,
    },
    Renew {
        lease: Lease,
        ttl: Duration,
        reply: Reply<(), LeaseError>,
    },
    Release {
        lease: Lease,
        reply: Reply<(), LeaseError>,
    },
    BeginUpload {
        reply: Reply<UploadId, LogError>,
    },
    PutChunk {
        upload: UploadId,
        number: u32,
        compressed: Vec<u8>,
        reply: Reply<(), BlobError>,
    },
    FinishUpload {
        upload: UploadId,
        id: BlobId,
        info: BlobInfo,
        reply: Reply<(), BlobError>,
    },
    UnpinBlobs {
        ids: Vec<BlobId>,
        reply: Reply<(), LogError>,
    },
    MarkBlobs {
        after: i64,
        reply: Reply<Option<i64>, LogError>,
    },
    FreeBlobs {
        reply: Reply<Option<Collected>, LogError>,
    },
    Trim {
        cut: Cut,
        reply: Reply<Option<Trimmed>, LogError>,
    },
    /// Drops some of the oldest events of a stream. The answer is `None` if there are none left.
    DropEvents {
        stream: StreamId,
        up_to: Sequence,
        seen: Version,
        reply: Reply<Option<Trimmed>, CommitError>,
    },
    Remove {
        streams: Vec<(StreamId, Version)>,
        reply: Reply<(), CommitError>,
    },
    Sweep {
        reply: Reply<Swept, LogError>,
    },
    Vacuum {
        reply: Reply<Vacuumed, LogError>,
    },
    Checkpoint {
        reply: Reply<(), LogError>,
    },
    Restore {
        records: mpsc::Receiver<Record>,
        reply: Reply<(), RestoreError>,
    },
    /// Simulates a full disk, in tests.
    #[cfg(test)]
    LimitPages {
        pages: u32,
        reply: Reply<(), LogError>,
    },
}

/// An error that may come from the engine itself. If so, the transaction can't continue.
pub(super) trait Failure: From<LogError> + Send + 'static {
    fn of_engine(&self) -> Option<&LogError>;
}

macro_rules! failure {
    ($($error:ident),+) => {
        $(impl Failure for $error {
            fn of_engine(&self) -> Option<&LogError> {
                match self {
                    Self::Log(error) => Some(error),
                    _ => None,
                }
            }
        })+
    };
}
failure!(BlobError, CommitError, LeaseError, RestoreError);

impl Failure for LogError {
    fn of_engine(&self) -> Option<&LogError> {
        Some(self)
    }
}
