//! Which session of its own an agent has for one of ours, kept in the log.

use eventlog::{BadName, Commit, Head, Log, StreamId, Version, Write};
use protocol::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

use crate::streams::acp_stream;

/// A session that an agent keeps.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// Which agent.
    pub(super) agent: String,
    /// How it calls the session.
    pub(super) id: String,
    /// The last turn that it knows. If others came after it, the agent does not know them.
    pub(super) after: TurnId,
}

/// What is remembered, and the version that it was read at.
#[derive(Debug)]
pub(super) struct Memory {
    log: Log,
    stream: StreamId,
    version: Version,
    pub(super) remembered: Option<Remembered>,
}

impl Memory {
    /// What is known of a session. What cannot be read is not known: the agent gets the conversation told instead.
    pub(super) async fn read(log: &Log, session: SessionId) -> Result<Self, BadName> {
        let stream = acp_stream(session)?;
        let head = log.head(&stream).await.unwrap_or_else(|error| {
            tracing::warn!(%error, %session, "what an agent knows of a session cannot be read");
            None
        });
        Ok(Self {
            log: log.clone(),
            stream,
            version: head.as_ref().map_or(Version::NONE, |head| head.version),
            remembered: head.and_then(|head| serde_json::from_slice(&head.head.body).ok()),
        })
    }

    /// The session that this agent can take up again, if it knows all that was said.
    pub(super) fn usable(&self, agent: &str, previous: Option<TurnId>) -> Option<&Remembered> {
        self.remembered
            .as_ref()
            .filter(|known| known.agent == agent && Some(known.after) == previous)
    }

    /// Remembers. If somebody else has written meanwhile, or the log fails, the next turn tells the agent the conversation.
    pub(super) async fn write(&mut self, remembered: Remembered) {
        let head = match Head::json("acp-session", "known", &remembered) {
            Ok(head) => head,
            Err(error) => {
                return tracing::warn!(%error, "which session an agent keeps was not written down");
            }
        };
        let write = Write {
            stream: self.stream.clone(),
            expected: self.version,
            head: Some(head),
            events: Vec::new(),
        };
        match self.log.commit(Commit::one(write)).await {
            Ok(_) => self.remembered = Some(remembered),
            Err(error) => tracing::warn!(%error, "which session an agent keeps was not written down"),
        }
    }
}
