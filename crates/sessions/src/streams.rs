//! How sessions and turns stand in the log: the names of their streams, and their heads.
//!
//! | stream | kind | status | events |
//! |---|---|---|---|
//! | `session/ID` | `session` | its state | what happened to the session |
//! | `turn/ID` | `turn` | its state | what happened in the turn |
//! | `turn-key/KEY` | `turn-key` | `used` | none |
//! | `acp-session/ID` | `acp-session` | `known` | none |

use eventlog::{BadName, CommitError, Head, StreamId};
use protocol::{SessionId, TurnId};

use crate::session::SessionRecord;
use crate::turn::TurnRecord;

pub(crate) const SESSION_KIND: &str = "session";
pub(crate) const TURN_KIND: &str = "turn";
/// The status of a session that is being removed.
pub(crate) const REMOVING: &str = "removing";
pub(crate) const KEY_KIND: &str = "turn-key";

pub(crate) fn session_stream(id: SessionId) -> Result<StreamId, BadName> {
    StreamId::new(&format!("session/{id}"))
}

pub(crate) fn turn_stream(id: TurnId) -> Result<StreamId, BadName> {
    StreamId::new(&format!("turn/{id}"))
}

/// The stream with what an agent over the protocol calls a session.
pub(crate) fn acp_stream(id: SessionId) -> Result<StreamId, BadName> {
    StreamId::new(&format!("acp-session/{id}"))
}

/// The stream of an idempotency key. Keys are other people's texts, so their hash stands for them.
pub(crate) fn key_stream(session: SessionId, key: &str) -> Result<StreamId, BadName> {
    let hash = blake3::hash(format!("{session} {key}").as_bytes()).to_hex();
    StreamId::new(&format!("turn-key/{hash}"))
}

/// The id that a stream is named after.
pub(crate) fn id_of<T: std::str::FromStr>(stream: &StreamId) -> Option<T> {
    let (_, id) = stream.as_str().split_once('/')?;
    id.parse().ok()
}

pub(crate) fn session_head(record: &SessionRecord) -> Result<Head, CommitError> {
    let status = match record.removing {
        true => REMOVING,
        false => record.state().name(),
    };
    Head::json(SESSION_KIND, status, record)
}

pub(crate) fn turn_head(record: &TurnRecord) -> Result<Head, CommitError> {
    Ok(Head {
        blobs: record
            .prompt
            .attachments
            .iter()
            .map(|attachment| attachment.content)
            .chain(record.transcript)
            .collect(),
        ..Head::json(TURN_KIND, record.state.name(), record)?
    })
}

#[cfg(test)]
mod tests;
