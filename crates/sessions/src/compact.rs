//! Folding turns that are over: their events become one transcript, and all of them but the last are dropped.
//!
//! What a reader ends up with stays the same: one that comes later, or that was in the middle, is given the transcript as a
//! snapshot, and then the end. It is two steps, and a crash between them is finished the next time:
//!
//! 1. The transcript is put into the log, and the head of the turn refers to it. From now on it is what readers are given.
//! 2. The events up to the last but one are dropped, if the head is still that one.

use std::time::Duration;

use eventlog::{CommitError, EntityRecord, HeadsOrder, HeadsQuery, Log, Sequence, UnixMs, Version};
use protocol::{TurnId, TurnState};

use crate::error::SessionError;
use crate::follow::{Wholeness, fold};
use crate::service::Sessions;
use crate::store;
use crate::streams::turn_stream;
use crate::turn::{Turn, TurnRecord};

/// Turns with fewer events than this stay as they are: there is little to gain.
const SMALL_TURN_EVENTS: u64 = 64;
/// How many turns are looked at at a time.
const LOOK_AT_TURNS: u32 = 256;
const OVER: [TurnState; 4] = [
    TurnState::Done,
    TurnState::Failed,
    TurnState::Cancelled,
    TurnState::Interrupted,
];

#[cfg(test)]
mod tests;

/// What was folded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Folded {
    /// How many turns.
    pub turns: u64,
    /// How many events they had that are gone now.
    pub events: u64,
}

impl Sessions {
    /// Folds the turns that were over for so long, those that were left half-way among them. *Cancel safety*: dropped
    /// half-way, the rest is done the next time.
    pub async fn compact(&self, older_than: Duration) -> Result<Folded, SessionError> {
        compact_all(&self.shared.log, self.shared.wall.now(), older_than).await
    }
}

/// Folds the turns that were over for so long.
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

/// Folds a turn of a list. One that cannot be read, or that has moved meanwhile, is left as it is.
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

/// Folds one turn that is over, or finishes that, and says how many events were dropped. A small one stays as it is.
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

/// Puts the transcript of a turn into the log. `None` if not all of its events are there.
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
