//! Following a turn: what was said, then what is being said, until its end.
//!
//! Any number of readers follow a turn, each at its own pace: a batch is handed out when its reader asks for one, and nobody
//! waits for a reader. A reader whose place cannot be gone on from is told what it would have by now, and goes on from there:
//! its place was folded away, it is beyond the end, or it is that of another turn. A place that is there is found by seeking,
//! however long the stream is.

use std::sync::Arc;

use eventlog::{Bookmark, EventBatch, Log, LogError, Sequence, StreamId, Tail, TailBatch, TailEnd};
use kernel::{Cause, Scope};
use protocol::{TurnId, TurnState, TurnTranscript};

use crate::error::SessionError;
use crate::event::{TurnEvent, from_log};
use crate::service::Sessions;
use crate::store;
use crate::streams::turn_stream;
use crate::transcript::apply_stored;

/// How many events are read at a time to be folded.
const FOLD_EVENTS: u32 = 1024;

#[cfg(test)]
pub(crate) mod tests;

/// Where a reader of a turn begins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FollowFrom {
    /// With the first event.
    #[default]
    Start,
    /// After the last one that it has seen.
    After(Bookmark),
    /// So many events before the newest one.
    Last(u64),
}

/// What a reader of a turn gets.
#[derive(Clone, Debug)]
pub enum FollowItem {
    /// The next events.
    Events(EventBatch),
    /// What the reader has is of no use: it takes the snapshot instead, and goes on after it.
    Resync {
        /// The last event that is in the snapshot.
        after: Sequence,
        /// The turn up to there.
        snapshot: Box<TurnTranscript>,
    },
    /// The turn is over, and everything of it was handed out. There is no other item.
    End {
        /// The last event of the turn.
        sequence: Sequence,
        /// How it ended.
        state: TurnState,
    },
}

/// A turn cannot be followed any more.
#[derive(Debug, thiserror::Error)]
pub enum FollowEnd {
    /// The reader's scope was cancelled.
    #[error("the reader was cancelled by {0}")]
    Cancelled(Arc<Cause>),
    /// The turn was removed.
    #[error("the turn was removed")]
    Removed,
    /// What is kept of it cannot be read.
    #[error(transparent)]
    Failed(#[from] SessionError),
}

impl From<LogError> for FollowEnd {
    fn from(error: LogError) -> Self {
        Self::Failed(error.into())
    }
}

impl Sessions {
    /// Follows a turn until its end, or until the scope is cancelled. One that waits is followed until it has run. *Cancel
    /// safety*: may be dropped at any time.
    pub async fn follow_turn(
        &self,
        turn: TurnId,
        from: FollowFrom,
        scope: &Scope,
    ) -> Result<TurnFollow, SessionError> {
        TurnFollow::open(&self.shared.log, turn, from, scope).await
    }

    /// What a reader of all events of a turn has by now, and the last of these events. *Cancel safety*: may be dropped at any
    /// time.
    pub async fn transcript(&self, turn: TurnId) -> Result<(Sequence, TurnTranscript), SessionError> {
        transcript(&self.shared.log, turn).await
    }
}

/// A reader of a turn.
#[derive(Debug)]
pub struct TurnFollow {
    log: Log,
    turn: TurnId,
    tail: Tail,
    scope: Scope,
    next: Next,
}

/// What a reader gets next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// What the tail has.
    Events,
    /// A snapshot.
    Snapshot,
    /// The end.
    End(Sequence, TurnState),
    /// Nothing.
    Nothing,
}

impl TurnFollow {
    pub(crate) async fn open(
        log: &Log,
        turn: TurnId,
        from: FollowFrom,
        scope: &Scope,
    ) -> Result<Self, SessionError> {
        let stream = turn_stream(turn)?;
        let found = store::turn(log, turn).await?;
        let (last, state) = (found.last_sequence, found.record.state);
        let after = match from {
            FollowFrom::Start => Bookmark::default(),
            FollowFrom::After(bookmark) => bookmark,
            FollowFrom::Last(events) => Sequence::from_u64(last.get().saturating_sub(events)).into(),
        };
        let next = if after.sequence > last {
            Next::Snapshot
        } else if after.sequence == last && state.is_terminal() {
            match is_replaced(log, &stream, after).await? {
                true => Next::Snapshot,
                false => Next::End(last, state),
            }
        } else {
            Next::Events
        };
        Ok(Self {
            log: log.clone(),
            turn,
            tail: log.tail(&stream, after, scope),
            scope: scope.clone(),
            next,
        })
    }

    /// The next item; waits for one if need be. `None` after the end. *Cancel safety*: dropped half-way, nothing is skipped.
    pub async fn next(&mut self) -> Result<Option<FollowItem>, FollowEnd> {
        match self.next {
            Next::Nothing => Ok(None),
            Next::End(sequence, state) => {
                self.next = Next::Nothing;
                Ok(Some(FollowItem::End { sequence, state }))
            }
            Next::Snapshot => self.resync().await.map(Some),
            Next::Events => match self.tail.next_batch().await {
                Ok(TailBatch::Events(batch)) => {
                    if let Some(state) = end_of(&batch) {
                        self.next = Next::End(batch.last(), state);
                    }
                    Ok(Some(FollowItem::Events(batch)))
                }
                Ok(TailBatch::Resync { .. }) => {
                    // Should this be dropped half-way, the next call comes back to it.
                    self.next = Next::Snapshot;
                    self.resync().await.map(Some)
                }
                Err(TailEnd::Cancelled(cause)) => Err(FollowEnd::Cancelled(cause)),
                Err(TailEnd::Log(error)) => Err(error.into()),
            },
        }
    }

    /// Hands out what the reader would have by now, and goes on after it.
    async fn resync(&mut self) -> Result<FollowItem, FollowEnd> {
        let (after, snapshot) = match transcript(&self.log, self.turn).await {
            Err(SessionError::TurnNotFound(_)) => return Err(FollowEnd::Removed),
            found => found?,
        };
        let stream = turn_stream(self.turn).map_err(SessionError::from)?;
        self.tail = self.log.tail(&stream, after, &self.scope);
        self.next = match snapshot.state {
            Some(state) if state.is_terminal() => Next::End(after, state),
            _ => Next::Events,
        };
        let snapshot = Box::new(snapshot);
        Ok(FollowItem::Resync { after, snapshot })
    }
}

/// Whether the event that a reader has seen last is another one by now. What a turn that is over has said stays.
async fn is_replaced(log: &Log, stream: &StreamId, seen: Bookmark) -> Result<bool, LogError> {
    let Some(before) = seen
        .sequence
        .get()
        .checked_sub(1)
        .filter(|_| seen.at_ms.is_some())
    else {
        return Ok(false);
    };
    let page = log.read(stream, Sequence::from_u64(before), 1).await?;
    Ok(page.events.iter().any(|event| seen.is_replaced_by(event)))
}

/// How the turn ended, if these are its last events. After the end there is no other, so it can only be the last of them.
fn end_of(batch: &EventBatch) -> Option<TurnState> {
    let last = batch.events().last().filter(|event| &*event.kind == "state")?;
    match from_log(last) {
        Some(TurnEvent::State { state, .. }) if state.is_terminal() => Some(state),
        _ => None,
    }
}

/// A turn, folded together as far as it goes, and the last event that is in it.
pub(crate) async fn transcript(log: &Log, turn: TurnId) -> Result<(Sequence, TurnTranscript), SessionError> {
    let stream = turn_stream(turn)?;
    // Twice, since the events may be folded away between the look at the head and the first page. Then the second look finds
    // what they were folded into, and that stays.
    let mut folded = (Sequence::START, TurnTranscript::default());
    for _ in 0..2 {
        let found = store::turn(log, turn).await?;
        if let Some(blob) = found.record.transcript {
            let bytes = log.read_blobs(&[blob]).await?.concat();
            let transcript = serde_json::from_slice(&bytes).map_err(|source| SessionError::Unreadable {
                stream: stream.to_string(),
                source,
            })?;
            return Ok((found.last_sequence, transcript));
        }
        let (wholeness, after, transcript) = fold(log, &stream).await?;
        folded = (after, transcript);
        if wholeness == Wholeness::Whole {
            break;
        }
    }
    Ok(folded)
}

/// Whether a fold began with the first event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wholeness {
    /// It did.
    Whole,
    /// Events were dropped that it would have needed.
    Part,
}

/// Folds the events that are there, page by page.
pub(crate) async fn fold(
    log: &Log,
    stream: &StreamId,
) -> Result<(Wholeness, Sequence, TurnTranscript), SessionError> {
    let (mut wholeness, mut after, mut transcript) =
        (Wholeness::Whole, Sequence::START, TurnTranscript::default());
    loop {
        let page = log.read(stream, after, FOLD_EVENTS).await?;
        if page.first > after.next() {
            wholeness = Wholeness::Part;
        }
        let Some(last) = page.events.last() else {
            return Ok((wholeness, after, transcript));
        };
        after = last.sequence;
        page.events
            .iter()
            .for_each(|event| apply_stored(&mut transcript, event));
        if after >= page.last {
            return Ok((wholeness, after, transcript));
        }
    }
}
