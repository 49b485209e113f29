//! How sessions and turns are stored in the log: the names of their streams, and their heads.
//!
//! | stream | kind | status | events |
//! |---|---|---|---|
//! | `session/ID` | `session` | its state | what happened to the session |
//! | `turn/ID` | `turn` | its state | what happened in the turn |
//! | `turn-key/KEY` | `turn-key` | `used` | none |
//! | `acp-session/ID` | `acp-session` | `known` | none |

use eventlog::{BadName, StreamId};
use protocol::{SessionId, TurnId};

use crate::session::Session;
use crate::turn::Turn;

pub(crate) fn session_stream(id: SessionId) -> Result<StreamId, BadName> {
    Session::stream_of(&id)
}

pub(crate) fn turn_stream(id: TurnId) -> Result<StreamId, BadName> {
    Turn::stream_of(&id)
}

/// The id of an idempotency key. Clients choose keys freely, so streams are named by their hash.
pub(crate) fn key_id(session: SessionId, key: &str) -> String {
    blake3::hash(format!("{session} {key}").as_bytes())
        .to_hex()
        .to_string()
}

#[cfg(test)]
mod tests;
