//! One commit: one statement, and so one round trip. `schema/write_commit.sql` checks under locks and writes.
//!
//! A commit whose answer was lost is retried. The retry finds out what happened to the earlier attempt: all
//! attempts leave the same mark in the streams that they write. A stream with the mark was written by this
//! commit; a stream that is as before wasn't.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, OnceLock},
};

use tokio_postgres::{Error, Row, error::SqlState};

use super::{
    connection::Connection,
    failure::{self, Failure, Malformed},
    listener,
    pool::Pooled,
    read::{self, number, sequence, unsigned},
    rows::CommitRows,
};
use crate::{
    commit::{Commit, CommitError, Committed, Event, Write},
    error::LogError,
    hub::{Change, ChangeKind},
    names::{Incarnation, Sequence, StreamId, Version},
};

/// The result of a commit: its answer, and the changes to publish.
pub(super) type CommitResult = (Vec<Committed>, Vec<Change>);

/// The mark of one commit, which all attempts to make it leave.
#[derive(Debug)]
pub(super) struct Mark {
    number: i64,
    /// Set once an attempt may have been written.
    answer_lost: OnceLock<()>,
}

impl Mark {
    /// A random mark, so that no other commit has it.
    pub(super) fn new() -> Self {
        Self {
            number: RandomState::new().hash_one("a commit").cast_signed(),
            answer_lost: OnceLock::new(),
        }
    }

    fn is_answer_lost(&self) -> bool {
        self.answer_lost.get().is_some()
    }
}

/// Why a commit wasn't made.
enum CommitConflict<'a> {
    /// It conflicts with what was found.
    Refused(CommitError),
    /// The stream has changed.
    Stale(&'a StreamId),
    /// Somebody else has created one of the new streams in the meantime.
    StreamTaken,
}

/// The result of one write.
struct Written {
    incarnation: Incarnation,
    version: Version,
    last: Sequence,
    at_ms: i64,
}

pub(super) async fn commit(
    connection: Pooled,
    commit: &Commit,
    mark: &Mark,
) -> Result<CommitResult, Failure<CommitError>> {
    if commit.writes.is_empty() && commit.under.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let rows = CommitRows::of(commit);
    let (answer, ()) = tokio::join!(
        biased;
        rows.write(&connection, mark.number),
        listener::send_written_hints(&connection, connection.schema(), &rows.ids, mark.number),
    );
    let conflict = match answer {
        Ok(rows) => match conflict_of(commit, &rows)? {
            None => return made(commit, rows.iter().map(written_of_row)),
            Some(conflict) => conflict,
        },
        Err(error) if is_stream_taken(&error) => CommitConflict::StreamTaken,
        Err(error) if failure::is_lost(&error) && !commit.writes.is_empty() => {
            mark.answer_lost.get_or_init(|| ());
            return Err(Failure::Unclear(Arc::new(error)));
        }
        Err(error) => return Err(error.into()),
    };
    if mark.is_answer_lost()
        && let Some(made) = find(&connection, commit, mark).await?
    {
        return Ok(made);
    }
    Err(Failure::Refused(refusal(&connection, commit, conflict).await?))
}

fn written_of_row(row: &Row) -> Result<Written, Failure<CommitError>> {
    Ok(Written {
        incarnation: read::incarnation(row.try_get(2)?)?,
        version: Version::from_u64(unsigned(row.try_get(3)?)?),
        last: sequence(row.try_get(4)?)?,
        at_ms: row.try_get(5)?,
    })
}

/// The first conflict of a commit, if there is one.
fn conflict_of<'a>(
    commit: &'a Commit,
    rows: &[Row],
) -> Result<Option<CommitConflict<'a>>, Failure<CommitError>> {
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let Some(conflict) = row.try_get::<_, Option<&str>>(0)? else {
        return Ok(None);
    };
    let item = unsigned(row.try_get(1)?)?;
    let item = usize::try_from(item).ok().and_then(|item| item.checked_sub(1));
    let item = item.ok_or(Malformed("an item of a commit"))?;
    let conflict = match conflict {
        "fenced" => commit.under.get(item).map(|lease| {
            let key = Arc::clone(&lease.key);
            CommitConflict::Refused(CommitError::Fenced { key })
        }),
        "stale" => commit
            .writes
            .get(item)
            .map(|write| CommitConflict::Stale(&write.stream)),
        "blob missing" => {
            let blob = commit.blobs().nth(item).copied();
            blob.map(|blob| CommitConflict::Refused(CommitError::BlobMissing(blob)))
        }
        _ => None,
    };
    Ok(Some(conflict.ok_or(Malformed("an item of a commit"))?))
}

/// What a commit has written, with the new events of each write at their positions.
fn made(
    commit: &Commit,
    written: impl Iterator<Item = Result<Written, Failure<CommitError>>>,
) -> Result<CommitResult, Failure<CommitError>> {
    let (mut committed, mut changes) = (Vec::new(), Vec::new());
    for (write, written) in commit.writes.iter().zip(written) {
        let written = written?;
        let before = written.last.get().checked_sub(write.events.len() as u64);
        let mut last = Sequence::from_u64(before.ok_or(Malformed("the last event of a stream"))?);
        let events = write.events.iter().map(|event| {
            last = last.next();
            Arc::new(Event {
                sequence: last,
                at_ms: written.at_ms,
                kind: Arc::clone(&event.kind),
                body: Arc::clone(&event.body),
            })
        });
        changes.push(Change {
            stream: write.stream.clone(),
            incarnation: written.incarnation,
            kind: ChangeKind::Written(events.collect()),
        });
        committed.push(Committed {
            version: written.version,
            last_sequence: written.last,
        });
    }
    if committed.len() < commit.writes.len() {
        return Err(Malformed("an answer to a commit").into());
    }
    Ok((committed, changes))
}

/// What an attempt has written whose answer was lost; `None` if the streams are as they were before it.
async fn find(
    connection: &Connection,
    commit: &Commit,
    mark: &Mark,
) -> Result<Option<CommitResult>, Failure<CommitError>> {
    let sql = "
        SELECT id, mark = $2::bigint # version, number, version, last_sequence,
            coalesce((SELECT at_ms FROM events WHERE stream = number AND sequence = last_sequence), 0)
        FROM streams WHERE id = ANY($1::text[])";
    let ids: Vec<&str> = commit.writes.iter().map(|write| write.stream.as_str()).collect();
    let rows = connection.client.query(sql, &[&ids, &mark.number]).await?;
    let row = |write: &Write| {
        rows.iter()
            .find(|row| row.try_get(0).is_ok_and(|id: &str| id == write.stream.as_str()))
    };
    let has_mark = |write: &Write| match row(write) {
        Some(row) => row.try_get(1),
        None => Ok(false),
    };
    let marked = commit
        .writes
        .iter()
        .map(has_mark)
        .collect::<Result<Vec<bool>, _>>()?;
    if marked.iter().all(|marked| *marked) {
        let written = commit.writes.iter().filter_map(row).map(written_of_row);
        return made(commit, written).map(Some);
    }
    let is_as_before = |write: &Write| match row(write) {
        Some(row) => row
            .try_get(3)
            .map(|version: i64| version == number(write.expected.get())),
        None => Ok(write.expected == Version::NONE),
    };
    let as_before = commit
        .writes
        .iter()
        .map(is_as_before)
        .collect::<Result<Vec<bool>, _>>()?;
    if as_before.iter().all(|as_before| *as_before) {
        return Ok(None);
    }
    // Others have written since, either on top of it or instead of it.
    Err(Failure::Log(LogError::OutcomeUnknown(Arc::new(WrittenSince))))
}

#[derive(Debug, thiserror::Error)]
#[error("the answer to a commit was lost, and others have written since")]
struct WrittenSince;

/// The error for the writer. For a stream that has changed, it includes the current head.
async fn refusal(
    connection: &Connection,
    commit: &Commit,
    conflict: CommitConflict<'_>,
) -> Result<CommitError, Failure<CommitError>> {
    match conflict {
        CommitConflict::Refused(refused) => Ok(refused),
        CommitConflict::Stale(stream) => Ok(CommitError::Conflict {
            stream: stream.clone(),
            actual: read::head(connection, stream).await?.map(Box::new),
        }),
        CommitConflict::StreamTaken => {
            let is_new = |write: &&Write| write.expected == Version::NONE;
            for write in commit.writes.iter().filter(is_new) {
                if let Some(actual) = read::head(connection, &write.stream).await? {
                    return Ok(CommitError::Conflict {
                        stream: write.stream.clone(),
                        actual: Some(Box::new(actual)),
                    });
                }
            }
            // The stream has been removed again.
            let first = commit.writes.iter().find(is_new);
            let first = first.ok_or(Malformed("a stream, though its name is taken"))?;
            Ok(CommitError::Conflict {
                stream: first.stream.clone(),
                actual: None,
            })
        }
    }
}

/// Whether somebody else created the stream in the meantime.
fn is_stream_taken(error: &Error) -> bool {
    error.as_db_error().is_some_and(|reported| {
        reported.code() == &SqlState::UNIQUE_VIOLATION && reported.constraint() == Some("streams_id")
    })
}
