//! Which session of its own an agent has for one of ours, stored in the log.

use std::sync::Arc;

use eventlog::{BadName, Entity, EntityRecord, Log, NoEvent, StoredHead};
use protocol::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// A session that an agent keeps for one of ours, whose id it has here.
pub(crate) type AgentSession = Entity<Remembered>;

/// What an agent calls the session, and how much of it it knows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(super) agent: String,
    /// How it calls the session.
    pub(super) id: String,
    /// The last turn that it knows. If others came after it, the agent doesn't know them.
    pub(super) after: TurnId,
}

impl EntityRecord for Remembered {
    const KIND: &'static str = "acp-session";
    type Id = SessionId;
    type Event = NoEvent;

    fn status(&self) -> Arc<str> {
        "known".into()
    }
}

/// What is remembered, and the head that it was read from.
#[derive(Debug)]
pub(super) struct Memory {
    log: Log,
    session: SessionId,
    stored: Option<StoredHead>,
    remembered: Option<Remembered>,
}

impl Memory {
    /// Reads what is remembered of a session. If that can't be read, the agent gets the conversation in its prompt instead.
    pub(super) async fn read(log: &Log, session: SessionId) -> Result<Self, BadName> {
        let stored = log.head(&AgentSession::stream_of(&session)?).await;
        let stored = stored.unwrap_or_else(|error| {
            tracing::warn!(%error, %session, "could not read which session an agent keeps");
            None
        });
        Ok(Self {
            log: log.clone(),
            session,
            remembered: stored
                .as_ref()
                .and_then(|stored| Remembered::decode(&stored.head).ok()),
            stored,
        })
    }

    /// The session that this agent can resume, if it knows all turns before this one.
    pub(super) fn usable(&self, agent: &str, previous: Option<TurnId>) -> Option<&Remembered> {
        self.remembered
            .as_ref()
            .filter(|known| known.agent == agent && Some(known.after) == previous)
    }

    /// Remembers. If that fails, the agent gets the conversation in the prompt of the next turn.
    pub(super) async fn write(self, remembered: Remembered) {
        let mut next = AgentSession::replacing(self.session, self.stored.as_ref(), remembered);
        if let Err(error) = next.save(&self.log, &[]).await {
            tracing::warn!(%error, "could not store which session an agent keeps");
        }
    }
}
