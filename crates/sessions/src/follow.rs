//! Follows a turn: its past events, then new ones, until its end.
//!
//! Any number of readers follow a turn, each at its own pace: a reader gets a batch when it asks for one, and a slow
//! reader holds up no one. If a reader can't continue from its position, because that was compacted, is beyond the end,
//! or belongs to another turn, it gets a snapshot of the turn and continues from there. Seeking to a position doesn't
//! depend on the length of the stream.

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

/// How many events are read at a time for a snapshot.
const FOLD_EVENTS: u32 = 1024;

#[cfg(test)]
pub(crate) mod tests;

/// Where a reader of a turn starts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FollowFrom {
    /// At the first event.
    #[default]
    Start,
    /// After the last event that it has seen.
    After(Bookmark),
    /// This many events before the newest one.
    Last(u64),
}

/// An item for a reader of a turn.
#[derive(Clone, Debug)]
pub enum FollowItem {
    /// The next events.
    Events(EventBatch),
    /// The reader must replace its state with this snapshot, and continue after it.
    Resync {
        /// The last event included in the snapshot.
        after: Sequence,
        /// The turn up to that event.
        snapshot: Box<TurnTranscript>,
    },
    /// The turn has ended, and all its events were delivered. This is the last item.
    End {
        /// The last event of the turn.
        sequence: Sequence,
        /// How it ended.
        state: TurnState,
    },
}

/// Why a turn can no longer be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowEnd {
    /// The reader's scope was cancelled.
    #[error("the reader was cancelled by {0}")]
    Cancelled(Arc<Cause>),
    /// The turn was removed.
    #[error("the turn was removed")]
    Removed,
    /// The stored turn can't be read.
    #[error(transparent)]
    Failed(#[from] SessionError),
}

impl From<LogError> for FollowEnd {
    fn from(error: LogError) -> Self {
        Self::Failed(error.into())
    }
}

impl Sessions {
    /// Follows a turn until its end, or until the scope is cancelled. A queued turn is followed until it has run. *Cancel
    /// safety*: the future may be dropped at any time.
    pub async fn follow_turn(
        &self,
        turn: TurnId,
        from: FollowFrom,
        scope: &Scope,
    ) -> Result<TurnFollow, SessionError> {
        TurnFollow::open(&self.shared.log, turn, from, scope).await
    }

    /// The transcript of a turn so far, and its last event. *Cancel safety*: the future may be dropped at any time.
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

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// Events from the tail.
    Events,
    Snapshot,
    End(Sequence, TurnState),
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

    /// Waits for the next item; `None` after the end. *Cancel safety*: if the future is dropped, nothing is skipped.
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
                    // If the future is dropped here, the next call starts over.
                    self.next = Next::Snapshot;
                    self.resync().await.map(Some)
                }
                Err(TailEnd::Cancelled(cause)) => Err(FollowEnd::Cancelled(cause)),
                Err(TailEnd::Log(error)) => Err(error.into()),
            },
        }
    }

    /// Delivers a snapshot, and continues after it.
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

/// Whether the last event that a reader has seen has been replaced. The events of an ended turn never change.
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

/// How the turn ended, if these are its last events. The terminal event is always the last one.
fn end_of(batch: &EventBatch) -> Option<TurnState> {
    let last = batch.events().last().filter(|event| &*event.kind == "state")?;
    match from_log(last) {
        Some(TurnEvent::State { state, .. }) if state.is_terminal() => Some(state),
        _ => None,
    }
}

/// The transcript of a turn so far, and its last event.
pub(crate) async fn transcript(log: &Log, turn: TurnId) -> Result<(Sequence, TurnTranscript), SessionError> {
    let stream = turn_stream(turn)?;
    // Try twice, because the events may be compacted between reading the head and the first page. The second
    // attempt then finds the transcript, which is permanent.
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

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wholeness {
    Whole,
    Part,
}

/// Builds a transcript from the stored events, page by page.
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
