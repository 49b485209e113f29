//! Idempotency keys: how they are kept, and when they go.
//!
//! A key is there so that a request which may have come through can be sent again. Nobody does that long after the turn is over,
//! so its key goes then; and with it every key whose turn was removed.

use std::time::Duration;

use eventlog::{CommitError, HeadsOrder, HeadsQuery, Log, StoredHead, UnixMs};
use protocol::TurnId;
use serde::{Deserialize, Serialize};

use crate::error::SessionError;
use crate::service::Sessions;
use crate::store;
use crate::streams::KEY_KIND;

/// How many keys are read, and at most removed, at a time.
const PAGE: u32 = 256;

/// What is kept of an idempotency key.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeyRecord {
    pub(crate) turn: TurnId,
    /// Names the prompt, to tell a repetition from another prompt.
    pub(crate) prompt: String,
}

impl KeyRecord {
    pub(crate) fn of(stored: &StoredHead) -> Result<Self, SessionError> {
        serde_json::from_slice(&stored.head.body).map_err(|source| SessionError::Unreadable {
            stream: stored.stream.to_string(),
            source,
        })
    }
}

impl Sessions {
    /// Forgets the idempotency keys of turns that were over for so long, and of those that are not there any more. Says how
    /// many. *Cancel safety*: dropped half-way, the rest is done the next time.
    pub async fn collect_keys(&self, older_than: Duration) -> Result<u64, SessionError> {
        collect(&self.shared.log, self.shared.wall.now(), older_than).await
    }
}

async fn collect(log: &Log, now: UnixMs, older_than: Duration) -> Result<u64, SessionError> {
    let (mut collected, mut after) = (0, None);
    loop {
        let page = log
            .heads(HeadsQuery {
                kind: KEY_KIND.into(),
                status: None,
                order: HeadsOrder::OldestFirst,
                after,
                limit: PAGE,
            })
            .await?;
        for key in &page {
            if !is_due(log, key, (now, older_than)).await? {
                continue;
            }
            match log.remove(vec![(key.stream.clone(), key.version)]).await {
                Ok(()) => collected += 1,
                // Somebody else was faster.
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if page.len() < PAGE as usize {
            return Ok(collected);
        }
        after = page.last().map(|stored| stored.stream.clone());
    }
}

/// Whether nobody needs a key any more. What cannot be read stays.
async fn is_due(
    log: &Log,
    key: &StoredHead,
    (now, older_than): (UnixMs, Duration),
) -> Result<bool, SessionError> {
    let record = match KeyRecord::of(key) {
        Ok(record) => record,
        Err(error) => {
            tracing::warn!(%error, "an idempotency key cannot be read");
            return Ok(false);
        }
    };
    match store::turn(log, record.turn).await {
        Ok(turn) => {
            let ended_at = turn.record.ended_at;
            Ok(ended_at.is_some_and(|ended_at| now.since(ended_at) >= older_than))
        }
        Err(SessionError::TurnNotFound(_)) => Ok(true),
        Err(SessionError::Unreadable { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
