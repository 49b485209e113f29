//! Removing a session with its turns, so that a crash half-way leaves nothing that nobody can find.

use eventlog::{CommitError, Log, Version};

use crate::error::SessionError;
use crate::session::Session;
use crate::state::{Happening, alone};
use crate::store::{self, On};
use crate::streams::{acp_stream, session_stream, turn_stream};

/// How many streams are removed in one step.
const STEP: usize = 500;

/// Removes what is left of a session that is marked as being removed: its turns, newest first, and in the end itself.
pub(crate) async fn finish(log: &Log, session: &Session) -> Result<(), SessionError> {
    let mut next = session.record.last_turn;
    let mut gathered = Vec::new();
    while let Some(id) = next {
        let turn = match store::turn(log, id).await {
            Ok(turn) => turn,
            // An earlier try got so far. Those before it went with it.
            Err(SessionError::TurnNotFound(_)) => break,
            Err(error) => return Err(error),
        };
        if turn.record.session != session.id {
            // From here on they are another session's, which this one was forked from.
            break;
        }
        next = turn.record.previous;
        gathered.push((turn_stream(id)?, turn.version));
    }
    // Oldest first, so that what is left after a crash can still be walked to from the newest.
    gathered.reverse();
    for step in gathered.chunks(STEP) {
        remove(log, step.to_vec()).await?;
    }
    let notes = acp_stream(session.id)?;
    if let Some(head) = log.head(&notes).await? {
        remove(log, vec![(notes, head.version)]).await?;
    }
    if let Some(fork) = &session.record.facts.forked_from {
        forget_fork(log, fork.session).await?;
    }
    remove(log, vec![(session_stream(session.id)?, session.version)]).await
}

async fn remove(log: &Log, streams: Vec<(eventlog::StreamId, Version)>) -> Result<(), SessionError> {
    Ok(log.remove(streams).await?)
}

/// The session that it was forked from has one fork less.
async fn forget_fork(log: &Log, id: protocol::SessionId) -> Result<(), SessionError> {
    for _ in 0..store::TRIES {
        let session = match store::session(log, id).await {
            Ok(session) => session,
            Err(SessionError::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut record = session.record.clone();
        record.forks = record.forks.saturating_sub(1);
        let step = alone(record, Happening::new("fork_removed", "", None, ""));
        let on = On {
            session: &session,
            turn: None,
        };
        match store::commit(log, on, step, Vec::new()).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
