//! Commits: heads and events that are written in one step, by a writer that names the versions it saw.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;

use crate::{
    blob::BlobId,
    error::LogError,
    lease::Lease,
    names::{BadName, Sequence, StreamId, Version, check_name},
};

/// The size limit for the body of one head or event. Larger content goes into blobs.
pub const BODY_LIMIT_BYTES: usize = 1024 * 1024;
/// The limit of writes, events and blob references in one commit. Others wait while it is applied.
pub const COMMIT_LIMIT_ITEMS: usize = 1024;

/// The latest state of one entity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// The kind of entity, for example `job`. Heads can be listed by kind.
    pub kind: Arc<str>,
    /// The status of the entity, for example `running`. Heads can be listed by status.
    pub status: Arc<str>,
    /// The state itself, in the writer's encoding.
    pub body: Arc<[u8]>,
    /// The blobs that the state refers to. They are kept until a later head no longer names them. The log returns
    /// them in this order.
    pub blobs: Vec<BlobId>,
}

impl Head {
    /// A head with a JSON body and no blobs.
    ///
    /// # Errors
    /// The body can't be encoded as JSON, for example because of a path that isn't UTF-8.
    pub fn json(kind: &str, status: &str, body: &impl Serialize) -> Result<Self, CommitError> {
        Ok(Self {
            kind: kind.into(),
            status: status.into(),
            body: json_body(body)?,
            blobs: Vec::new(),
        })
    }
}

/// Encodes the body of a head or an event as JSON.
///
/// # Errors
/// The value can't be encoded as JSON, for example because of a path that isn't UTF-8.
pub fn json_body(value: &impl Serialize) -> Result<Arc<[u8]>, CommitError> {
    Ok(serde_json::to_vec(value)
        .map_err(CommitError::NotStorable)?
        .into())
}

/// A head as stored in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredHead {
    /// The stream of the entity.
    pub stream: StreamId,
    /// The version that the next write must name.
    pub version: Version,
    /// The last event of the stream.
    pub last_sequence: Sequence,
    /// The head.
    pub head: Head,
}

/// An event to append.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewEvent {
    /// What happened, for example `output`.
    pub kind: Arc<str>,
    /// The details, in the writer's encoding.
    pub body: Arc<[u8]>,
    /// The blobs that the event refers to. They are kept as long as the event is.
    pub blobs: Vec<BlobId>,
}

impl NewEvent {
    /// An event with a JSON body and no blobs.
    ///
    /// # Errors
    /// The body can't be encoded as JSON, for example because of a path that isn't UTF-8.
    pub fn json(kind: &str, body: &impl Serialize) -> Result<Self, CommitError> {
        Ok(Self {
            kind: kind.into(),
            body: json_body(body)?,
            blobs: Vec::new(),
        })
    }
}

/// An event as stored in the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its position in the stream.
    pub sequence: Sequence,
    /// When it was committed, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub kind: Arc<str>,
    /// The details, in the writer's encoding.
    pub body: Arc<[u8]>,
}

/// A write to one stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Write {
    /// The stream.
    pub stream: StreamId,
    /// The version that the writer saw, or [`Version::NONE`] to create the stream.
    pub expected: Version,
    /// The new head. `None` keeps the current one, so a new stream needs one.
    pub head: Option<Head>,
    /// The events to append.
    pub events: Vec<NewEvent>,
}

/// When a commit becomes durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// It is on disk when it is acknowledged.
    Durable,
    /// It is acknowledged at once and on disk within 20 ms; readers see it from then on. A crash in between may
    /// lose it, and so may a full disk; the next commit on top of it then fails with [`CommitError::RolledBack`].
    /// It is never reordered with other commits to its streams.
    Relaxed,
}

/// Writes to one or more streams that take effect together or not at all.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The writes, each to a different stream.
    pub writes: Vec<Write>,
    /// Leases that must still be held.
    pub under: Vec<Lease>,
    /// When the commit is acknowledged.
    pub durability: Durability,
}

impl Commit {
    /// A durable commit with one write.
    pub fn one(write: Write) -> Self {
        Self::all(vec![write])
    }

    /// A durable commit with several writes.
    pub fn all(writes: Vec<Write>) -> Self {
        Self {
            writes,
            under: Vec::new(),
            durability: Durability::Durable,
        }
    }

    /// Makes the commit fail unless this lease is still held.
    #[must_use]
    pub fn under(mut self, lease: &Lease) -> Self {
        self.under.push(lease.clone());
        self
    }

    /// Acknowledges the commit before it is on disk.
    #[must_use]
    pub fn relaxed(mut self) -> Self {
        self.durability = Durability::Relaxed;
        self
    }

    /// All blobs that the commit refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        self.writes.iter().flat_map(|write| {
            let of_head = write.head.iter().flat_map(|head| &head.blobs);
            of_head.chain(write.events.iter().flat_map(|event| &event.blobs))
        })
    }

    /// Rejects what no engine should have to look at.
    pub(crate) fn check(&self) -> Result<(), CommitError> {
        let events: usize = self.writes.iter().map(|write| write.events.len()).sum();
        let items = self.writes.len() + events + self.blobs().count();
        if items > COMMIT_LIMIT_ITEMS {
            return Err(CommitError::TooMany { items });
        }
        check_streams(self.writes.iter().map(|write| &write.stream))?;
        for write in &self.writes {
            if write.expected == Version::NONE && write.head.is_none() {
                return Err(CommitError::HeadMissing {
                    stream: write.stream.clone(),
                });
            }
            let heads = write.head.iter().flat_map(|head| [&head.kind, &head.status]);
            for name in heads.chain(write.events.iter().map(|event| &event.kind)) {
                check_name(name)?;
            }
            let bodies = write.head.iter().map(|head| &head.body);
            for body in bodies.chain(write.events.iter().map(|event| &event.body)) {
                if body.len() > BODY_LIMIT_BYTES {
                    return Err(CommitError::TooLarge { bytes: body.len() });
                }
            }
        }
        Ok(())
    }
}

/// Rejects too many streams for one step, and streams that are named twice.
pub(crate) fn check_streams<'a>(streams: impl Iterator<Item = &'a StreamId>) -> Result<(), CommitError> {
    let mut seen = HashSet::new();
    for stream in streams {
        if !seen.insert(stream) {
            let stream = stream.clone();
            return Err(CommitError::StreamTwice { stream });
        }
    }
    if seen.len() > COMMIT_LIMIT_ITEMS {
        return Err(CommitError::TooMany { items: seen.len() });
    }
    Ok(())
}

/// The result of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Committed {
    /// The version that the next write to the stream must name.
    pub version: Version,
    /// The last event of the stream.
    pub last_sequence: Sequence,
}

/// A commit failed. Nothing of it took effect, unless it [may have been made](CommitError::may_be_made).
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The stream isn't at the version that the writer saw.
    #[error("the stream `{stream}` has moved on")]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// The current head; `None` if the stream doesn't exist.
        actual: Option<Box<StoredHead>>,
    },
    /// An earlier write of this writer was acknowledged and then lost, because it couldn't be written to disk
    /// (see [`Durability::Relaxed`]). Nobody else has written to the stream: it is as it was before that write.
    /// If a database server lost the write in a crash, the version shows it to the only writer of a stream
    /// ([`Log::commit_through`](crate::Log::commit_through)); other writers get a conflict and read again.
    #[error("an earlier write to `{stream}` was rolled back because it could not be written to disk")]
    RolledBack {
        /// The stream.
        stream: StreamId,
        /// The current head; `None` if the lost write was the first one.
        actual: Option<Box<StoredHead>>,
    },
    /// A lease that the commit depends on is no longer held.
    #[error("the lease on `{key}` is no longer held by this writer")]
    Fenced {
        /// The key of the lease.
        key: Arc<str>,
    },
    /// The commit refers to a blob that doesn't exist, or no longer does.
    #[error("the commit refers to the blob {0}, which is not there")]
    BlobMissing(BlobId),
    /// A new stream needs a head.
    #[error("the commit creates the stream `{stream}` without a head")]
    HeadMissing {
        /// The stream.
        stream: StreamId,
    },
    /// The commit writes twice to one stream.
    #[error("the commit writes twice to the stream `{stream}`")]
    StreamTwice {
        /// The stream.
        stream: StreamId,
    },
    /// The commit has too many items.
    #[error(
        "the commit has {items} writes, events and references to blobs; at most {COMMIT_LIMIT_ITEMS} go into one"
    )]
    TooMany {
        /// The number of items.
        items: usize,
    },
    /// A head or event is too large.
    #[error("a body has {bytes} bytes; the limit is {BODY_LIMIT_BYTES}, so store larger content as a blob")]
    TooLarge {
        /// The size of the body.
        bytes: usize,
    },
    /// A body can't be encoded as JSON, for example because of a path that isn't UTF-8.
    #[error("it cannot be stored: {0}")]
    NotStorable(#[source] serde_json::Error),
    /// An invalid kind or status.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl CommitError {
    /// Whether the commit may have been made although it failed, because the answer was lost. Then nothing that
    /// it refers to may be removed.
    pub fn may_be_made(&self) -> bool {
        matches!(self, Self::Log(error) if error.may_be_made())
    }
}
