//! What an agent is: whoever does the work of a turn.

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

/// Whoever does the work of a turn.
#[async_trait]
pub trait Agent: Send + Sync + fmt::Debug {
    /// What there is to say of it.
    fn info(&self) -> AgentInfo;

    /// Refuses a choice that it could do nothing with, before the prompt is taken: what is wrong with it, in words.
    fn check(&self, _choice: &AgentChoice) -> Result<(), String> {
        Ok(())
    }

    /// Does the work of one turn. What it says and does goes into the turn's sink. When the turn's scope is cancelled it ends
    /// soon; when it returns, nothing of it runs any more. It is never dropped half-way, except with the daemon.
    async fn run(&self, turn: AgentTurn) -> AgentEnd;

    /// Lets go of what it keeps between turns. The daemon ends.
    async fn close(&self) {}
}

/// What there is to say of an agent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentInfo {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: AgentKind,
    /// In one line.
    pub description: String,
    /// Whether it can be asked.
    pub readiness: Readiness,
}

/// Whether an agent can be asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// It can.
    Ready,
    /// Something is missing: what, and what to do.
    Missing(String),
}

/// What an agent gets for a turn.
#[derive(Clone, Debug)]
pub struct AgentTurn {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The turn before it, to read what was said.
    pub previous: Option<TurnId>,
    /// What is asked.
    pub prompt: Prompt,
    /// How it was chosen.
    pub choice: AgentChoice,
    /// Cancelled when the turn shall stop.
    pub scope: Scope,
    /// Takes what it says and does.
    pub sink: Sink,
    /// What it can do.
    pub tools: Toolbox,
    /// The plan that it works in, opened when it is first needed.
    pub desk: PlanDesk,
    /// Asks the user.
    pub asker: Asker,
    /// To read turns and attachments.
    pub log: Log,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// How the work of an agent ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AgentEnd {
    /// It is done.
    Done,
    /// It could not go on. What it has said stays.
    Failed(TurnError),
    /// Whoever did the work went away in the middle of it. What it has said stays.
    Interrupted(TurnError),
    /// The scope was cancelled, and it has stopped.
    Cancelled,
}

impl AgentEnd {
    /// It could not go on.
    pub fn failed(code: &str, text: impl Into<String>) -> Self {
        Self::Failed(TurnError {
            code: code.to_owned(),
            text: text.into(),
        })
    }
}
