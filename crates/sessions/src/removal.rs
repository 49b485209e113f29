//! Removes a session with its turns. A crash in between leaves only what the next start finds and removes.

use eventlog::{Change, Log};
use protocol::SessionId;

use crate::agents::acp::AgentSession;
use crate::error::SessionError;
use crate::session::Session;
use crate::state::Happening;
use crate::store::{self, TRIES};

/// How many streams are removed in one step.
const STEP: usize = 500;

/// Removes the rest of a session that is marked as being removed: its turns, then the session itself.
pub(crate) async fn finish(log: &Log, session: &Session) -> Result<(), SessionError> {
    let mut next = session.record.last_turn;
    let mut gathered = Vec::new();
    while let Some(id) = next {
        let turn = match store::turn(log, id).await {
            Ok(turn) => turn,
            // An earlier attempt has removed this one and those before it.
            Err(SessionError::TurnNotFound(_)) => break,
            Err(error) => return Err(error),
        };
        if turn.record.session != session.id {
            // The rest belongs to the session that this one was forked from.
            break;
        }
        next = turn.record.previous;
        gathered.push(turn.at()?);
    }
    // Oldest first, so that after a crash the rest can still be reached from the newest.
    gathered.reverse();
    for step in gathered.chunks(STEP) {
        log.remove(step.to_vec()).await?;
    }
    let notes = AgentSession::stream_of(&session.id)?;
    if let Some(head) = log.head(&notes).await? {
        log.remove(vec![(notes, head.version)]).await?;
    }
    if let Some(fork) = &session.record.facts.forked_from {
        forget_fork(log, fork.session).await?;
    }
    Ok(log.remove(vec![session.at()?]).await?)
}

async fn forget_fork(log: &Log, id: SessionId) -> Result<(), SessionError> {
    let updated = Session::update(log, id, TRIES, |parent| {
        let Some(parent) = parent.filter(|parent| !parent.record.removing) else {
            return Ok(None);
        };
        let mut record = parent.record.clone();
        record.forks = record.forks.saturating_sub(1);
        let removed = Happening::new("fork_removed", "", None, "");
        Ok::<_, SessionError>(Some(Change::new(record).event(removed)))
    });
    updated.await.map(drop)
}
