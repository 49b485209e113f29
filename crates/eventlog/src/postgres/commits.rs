//! One commit: look with locks, then write, each in one round trip.
//!
//! 1. The first round trip locks the streams, then the blobs, then the leases that the commit names, each in the
//!    order of their keys; the second one waits only for others that make the same new stream, in the order of their
//!    names. So no two commits wait for each other.
//! 2. What is decided on is locked until the commit is made or taken back. Only a stream that is not there cannot be
//!    locked: two that make it meet at its unique name, and the second one is refused.
//! 3. `COMMIT` is sent along with the last statements. `failure::outcome` says what is known when something fails.
//! 4. If the answer to `COMMIT` was lost, the next attempt finds out what became of it. Every write has a version of its
//!    own, drawn before: a stream that has it was written by this commit, one that is as it was before was not.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_postgres::{Error, Row, error::SqlState};

use super::{
    connection::Connection,
    failure::{Failure, Malformed, outcome},
    listener::{self, Hint},
    pool::Pooled,
    read::{self, number, unsigned},
    rows::{self, EventRows, ReferenceRows, StreamRows},
};
use crate::{
    blob::BlobId,
    commit::{Commit, CommitError, Committed, Durability, Event, Write},
    error::LogError,
    hub::{Change, ChangeKind},
    lease::Lease,
    names::{StreamId, Version},
};

/// What a commit did: its answer, and what the hub is to be told.
pub(super) type Made = (Vec<Committed>, Vec<Change>);

/// What the first round trip found.
struct Found {
    streams: HashMap<String, FoundStream>,
    blobs: HashSet<BlobId>,
    /// Keys and tokens of the leases that are held.
    leases: HashSet<(String, Version)>,
    /// One for each write.
    versions: Vec<i64>,
    at_ms: i64,
}

#[derive(Clone, Copy)]
pub(super) struct FoundStream {
    pub(super) number: i64,
    pub(super) version: Version,
    last_sequence: i64,
}

/// Why a commit does not fit what was found.
enum Misfit<'a> {
    Fenced(&'a Lease),
    Stale(&'a StreamId),
    BlobMissing(BlobId),
}

/// What became of attempts whose answer was lost, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Tried {
    // Guards what each of them would have made; held for a look.
    made: Mutex<Vec<Made>>,
}

impl Tried {
    fn lock(&self) -> MutexGuard<'_, Vec<Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The one that gave the streams these versions.
    fn that_made(&self, versions: &[Version]) -> Option<Made> {
        let is_it = |made: &mut Made| made.0.iter().map(|at| at.version).eq(versions.iter().copied());
        self.lock().extract_if(.., is_it).next()
    }
}

pub(super) async fn commit(
    mut connection: Pooled,
    commit: &Commit,
    tried: &Tried,
) -> Result<Made, Failure<CommitError>> {
    if commit.writes.is_empty() && commit.under.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    connection.enter_transaction();
    let found = match look(&connection, commit).await {
        Ok(found) => found,
        Err(failed) => {
            connection.roll_back().await;
            return Err(failed);
        }
    };
    if !tried.is_empty() {
        let resolved = resolve(&connection, commit, tried).await;
        if !matches!(resolved, Ok(None)) {
            connection.roll_back().await;
            return resolved.map(Option::unwrap_or_default);
        }
    }
    match misfit(commit, &found) {
        Some(misfit) => Err(refuse(connection, misfit).await?),
        None => write(connection, commit, &found, tried).await,
    }
}

/// What an attempt has made whose answer was lost; `None` if the streams are as they were before it.
async fn resolve(
    connection: &Connection,
    commit: &Commit,
    tried: &Tried,
) -> Result<Option<Made>, Failure<CommitError>> {
    let mut versions = Vec::with_capacity(commit.writes.len());
    for write in &commit.writes {
        let actual = read::head::<CommitError>(connection, &write.stream).await?;
        versions.push(actual.map_or(Version::NONE, |actual| actual.version));
    }
    if let Some(made) = tried.that_made(&versions) {
        return Ok(Some(made));
    }
    if commit.writes.iter().map(|write| write.expected).eq(versions) {
        return Ok(None);
    }
    // Others have written since: after it, or in its place.
    Err(Failure::Log(LogError::OutcomeUnknown(Arc::new(WrittenSince))))
}

#[derive(Debug, thiserror::Error)]
#[error("the answer to a commit was lost, and others have written since")]
struct WrittenSince;

async fn look(connection: &Connection, commit: &Commit) -> Result<Found, Failure<CommitError>> {
    let begin = match commit.durability {
        Durability::Durable => "BEGIN",
        Durability::Relaxed => "BEGIN; SET LOCAL synchronous_commit = off",
    };
    let streams: Vec<&str> = commit.writes.iter().map(|write| write.stream.as_str()).collect();
    let blobs: Vec<&[u8]> = commit.blobs().map(|blob| blob.as_bytes().as_slice()).collect();
    let expected: Vec<i64> = commit
        .writes
        .iter()
        .map(|write| number(write.expected.get()))
        .collect();
    let leases: Vec<&str> = commit.under.iter().map(|lease| &*lease.key).collect();
    let versions = number(commit.writes.len() as u64);
    let statements = &connection.statements;
    let ((), streams, blobs, leases, versions) = tokio::try_join!(
        biased;
        connection.batch(begin),
        connection.query(&statements.lock_streams, [&streams, &expected]),
        async {
            if blobs.is_empty() {
                return Ok(Vec::new());
            }
            connection.query(&statements.lock_blobs, [&blobs]).await
        },
        async {
            if leases.is_empty() {
                return Ok(Vec::new());
            }
            connection.query(&statements.lock_leases, [&leases]).await
        },
        connection.query(&statements.draw_versions, [&versions]),
    )?;
    let lease = |row: &Row| Ok((row.try_get(0)?, Version::from_u64(unsigned(row.try_get(1)?)?)));
    let at_ms = versions.first().map_or(Ok(0), |row| row.try_get(1))?;
    Ok(Found {
        streams: streams.iter().map(found_stream).collect::<Result<_, _>>()?,
        blobs: blobs
            .iter()
            .map(|row| Ok(read::blob(row.try_get(0)?)?))
            .collect::<Result<_, Failure<CommitError>>>()?,
        leases: leases
            .iter()
            .map(lease)
            .collect::<Result<_, Failure<CommitError>>>()?,
        versions: versions
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?,
        at_ms,
    })
}

pub(super) fn found_stream(row: &Row) -> Result<(String, FoundStream), Failure<CommitError>> {
    let found = FoundStream {
        number: row.try_get(1)?,
        version: Version::from_u64(unsigned(row.try_get(2)?)?),
        last_sequence: row.try_get(3)?,
    };
    Ok((row.try_get(0)?, found))
}

/// What of a commit does not fit, if anything. A stream that was left out has moved on or is not there.
fn misfit<'a>(commit: &'a Commit, found: &Found) -> Option<Misfit<'a>> {
    let is_lost = |lease: &&Lease| !found.leases.contains(&(lease.key.to_string(), lease.token));
    let version = |stream: &StreamId| {
        let stream = found.streams.get(stream.as_str());
        stream.map_or(Version::NONE, |stream| stream.version)
    };
    let is_stale = |write: &&Write| write.expected != version(&write.stream);
    let is_missing = |blob: &&BlobId| !found.blobs.contains(blob);
    let fenced = commit.under.iter().find(is_lost).map(Misfit::Fenced);
    let stale = || {
        let write = commit.writes.iter().find(is_stale)?;
        Some(Misfit::Stale(&write.stream))
    };
    let missing = || commit.blobs().find(is_missing).copied().map(Misfit::BlobMissing);
    fenced.or_else(stale).or_else(missing)
}

/// Takes the transaction back, and tells why.
async fn refuse(
    mut connection: Pooled,
    misfit: Misfit<'_>,
) -> Result<Failure<CommitError>, Failure<CommitError>> {
    let (actual, ended) = tokio::join!(
        biased;
        async {
            match &misfit {
                Misfit::Stale(stream) => read::head(&connection, stream).await,
                Misfit::Fenced(_) | Misfit::BlobMissing(_) => Ok(None),
            }
        },
        connection.batch("ROLLBACK"),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    Ok(Failure::Refused(match misfit {
        Misfit::Fenced(lease) => CommitError::Fenced {
            key: Arc::clone(&lease.key),
        },
        Misfit::Stale(stream) => CommitError::Conflict {
            stream: stream.clone(),
            actual: actual?.map(Box::new),
        },
        Misfit::BlobMissing(blob) => CommitError::BlobMissing(blob),
    }))
}

async fn write(
    mut connection: Pooled,
    commit: &Commit,
    found: &Found,
    tried: &Tried,
) -> Result<Made, Failure<CommitError>> {
    let (committed, events) = number_events(commit, found)?;
    let (mut inserted, mut updated) = (StreamRows::default(), StreamRows::default());
    let (mut event_rows, mut references) = (EventRows::default(), ReferenceRows::default());
    let (mut new_heads, mut lives, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    for ((write, at), events) in commit.writes.iter().zip(&committed).zip(&events) {
        let known = found.streams.get(write.stream.as_str());
        let stream = known.map_or_else(|| number(at.version.get()), |known| known.number);
        let rows = if known.is_some() {
            &mut updated
        } else {
            &mut inserted
        };
        rows.push(stream, write.stream.as_str(), *at, write.head.as_ref());
        if let Some(head) = &write.head {
            if known.is_some() {
                new_heads.push(stream);
            }
            references.push(stream, 0, &head.blobs);
        }
        for (event, new) in events.iter().zip(&write.events) {
            event_rows.push(stream, event);
            references.push(stream, event.sequence.get(), &new.blobs);
        }
        let life = read::life(stream)?;
        lives.push(life);
        hints.push(Hint::written(&write.stream, life, at.last_sequence));
    }
    let (inserted, updated, added, forgotten, referred, ended, ()) = tokio::join!(
        biased;
        inserted.insert(&connection),
        updated.update(&connection),
        event_rows.insert(&connection),
        rows::forget_head_blobs(&connection, &new_heads),
        references.insert(&connection),
        connection.batch("COMMIT"),
        // If the commit fails after all, the hint is a false alarm, and costs a look.
        listener::tell_later(&connection, connection.schema(), &hints),
    );
    if ended.is_ok() {
        connection.left_transaction();
    }
    if inserted.as_ref().is_err_and(is_stream_taken) {
        // An earlier attempt may have been under way still, and have made it.
        if !tried.is_empty()
            && let Some(made) = resolve(&connection, commit, tried).await?
        {
            return Ok(made);
        }
        return Err(conflict_of_new(&connection, commit, found).await?);
    }
    let changes = commit.writes.iter().zip(lives).zip(events);
    let changes = changes.map(|((write, life), events)| Change {
        stream: write.stream.clone(),
        life,
        kind: ChangeKind::Written(events),
    });
    let made = (committed, changes.collect());
    match outcome([inserted, updated, added, forgotten, referred], ended) {
        Ok(()) => Ok(made),
        Err(Failure::Log(LogError::OutcomeUnknown(error))) if !commit.writes.is_empty() => {
            tried.lock().push(made);
            Err(Failure::Unclear(error))
        }
        Err(failed) => Err(failed),
    }
}

type Numbered = (Vec<Committed>, Vec<Vec<Arc<Event>>>);

/// Gives the new events of each write their places.
fn number_events(commit: &Commit, found: &Found) -> Result<Numbered, Malformed> {
    let (mut committed, mut numbered) = (Vec::new(), Vec::new());
    for (write, version) in commit.writes.iter().zip(&found.versions) {
        let known = found.streams.get(write.stream.as_str());
        let mut last = read::sequence(known.map_or(0, |known| known.last_sequence))?;
        let mut events = Vec::with_capacity(write.events.len());
        for event in &write.events {
            last = last.next();
            events.push(Arc::new(Event {
                sequence: last,
                at_ms: found.at_ms,
                kind: Arc::clone(&event.kind),
                body: Arc::clone(&event.body),
            }));
        }
        committed.push(Committed {
            version: Version::from_u64(unsigned(*version)?),
            last_sequence: last,
        });
        numbered.push(events);
    }
    Ok((committed, numbered))
}

/// Whether somebody else made the stream meanwhile.
fn is_stream_taken(error: &Error) -> bool {
    error.as_db_error().is_some_and(|reported| {
        reported.code() == &SqlState::UNIQUE_VIOLATION && reported.constraint() == Some("streams_id")
    })
}

/// The first of the new streams that was there already.
async fn conflict_of_new(
    connection: &Connection,
    commit: &Commit,
    found: &Found,
) -> Result<Failure<CommitError>, Failure<CommitError>> {
    let new = |write: &&Write| !found.streams.contains_key(write.stream.as_str());
    for write in commit.writes.iter().filter(new) {
        if let Some(actual) = read::head(connection, &write.stream).await? {
            return Ok(Failure::Refused(CommitError::Conflict {
                stream: write.stream.clone(),
                actual: Some(Box::new(actual)),
            }));
        }
    }
    Err(Malformed("a stream, though its name is taken").into())
}
