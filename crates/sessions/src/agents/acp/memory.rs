//! Maps our sessions to the agent's own sessions, stored in the log.

use std::sync::Arc;

use eventlog::{BadName, Entity, EntityRecord, Log, NoEvent, StoredHead};
use protocol::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// The agent's session for one of ours, under the id of ours.
pub(crate) type AgentSession = Entity<Remembered>;

/// The agent's id for the session, and how much of it the agent knows.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    pub(super) agent: String,
    /// The agent's id for the session.
    pub(super) id: String,
    /// The last turn that the agent knows. It doesn't know any later ones.
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
    /// Reads what is remembered about a session. If that can't be read, the agent gets the conversation in its prompt
    /// instead.
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

    /// Stores the agent's session. If that fails, the agent gets the conversation in the prompt of the next turn.
    pub(super) async fn write(self, remembered: Remembered) {
        let mut next = AgentSession::replacing(self.session, self.stored.as_ref(), remembered);
        if let Err(error) = next.save(&self.log, &[]).await {
            tracing::warn!(%error, "could not store which session an agent keeps");
        }
    }
}
