//! The interface to agents, which do the work of turns.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use eventlog::Log;
use kernel::{Clock, Scope};
use protocol::{AgentChoice, AgentKind, SessionId, TurnError, TurnId};

use crate::asking::Asker;
use crate::desk::PlanDesk;
use crate::prompt::Prompt;
use crate::sink::Sink;
use crate::tools::Toolbox;

/// Does the work of turns.
#[async_trait]
pub trait Agent: Send + Sync + fmt::Debug {
    /// Describes the agent.
    fn info(&self) -> AgentInfo;

    /// Checks a choice before the prompt is accepted. The error says what is wrong with it.
    fn check(&self, _choice: &AgentChoice) -> Result<(), String> {
        Ok(())
    }

    /// Does the work of one turn, and sends its output and actions to the turn's sink. When the turn's scope is
    /// cancelled, it ends soon. Once it returns, nothing it started is still running. The future is dropped only when
    /// the daemon ends.
    async fn run(&self, turn: AgentTurn) -> AgentEnd;

    /// Releases what it keeps between turns, because the daemon is shutting down.
    async fn close(&self) {}
}

/// A description of an agent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: AgentKind,
    /// A one-line summary.
    pub description: String,
    /// Whether it can be used.
    pub readiness: Readiness,
}

/// Whether an agent can be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// It can be used.
    Ready,
    /// Something is missing. The text says what, and what to do.
    Missing(String),
}

/// The input of an agent for one turn.
#[derive(Clone, Debug)]
pub struct AgentTurn {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The previous turn, to read the conversation.
    pub previous: Option<TurnId>,
    /// The prompt.
    pub prompt: Prompt,
    /// The choice of agent and model.
    pub choice: AgentChoice,
    /// Cancelled when the turn must stop.
    pub scope: Scope,
    /// Receives its output and actions.
    pub sink: Sink,
    /// Its tools.
    pub tools: Toolbox,
    /// The plan that it works in, opened on first use.
    pub desk: PlanDesk,
    /// Asks the user.
    pub asker: Asker,
    /// Used to read turns and attachments.
    pub log: Log,
    /// The time source.
    pub clock: Arc<dyn Clock>,
}

/// How the work of an agent ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentEnd {
    /// It is done.
    Done,
    /// It couldn't continue. Its output stays.
    Failed(TurnError),
    /// The process that did the work died. Its output stays.
    Interrupted(TurnError),
    /// The scope was cancelled, and it has stopped.
    Cancelled,
}

impl AgentEnd {
    /// It couldn't continue.
    pub fn failed(code: &str, text: impl Into<String>) -> Self {
        Self::Failed(TurnError {
            code: code.to_owned(),
            text: text.into(),
        })
    }
}
