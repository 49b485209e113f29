//! Reads sessions and turns, and commits steps on the versions that were read.

use eventlog::{Commit, CommitError, Head, Log, StreamId, Version, Write};
use protocol::{SessionId, TurnId};

use crate::error::SessionError;
use crate::event::all_to_log;
use crate::keys::Key;
use crate::session::Session;
use crate::state::Step;
use crate::turn::Turn;

/// How many times a change is decided again because the session has changed. Each conflict means that another writer
/// made progress, so honest clients never reach this within one request.
pub(crate) const TRIES: usize = 1000;

/// Reads a session. One that is being removed counts as absent.
pub(crate) async fn session(log: &Log, id: SessionId) -> Result<Session, SessionError> {
    let session = Session::read(log, id).await?;
    let session = session.filter(|session| !session.record.removing);
    session.ok_or(SessionError::NotFound(id))
}

pub(crate) async fn turn(log: &Log, id: TurnId) -> Result<Turn, SessionError> {
    Turn::read(log, id).await?.ok_or(SessionError::TurnNotFound(id))
}

/// Why a head of this crate can't be read; `None` if it can, or belongs to another crate.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    Session::problem(stream, head)
        .or_else(|| Turn::problem(stream, head))
        .or_else(|| Key::problem(stream, head))
}

/// What a step is committed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    /// The session, as it was read.
    pub(crate) session: &'a Session,
    /// The turn that changes with it, and the version at which it was read.
    pub(crate) turn: Option<(TurnId, Version)>,
}

#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) session: Session,
    pub(crate) turn: Option<Turn>,
}

/// Commits a step: session and turn together with any other writes, on the versions that were read.
pub(crate) async fn commit(log: &Log, on: On<'_>, step: Step, also: Vec<Write>) -> Result<Made, CommitError> {
    let mut session = Session {
        version: on.session.version,
        ..Session::new(on.session.id, step.session)
    };
    let mut writes = vec![session.write(&step.happened)?];
    let mut turn = None;
    if let (Some((id, version)), Some(step)) = (on.turn, step.turn) {
        let changed = Turn {
            version,
            ..Turn::new(id, step.record)
        };
        writes.push(changed.write(&all_to_log(&step.events)?)?);
        turn = Some(changed);
    }
    writes.extend(also);
    let committed = log.commit(Commit::all(writes)).await?;
    // There is one result for each write, in order.
    if let Some(made) = committed.first() {
        session.committed(*made);
    }
    if let (Some(turn), Some(made)) = (&mut turn, committed.get(1)) {
        turn.committed(*made);
    }
    Ok(Made { session, turn })
}
