//! Reading sessions and turns whole, and committing steps on what was read.

use eventlog::{Commit, CommitError, Head, Log, NewEvent, StoredHead, StreamId, Version, Write};
use protocol::{SessionId, TurnId};
use serde::de::DeserializeOwned;

use crate::error::SessionError;
use crate::session::{Session, SessionRecord, Whole};
use crate::state::{Happening, Step, TurnStep};
use crate::streams::{self, session_head, session_stream, turn_head, turn_stream};
use crate::turn::{Turn, TurnRecord};

/// How often a change is tried again because somebody else was faster. Each time, that one has got on; so many in the time
/// of one request are nobody's honest work.
pub(crate) const TRIES: usize = 1000;

/// A session, whole. One that is being removed is not there.
pub(crate) async fn session(log: &Log, id: SessionId) -> Result<Session, SessionError> {
    let stored = log.head(&session_stream(id)?).await?;
    let stored = stored.ok_or(SessionError::NotFound(id))?;
    let session = log.or_quarantine(&stored, session_of(&stored))?;
    match session.record.removing {
        true => Err(SessionError::NotFound(id)),
        false => Ok(session),
    }
}

/// A turn.
pub(crate) async fn turn(log: &Log, id: TurnId) -> Result<Turn, SessionError> {
    let stored = log.head(&turn_stream(id)?).await?;
    let stored = stored.ok_or(SessionError::TurnNotFound(id))?;
    log.or_quarantine(&stored, turn_of(&stored))
}

pub(crate) fn session_of(stored: &StoredHead) -> Result<Session, SessionError> {
    let record: SessionRecord = parse(stored)?;
    Ok(Session {
        id: streams::id_of(&stored.stream).ok_or_else(|| misnamed(stored))?,
        version: stored.version,
        last_sequence: stored.last_sequence,
        record,
        whole: Whole,
    })
}

pub(crate) fn turn_of(stored: &StoredHead) -> Result<Turn, SessionError> {
    let record: TurnRecord = parse(stored)?;
    Ok(Turn {
        id: streams::id_of(&stored.stream).ok_or_else(|| misnamed(stored))?,
        version: stored.version,
        last_sequence: stored.last_sequence,
        record,
    })
}

fn parse<T: DeserializeOwned>(stored: &StoredHead) -> Result<T, SessionError> {
    serde_json::from_slice(&stored.head.body).map_err(|source| SessionError::Unreadable {
        stream: stored.stream.to_string(),
        source,
    })
}

fn misnamed(stored: &StoredHead) -> SessionError {
    SessionError::Unreadable {
        stream: stored.stream.to_string(),
        source: not_an_id(),
    }
}

/// Why a head of ours cannot be read; nothing if it can be, or is not ours.
#[must_use]
pub fn unreadable_head(stream: &StreamId, head: &Head) -> Option<serde_json::Error> {
    let (is_named, read) = match &*head.kind {
        streams::SESSION_KIND => (
            streams::id_of::<SessionId>(stream).is_some(),
            serde_json::from_slice::<SessionRecord>(&head.body).err(),
        ),
        streams::TURN_KIND => (
            streams::id_of::<TurnId>(stream).is_some(),
            serde_json::from_slice::<TurnRecord>(&head.body).err(),
        ),
        streams::KEY_KIND => (
            true,
            serde_json::from_slice::<crate::keys::KeyRecord>(&head.body).err(),
        ),
        _ => (true, None),
    };
    read.or_else(|| (!is_named).then(not_an_id))
}

fn not_an_id() -> serde_json::Error {
    serde::de::Error::custom("its name is not an id")
}

/// What a step is committed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    /// The session, as it was read.
    pub(crate) session: &'a Session,
    /// The turn that changes with it, and the version that it was read at: none if it is made by this step.
    pub(crate) turn: Option<(TurnId, Version)>,
}

/// What a step made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) session: Session,
    pub(crate) turn: Option<Turn>,
}

/// Commits a step: session and turn together, on the versions that were read, and whatever else belongs to it.
pub(crate) async fn commit(
    log: &Log,
    on: On<'_>,
    step: Step,
    besides: Vec<Write>,
) -> Result<Made, CommitError> {
    let mut writes = vec![Write {
        stream: session_stream(on.session.id)?,
        expected: on.session.version,
        head: Some(session_head(&step.session)?),
        events: step
            .happened
            .iter()
            .map(happening_to_log)
            .collect::<Result<_, _>>()?,
    }];
    if let (Some((id, version)), Some(TurnStep { record, events })) = (on.turn, &step.turn) {
        writes.push(Write {
            stream: turn_stream(id)?,
            expected: version,
            head: Some(turn_head(record)?),
            events: events
                .iter()
                .map(crate::event::to_log)
                .collect::<Result<_, _>>()?,
        });
    }
    writes.extend(besides);
    let committed = log.commit(Commit::all(writes)).await?;
    let mut committed = committed.into_iter();
    // There is one for each write, in their order.
    let (Some(of_session), of_turn) = (committed.next(), committed.next()) else {
        return Err(eventlog::LogError::Closed.into());
    };
    let turn = match (on.turn, step.turn, of_turn) {
        (Some((id, _)), Some(TurnStep { record, .. }), Some(of_turn)) => Some(Turn {
            id,
            version: of_turn.version,
            last_sequence: of_turn.last_sequence,
            record,
        }),
        _ => None,
    };
    Ok(Made {
        session: Session {
            id: on.session.id,
            version: of_session.version,
            last_sequence: of_session.last_sequence,
            record: step.session,
            whole: Whole,
        },
        turn,
    })
}

pub(crate) fn happening_to_log(happening: &Happening) -> Result<NewEvent, CommitError> {
    NewEvent::json(&happening.event, happening)
}
