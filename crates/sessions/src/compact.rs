//! Compacts turns that have ended: their events become one transcript, and all events but the last are dropped.
//!
//! Readers end up with the same content. One that comes later, or that was in the middle, gets the transcript as a snapshot,
//! and then the last event. There are two steps. If the daemon crashes between them, the next run finishes the second:
//!
//! 1. The transcript is stored, and the head of the turn refers to it. From then on, readers get the transcript.
//! 2. The events before the last one are dropped, if the head hasn't changed.

use std::time::Duration;

use eventlog::{CommitError, EntityRecord, HeadsOrder, HeadsQuery, Log, Sequence, UnixMs, Version};
use protocol::{TurnId, TurnState};

use crate::error::SessionError;
use crate::follow::{Wholeness, fold};
use crate::service::Sessions;
use crate::store;
use crate::streams::turn_stream;
use crate::turn::{Turn, TurnRecord};

/// Turns with fewer events than this aren't compacted.
const SMALL_TURN_EVENTS: u64 = 64;
/// How many turns are read at a time.
const LOOK_AT_TURNS: u32 = 256;
const OVER: [TurnState; 4] = [
    TurnState::Done,
    TurnState::Failed,
    TurnState::Cancelled,
    TurnState::Interrupted,
];

#[cfg(test)]
mod tests;

/// What was compacted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Folded {
    /// How many turns.
    pub turns: u64,
    /// How many of their events were dropped.
    pub events: u64,
}

impl Sessions {
    /// Compacts turns that ended longer ago than this, including those that an earlier run left unfinished. *Cancel safety*:
    /// if the future is dropped, the rest is done the next time.
    pub async fn compact(&self, older_than: Duration) -> Result<Folded, SessionError> {
        compact_all(&self.shared.log, self.shared.wall.now(), older_than).await
    }
}

pub(crate) async fn compact_all(
    log: &Log,
    now: UnixMs,
    older_than: Duration,
) -> Result<Folded, SessionError> {
    let mut folded = Folded::default();
    for state in OVER {
        let mut pages = log.pages(HeadsQuery {
            kind: TurnRecord::KIND.into(),
            status: Some(state.name().into()),
            order: HeadsOrder::OldestFirst,
            after: None,
            limit: LOOK_AT_TURNS,
        });
        while let Some(page) = pages.next().await? {
            for turn in page.iter().filter_map(|stored| Turn::of_head(log, stored).ok()) {
                let events = compact_if_old(log, &turn, now, older_than).await?;
                folded.turns += u64::from(events > 0);
                folded.events += events;
            }
        }
    }
    Ok(folded)
}

/// Compacts a turn if it is old enough. A turn that has changed in the meantime is left alone.
async fn compact_if_old(
    log: &Log,
    turn: &Turn,
    now: UnixMs,
    older_than: Duration,
) -> Result<u64, SessionError> {
    let ended_at = turn.record.ended_at;
    let is_old = ended_at.is_some_and(|ended_at| now.since(ended_at) >= older_than);
    if !is_old || turn.last_sequence.get() < SMALL_TURN_EVENTS {
        return Ok(0);
    }
    match compact(log, turn.id).await {
        Err(
            SessionError::TurnNotFound(_)
            | SessionError::Unreadable { .. }
            | SessionError::Commit(CommitError::Conflict { .. }),
        ) => Ok(0),
        done => done,
    }
}

/// Compacts one turn that has ended, and returns how many events were dropped. A small turn isn't compacted.
pub(crate) async fn compact(log: &Log, turn: TurnId) -> Result<u64, SessionError> {
    let stream = turn_stream(turn)?;
    let found = store::turn(log, turn).await?;
    let last = found.last_sequence;
    if !found.record.state.is_terminal() || last.get() < SMALL_TURN_EVENTS {
        return Ok(0);
    }
    let first = log.read(&stream, Sequence::START, 1).await?.first;
    if first >= last {
        return Ok(0);
    }
    let seen = match found.record.transcript {
        Some(_) => found.version,
        None => match write_down(log, found).await? {
            Some(version) => version,
            None => return Ok(0),
        },
    };
    let up_to = Sequence::from_u64(last.get() - 1);
    Ok(log.drop_events(&stream, up_to, seen).await?)
}

/// Stores the transcript of a turn. `None` if some of its events are missing.
async fn write_down(log: &Log, mut seen: Turn) -> Result<Option<Version>, SessionError> {
    let stream = turn_stream(seen.id)?;
    let (wholeness, after, transcript) = fold(log, &stream).await?;
    if wholeness == Wholeness::Part || after != seen.last_sequence {
        return Ok(None);
    }
    let (blob, _) = log.put_blob(&*eventlog::json_body(&transcript)?).await?;
    seen.record.transcript = Some(blob);
    seen.save(log, &[]).await?;
    Ok(Some(seen.version))
}
