//! What is written: heads and events, in one step, by somebody who says what they saw.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;

use crate::{
    blob::BlobId,
    error::LogError,
    lease::Lease,
    names::{BadName, Sequence, StreamId, Version, check_name},
};

/// The most bytes in the body of one head or event. Larger things are blobs.
pub const BODY_LIMIT_BYTES: usize = 1024 * 1024;
/// The most writes, events and references to blobs in one commit: it is applied while others wait.
pub const COMMIT_LIMIT_ITEMS: usize = 1024;

/// The latest state of one entity.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Head {
    /// What the entity is, for example `job`. Heads are listed by it.
    pub kind: Arc<str>,
    /// What it is doing, for example `running`. Heads are listed by it.
    pub status: Arc<str>,
    /// The state itself, in the words of whoever writes it.
    pub body: Arc<[u8]>,
    /// The blobs that the state refers to: they are kept until the next head no longer names them. The log gives
    /// them back in this order.
    pub blobs: Vec<BlobId>,
}

impl Head {
    /// A head with a body of JSON, which refers to no blobs.
    ///
    /// # Errors
    /// The body has something in it that JSON cannot hold, such as a path that is not UTF-8.
    pub fn json(kind: &str, status: &str, body: &impl Serialize) -> Result<Self, CommitError> {
        Ok(Self {
            kind: kind.into(),
            status: status.into(),
            body: json_body(body)?,
            blobs: Vec::new(),
        })
    }
}

/// A body of JSON, for a head or an event.
///
/// # Errors
/// The value has something in it that JSON cannot hold, such as a path that is not UTF-8.
pub fn json_body(value: &impl Serialize) -> Result<Arc<[u8]>, CommitError> {
    Ok(serde_json::to_vec(value)
        .map_err(CommitError::NotStorable)?
        .into())
}

/// A head as the log has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredHead {
    /// The stream of the entity.
    pub stream: StreamId,
    /// The version that the next write must name.
    pub version: Version,
    /// The last event of the stream.
    pub last_sequence: Sequence,
    /// The state.
    pub head: Head,
}

/// An event to be appended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewEvent {
    /// What happened, for example `output`.
    pub kind: Arc<str>,
    /// The rest, in the words of whoever writes it.
    pub body: Arc<[u8]>,
    /// The blobs that the event refers to: they are kept as long as the event is.
    pub blobs: Vec<BlobId>,
}

impl NewEvent {
    /// An event with a body of JSON, which refers to no blobs.
    ///
    /// # Errors
    /// The body has something in it that JSON cannot hold, such as a path that is not UTF-8.
    pub fn json(kind: &str, body: &impl Serialize) -> Result<Self, CommitError> {
        Ok(Self {
            kind: kind.into(),
            body: json_body(body)?,
            blobs: Vec::new(),
        })
    }
}

/// An event as the log has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its place in the stream.
    pub sequence: Sequence,
    /// When it was committed, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub kind: Arc<str>,
    /// The rest.
    pub body: Arc<[u8]>,
}

/// A write to one stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Write {
    /// The stream.
    pub stream: StreamId,
    /// The version that the writer saw; [`Version::NONE`] to make the stream.
    pub expected: Version,
    /// The new state; `None` leaves it as it is, which a new stream cannot.
    pub head: Option<Head>,
    /// What to append.
    pub events: Vec<NewEvent>,
}

/// When a commit is safe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// It is on disk when it is acknowledged.
    Durable,
    /// It is acknowledged at once and on disk within 20 ms; readers see it from then on. A crash in between may
    /// lose it, and so may a disk that is full: then the next commit on top of it is [`CommitError::RolledBack`]. It is
    /// never reordered against other commits of its streams.
    Relaxed,
}

/// Writes to one or more streams that take effect together or not at all.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The writes, each to another stream.
    pub writes: Vec<Write>,
    /// Leases that must still be held.
    pub under: Vec<Lease>,
    /// When it is safe.
    pub durability: Durability,
}

impl Commit {
    /// A durable commit of one write.
    pub fn one(write: Write) -> Self {
        Self::all(vec![write])
    }

    /// A durable commit of several writes.
    pub fn all(writes: Vec<Write>) -> Self {
        Self {
            writes,
            under: Vec::new(),
            durability: Durability::Durable,
        }
    }

    /// The same, only while this lease is held.
    #[must_use]
    pub fn under(mut self, lease: &Lease) -> Self {
        self.under.push(lease.clone());
        self
    }

    /// The same, acknowledged before it is on disk.
    #[must_use]
    pub fn relaxed(mut self) -> Self {
        self.durability = Durability::Relaxed;
        self
    }

    /// All blobs that it refers to.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        self.writes.iter().flat_map(|write| {
            let of_head = write.head.iter().flat_map(|head| &head.blobs);
            of_head.chain(write.events.iter().flat_map(|event| &event.blobs))
        })
    }

    /// Refuses what no engine should have to look at.
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

/// Refuses more streams than one step may change, and a stream that is named twice.
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

/// What became of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Committed {
    /// The version that the next write to the stream must name.
    pub version: Version,
    /// The last event of the stream.
    pub last_sequence: Sequence,
}

/// A commit was not made; nothing of it took effect, unless it [may be made](CommitError::may_be_made).
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The stream is not at the version that the writer saw.
    #[error("the stream `{stream}` has moved on")]
    Conflict {
        /// The stream.
        stream: StreamId,
        /// What it is now; `None` if it does not exist.
        actual: Option<Box<StoredHead>>,
    },
    /// An earlier write of this writer was acknowledged and then lost, because it could not be brought to disk (see
    /// [`Durability::Relaxed`]). Nobody else has written to the stream: it is as it was before that write. What a database
    /// server lost in a crash is known by its version, and said to the only writer of a stream
    /// ([`Log::commit_through`](crate::Log::commit_through)); to others it is a conflict, and they look again.
    #[error("an earlier write to `{stream}` was taken back, because it could not be brought to disk")]
    RolledBack {
        /// The stream.
        stream: StreamId,
        /// What it is now; `None` if its very first write was taken back.
        actual: Option<Box<StoredHead>>,
    },
    /// A lease that the commit was made under is no longer held.
    #[error("the lease on `{key}` is no longer held by this writer")]
    Fenced {
        /// What the lease is on.
        key: Arc<str>,
    },
    /// The commit refers to a blob that is not there, or no longer.
    #[error("the commit refers to the blob {0}, which is not there")]
    BlobMissing(BlobId),
    /// A stream was to be made without a head.
    #[error("the stream `{stream}` is to be made without a head")]
    HeadMissing {
        /// The stream.
        stream: StreamId,
    },
    /// Two writes to one stream.
    #[error("the commit writes twice to the stream `{stream}`")]
    StreamTwice {
        /// The stream.
        stream: StreamId,
    },
    /// Too much for one commit.
    #[error(
        "the commit has {items} writes, events and references to blobs; at most {COMMIT_LIMIT_ITEMS} go into one"
    )]
    TooMany {
        /// How many.
        items: usize,
    },
    /// Too much for one head or event.
    #[error("a body has {bytes} bytes; at most {BODY_LIMIT_BYTES} go into one, larger things are blobs")]
    TooLarge {
        /// How many.
        bytes: usize,
    },
    /// A body could not be written as JSON, for example because of a path that is not UTF-8.
    #[error("it cannot be stored: {0}")]
    NotStorable(#[source] serde_json::Error),
    /// A kind or status that cannot be used.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl CommitError {
    /// Whether it may have been made all the same, because the answer was lost. Then nothing may be taken away that it
    /// speaks of.
    pub fn may_be_made(&self) -> bool {
        matches!(self, Self::Log(error) if error.may_be_made())
    }
}
