//! Idempotency keys: how they are stored, and when they are removed.
//!
//! With a key, a client can safely repeat a request that may have succeeded. Clients don't do that long after the turn has
//! ended, so the key is removed then. A key without a turn is removed too.

use std::sync::Arc;
use std::time::Duration;

use eventlog::{Entity, EntityRecord, Log, MaybeConflict, NoEvent, UnixMs};
use protocol::TurnId;
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::service::Sessions;
use crate::store;

/// The head of an idempotency key.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeyRecord {
    pub(crate) turn: TurnId,
    /// A fingerprint of the prompt, which distinguishes a repeated request from a different one.
    pub(crate) prompt: String,
}

/// An idempotency key, by its [`key_id`](crate::streams::key_id).
pub(crate) type Key = Entity<KeyRecord>;

impl EntityRecord for KeyRecord {
    const KIND: &'static str = "turn-key";
    type Id = String;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        "used".into()
    }
}

impl Sessions {
    /// Removes the idempotency keys of turns that ended longer ago than this or no longer exist, and returns how many.
    /// *Cancel safety*: if the future is dropped, the rest is removed the next time.
    pub async fn collect_keys(&self, older_than: Duration) -> Result<u64, SessionError> {
        collect(&self.shared.log, self.shared.wall.now(), older_than).await
    }
}

async fn collect(log: &Log, now: UnixMs, older_than: Duration) -> Result<u64, SessionError> {
    let mut collected = 0;
    for key in Key::all(log, None).await? {
        let is_due = match store::turn(log, key.record.turn).await {
            Ok(turn) => {
                let ended_at = turn.record.ended_at;
                ended_at.is_some_and(|ended_at| now.since(ended_at) >= older_than)
            }
            Err(SessionError::TurnNotFound(_)) => true,
            Err(SessionError::Unreadable { .. }) => false,
            Err(error) => return Err(error),
        };
        if !is_due {
            continue;
        }
        match log.remove(vec![key.at()?]).await {
            Ok(()) => collected += 1,
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(collected)
}
