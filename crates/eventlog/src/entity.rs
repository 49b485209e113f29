//! Durable entities: a stream with a typed head and typed events, read, decided on and committed in one way.
//!
//! 1. What is stored is what the record encodes to. If a record or an event can't be encoded, the commit fails
//!    before anything is sent to the log; an empty head is never stored.
//! 2. Every write names the version that its entity was read or last committed at. So a decision always concerns
//!    the state that its commit replaces.
//! 3. A read tells three cases apart: the entity is absent (`None`), its head can't be decoded
//!    ([`ReadError::Unreadable`], and it is quarantined), or the log can't be read ([`ReadError::Log`]).
//! 4. Only a conflict is decided again, at most as often as the caller allows; then the last conflict is the error.
//!    Everything else ([rolled back](CommitError::RolledBack), [fenced](CommitError::Fenced), an unavailable log) is
//!    returned at once, because deciding again wouldn't help, or wouldn't be right.
//! 5. A conflict brings the current head along, so deciding again costs no read.

use std::{
    fmt::{Debug, Display},
    str::FromStr,
    sync::Arc,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    blob::BlobId,
    commit::{Commit, CommitError, Committed, Head, NewEvent, StoredHead, Write, json_body},
    error::LogError,
    log::Log,
    names::{BadName, Sequence, StreamId, Version},
};

/// The state of one kind of entity, as its head stores it.
pub trait EntityRecord: Serialize + DeserializeOwned {
    /// The kind of the heads, and the first part of the names of their streams: `KIND/ID`.
    const KIND: &'static str;
    /// The id that a stream is named after.
    type Id: Clone + Debug + Display + FromStr;
    /// What happens to such an entity. [`NoEvent`] if its streams have no events.
    type Event: EntityEvent;

    /// The status of the head.
    fn status(&self) -> Arc<str>;

    /// The blobs that the head refers to.
    fn blobs(&self) -> Vec<BlobId> {
        Vec::new()
    }

    /// Reads a head. A record that keeps its status out of the body takes it from the head here.
    fn decode(head: &Head) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&head.body)
    }
}

/// Something that happens to an entity.
pub trait EntityEvent {
    /// The event as the log stores it, usually [`NewEvent::json`].
    fn encode(&self) -> Result<NewEvent, CommitError>;
}

/// An event that is encoded already, for entities whose events have a type of another crate.
impl EntityEvent for NewEvent {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        Ok(self.clone())
    }
}

/// The event of entities that have none.
#[derive(Clone, Copy, Debug)]
pub enum NoEvent {}

impl EntityEvent for NoEvent {
    fn encode(&self) -> Result<NewEvent, CommitError> {
        match *self {}
    }
}

/// An entity as it was when it was read or committed.
///
/// ```
/// use std::sync::Arc;
/// use eventlog::{
///     Change, CommitError, Entity, EntityEvent, EntityRecord, Log, NewEvent, ReadError, SqliteOptions,
/// };
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, Serialize, Deserialize)]
/// struct Counter {
///     count: u64,
/// }
///
/// #[derive(Serialize)]
/// struct Added {
///     by: u64,
/// }
///
/// impl EntityEvent for Added {
///     fn encode(&self) -> Result<NewEvent, CommitError> {
///         NewEvent::json("added", self)
///     }
/// }
///
/// impl EntityRecord for Counter {
///     const KIND: &'static str = "counter";
///     type Id = String;
///     type Event = Added;
///
///     fn status(&self) -> Arc<str> {
///         "counting".into()
///     }
/// }
///
/// #[derive(Debug, thiserror::Error)]
/// enum CounterError {
///     #[error("the counter is full")]
///     Full,
///     #[error(transparent)]
///     Read(#[from] ReadError),
///     #[error(transparent)]
///     Commit(#[from] CommitError),
/// }
///
/// async fn add(log: &Log, name: &str, by: u64) -> Result<u64, CounterError> {
///     // Reads the counter, decides, and commits; decides again if somebody else was faster.
///     let updated = Entity::update(log, name.to_owned(), 16, |counter: Option<&Entity<Counter>>| {
///         let count = counter.map_or(0, |counter| counter.record.count);
///         match count + by {
///             0..100 => Ok(Some(Change::new(Counter { count: count + by }).event(Added { by }))),
///             _ => Err(CounterError::Full),
///         }
///     });
///     Ok(updated.await?.entity().map_or(0, |counter| counter.record.count))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("log.sqlite3");
/// # let log = Log::open_sqlite(&SqliteOptions { path }, kernel::SystemClock::shared())?;
/// assert_eq!(add(&log, "apples", 40).await?, 40);
/// assert_eq!(add(&log, "apples", 40).await?, 80);
/// assert!(matches!(add(&log, "apples", 40).await, Err(CounterError::Full)));
///
/// // A writer that already holds an entity commits on the version it holds, without reading first.
/// let mut apples = Entity::<Counter>::read(&log, "apples".to_owned()).await?.unwrap();
/// apples.record.count = 1;
/// apples.save(&log, &[]).await?;
/// apples.record.count = 2;
/// apples.save(&log, &[]).await?;
/// assert_eq!(apples.last_sequence.get(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entity<R: EntityRecord> {
    /// Its id.
    pub id: R::Id,
    /// The version that the next write must name. [`Version::NONE`] if it isn't in the log yet.
    pub version: Version,
    /// The last event of its stream.
    pub last_sequence: Sequence,
    /// Its state.
    pub record: R,
}

impl<R: EntityRecord> Entity<R> {
    /// An entity that isn't in the log yet. Its first write creates it, and conflicts if it exists by then.
    pub fn new(id: R::Id, record: R) -> Self {
        Self {
            id,
            version: Version::NONE,
            last_sequence: Sequence::START,
            record,
        }
    }

    /// An entity that replaces what is stored under its id, even if that can't be decoded.
    pub fn replacing(id: R::Id, stored: Option<&StoredHead>, record: R) -> Self {
        let mut entity = Self::new(id, record);
        if let Some(stored) = stored {
            (entity.version, entity.last_sequence) = (stored.version, stored.last_sequence);
        }
        entity
    }

    /// The stream of the entity with this id.
    pub fn stream_of(id: &R::Id) -> Result<StreamId, BadName> {
        StreamId::new(&format!("{}/{id}", R::KIND))
    }

    /// The id that a stream is named after; `None` if it is the stream of something else.
    pub fn id_of(stream: &StreamId) -> Option<R::Id> {
        let rest = stream.as_str().strip_prefix(R::KIND)?;
        rest.strip_prefix('/')?.parse().ok()
    }

    /// Reads the entity with this id. `None` if there is none.
    pub async fn read(log: &Log, id: R::Id) -> Result<Option<Self>, ReadError> {
        let Ok(stream) = Self::stream_of(&id) else {
            // Nothing can be stored under a name that isn't valid.
            return Ok(None);
        };
        let stored = log.head(&stream).await?;
        Ok(stored.map(|stored| Self::of_head(log, &stored)).transpose()?)
    }

    /// The entity in a head. If it can't be decoded, the head is quarantined.
    pub fn of_head(log: &Log, stored: &StoredHead) -> Result<Self, Unreadable> {
        log.or_quarantine(stored, Self::decode(stored))
    }

    /// The same without a log.
    pub fn decode(stored: &StoredHead) -> Result<Self, Unreadable> {
        let unreadable = |source| Unreadable {
            stream: stored.stream.clone(),
            source,
        };
        Ok(Self {
            id: Self::id_of(&stored.stream).ok_or_else(|| unreadable(not_an_id()))?,
            version: stored.version,
            last_sequence: stored.last_sequence,
            record: R::decode(&stored.head).map_err(unreadable)?,
        })
    }

    /// All entities, or those with this status, oldest first. Those that can't be decoded are quarantined and left
    /// out.
    pub async fn all(log: &Log, status: Option<&str>) -> Result<Vec<Self>, LogError> {
        let mut all = Vec::new();
        log.each_head(R::KIND, status, |stored| {
            all.extend(Self::of_head(log, &stored));
        })
        .await?;
        Ok(all)
    }

    /// Why a head of this kind can't be decoded. `None` if it can, or if it is of another kind.
    pub fn problem(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
        if &*head.kind != R::KIND {
            return None;
        }
        let unnamed = || Self::id_of(stream).is_none().then(not_an_id);
        R::decode(head).err().or_else(unnamed)
    }

    /// The stream and the version, for [`Log::remove`].
    pub fn at(&self) -> Result<(StreamId, Version), BadName> {
        Ok((Self::stream_of(&self.id)?, self.version))
    }

    /// The write that stores the record and appends events, for a commit that has other writes too. If it is made,
    /// pass its result to [`committed`](Self::committed).
    pub fn write(&self, events: &[R::Event]) -> Result<Write, CommitError> {
        self.write_record(&self.record, events)
    }

    /// The same for another record, on the version that this entity holds.
    pub fn write_record(&self, record: &R, events: &[R::Event]) -> Result<Write, CommitError> {
        let head = Head {
            kind: R::KIND.into(),
            status: record.status(),
            body: json_body(record)?,
            blobs: record.blobs(),
        };
        Ok(Write {
            head: Some(head),
            ..self.append(events)?
        })
    }

    /// The write that appends events and keeps the head that is stored.
    pub fn append(&self, events: &[R::Event]) -> Result<Write, CommitError> {
        let events: Result<Vec<NewEvent>, CommitError> = events.iter().map(EntityEvent::encode).collect();
        Ok(Write {
            stream: Self::stream_of(&self.id)?,
            expected: self.version,
            head: None,
            events: events?,
        })
    }

    /// Takes over the version of a write that was made.
    pub fn committed(&mut self, made: Committed) {
        self.version = made.version;
        self.last_sequence = made.last_sequence;
    }

    /// Stores the record and appends events, durably, on the version that this entity holds. *Cancel safety*: that
    /// of [`Log::commit`].
    pub async fn save(&mut self, log: &Log, events: &[R::Event]) -> Result<(), CommitError> {
        let write = self.write(events)?;
        self.commit(log, Commit::one(write)).await
    }

    /// Makes a commit that has the write of this entity as its first one, and takes over the version.
    pub async fn commit(&mut self, log: &Log, commit: Commit) -> Result<(), CommitError> {
        if let Some(made) = log.commit(commit).await?.first() {
            self.committed(*made);
        }
        Ok(())
    }

    /// Reads an entity, decides and commits; decides again if it has changed in the meantime. `decide` gets `None`
    /// if there is no such entity, and returns `None` if there is nothing to change. *Cancel safety*: if the future
    /// is dropped, the change may or may not be made.
    pub async fn update<E>(
        log: &Log,
        id: R::Id,
        tries: usize,
        decide: impl FnMut(Option<&Self>) -> Result<Option<Change<R>>, E>,
    ) -> Result<Updated<R>, E>
    where
        E: From<ReadError> + From<CommitError>,
    {
        let held = Self::read(log, id.clone()).await?;
        Self::update_held(log, id, held, tries, decide).await
    }

    /// The same on an entity that the caller holds, or knows to be absent. Nothing is read unless that conflicts.
    pub async fn update_held<E>(
        log: &Log,
        id: R::Id,
        mut held: Option<Self>,
        tries: usize,
        mut decide: impl FnMut(Option<&Self>) -> Result<Option<Change<R>>, E>,
    ) -> Result<Updated<R>, E>
    where
        E: From<ReadError> + From<CommitError>,
    {
        let mut retries = ConflictRetries::new(tries);
        loop {
            let Some(Change { record, events, also }) = decide(held.as_ref())? else {
                return Ok(Updated::Kept(held));
            };
            let mut next = Self::new(id.clone(), record);
            if let Some(held) = &held {
                (next.version, next.last_sequence) = (held.version, held.last_sequence);
            }
            let mut writes = vec![next.write(&events)?];
            writes.extend(also);
            let committed = next.commit(log, Commit::all(writes)).await;
            let is_to_retry = retries.again(&committed);
            match committed {
                Ok(()) => return Ok(Updated::Written(next)),
                Err(CommitError::Conflict { stream, actual }) if is_to_retry => {
                    held = match Self::stream_of(&id) {
                        Ok(own) if own == stream => match actual {
                            Some(actual) => Some(Self::of_head(log, &actual).map_err(ReadError::from)?),
                            None => None,
                        },
                        // One of the other writes conflicted, and this entity may have changed with it.
                        _ => Self::read(log, id.clone()).await?,
                    };
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn not_an_id() -> serde_json::Error {
    serde::de::Error::custom("its name is not an id")
}

/// What was decided about an entity.
#[derive(Debug)]
pub struct Change<R: EntityRecord> {
    /// Its next state.
    pub record: R,
    /// The events to append.
    pub events: Vec<R::Event>,
    /// Writes to other streams, in the same commit.
    pub also: Vec<Write>,
}

impl<R: EntityRecord> Change<R> {
    /// A change without an event.
    pub fn new(record: R) -> Self {
        Self {
            record,
            events: Vec::new(),
            also: Vec::new(),
        }
    }

    /// Appends an event.
    #[must_use]
    pub fn event(mut self, event: R::Event) -> Self {
        self.events.push(event);
        self
    }
}

/// The result of an update.
#[derive(Debug)]
pub enum Updated<R: EntityRecord> {
    /// The change was committed.
    Written(Entity<R>),
    /// There was nothing to change.
    Kept(Option<Entity<R>>),
}

impl<R: EntityRecord> Updated<R> {
    /// The entity as it is now, if there is one.
    pub fn entity(self) -> Option<Entity<R>> {
        match self {
            Self::Written(entity) => Some(entity),
            Self::Kept(entity) => entity,
        }
    }
}

/// A head can't be decoded. The log keeps it as it is.
#[derive(Debug, thiserror::Error)]
#[error("the head of `{stream}` cannot be read")]
pub struct Unreadable {
    /// The stream.
    pub stream: StreamId,
    /// Why.
    #[source]
    pub source: serde_json::Error,
}

/// An entity can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Its head can't be decoded, and is quarantined.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<ReadError> for LogError {
    /// For callers that treat a damaged head like a damaged log.
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Log(error) => error,
            ReadError::Unreadable(unreadable) => Self::Corrupt(Arc::new(unreadable)),
        }
    }
}

impl From<ReadError> for CommitError {
    /// For callers that only change an entity.
    fn from(error: ReadError) -> Self {
        Self::Log(error.into())
    }
}

/// An error that may be a conflict, so that [`ConflictRetries`] can tell.
pub trait MaybeConflict {
    /// Whether a commit was refused because somebody else had changed a stream.
    fn is_conflict(&self) -> bool;
}

impl MaybeConflict for CommitError {
    fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }
}

/// Counts the attempts at a decision that concerns several entities or has to wait for something. For a single
/// entity, use [`Entity::update`].
///
/// ```
/// # use eventlog::{CommitError, ConflictRetries};
/// # async fn try_to_move() -> Result<(), CommitError> { Ok(()) }
/// # async fn move_both() -> Result<(), CommitError> {
/// let mut retries = ConflictRetries::new(16);
/// loop {
///     // Reads both, decides, and commits on the versions that were read.
///     let moved = try_to_move().await;
///     if !retries.again(&moved) {
///         return moved;
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct ConflictRetries {
    tries_left: usize,
}

impl ConflictRetries {
    /// Allows so many attempts.
    pub fn new(tries: usize) -> Self {
        Self { tries_left: tries }
    }

    /// Whether this attempt conflicted and another one is left. The next one must read again.
    pub fn again<T, E: MaybeConflict>(&mut self, attempt: &Result<T, E>) -> bool {
        self.tries_left = self.tries_left.saturating_sub(1);
        self.tries_left > 0 && attempt.as_ref().is_err_and(MaybeConflict::is_conflict)
    }
}

#[cfg(test)]
mod tests;
