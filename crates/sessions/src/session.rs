//! The stored state of a session.

use std::path::PathBuf;
use std::sync::Arc;

use eventlog::{Entity, EntityRecord, UnixMs};
use protocol::{
    AgentChoice, HomeId, PermissionAnswer, PermissionId, PermissionRule, PlanId, SessionId, SessionState,
    TurnError, TurnId, TurnState, lenient, lenient_list,
};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;
use crate::state::Happening;

/// The status of a session that is being removed.
pub(crate) const REMOVING: &str = "removing";

/// Who does something, as reported to the daemon.
pub type Actor = Arc<str>;

/// A session as it was when it was read. Its head is complete, so a change can be saved from it.
pub type Session = Entity<SessionRecord>;

/// The head of a session. Its size doesn't grow with the history of the session.
///
/// It differs from [`protocol::Session`]: times are milliseconds here and RFC 3339 there, and readers get the derived state
/// and machine, and only open questions.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Facts that never change.
    pub facts: SessionFacts,
    /// The home that has the directory and runs the prompts. Older records don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeId>,
    /// The title, in one line.
    pub title: String,
    /// The agent for prompts that don't name one.
    #[serde(deserialize_with = "lenient")]
    pub agent: AgentChoice,
    /// What its agents may do without asking, or not at all. These rules come before those of the daemon.
    #[serde(default, deserialize_with = "lenient_list")]
    pub rules: Vec<PermissionRule>,
    /// How many of the first rules come from the answer "always allow", newest first.
    #[serde(default)]
    pub learned_rules: usize,
    /// The plan that its agents work in, until it is applied or discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveTurn>,
    /// The queued turns, in order.
    #[serde(default)]
    pub queue: Vec<TurnId>,
    /// The newest turn that has started. Each turn names the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<TurnId>,
    /// How many prompts were accepted. The next turn gets the next number.
    pub prompts: u64,
    /// The state of the newest turn that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<TurnState>,
    /// Whether it is archived.
    #[serde(default)]
    pub archived: bool,
    /// Whether it is being removed. If so, it counts as absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
    /// How many sessions were forked from it, and share its turns.
    #[serde(default)]
    pub forks: u64,
    /// When it last changed.
    pub changed_at: UnixMs,
}

/// The facts about a session that never change.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The directory that its agents work on.
    pub directory: PathBuf,
    /// Who opened it.
    pub opened_by: Actor,
    /// When it was opened.
    pub opened_at: UnixMs,
    /// The session that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Fork>,
}

/// Where a session was forked.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The session.
    pub session: SessionId,
    /// The last turn that both share.
    pub turn: TurnId,
}

/// The running turn.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ActiveTurn {
    /// The turn.
    pub turn: TurnId,
    /// The start of its prompt.
    pub prompt: String,
    /// The names of its attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    /// When it began.
    pub started_at: UnixMs,
    /// Who runs it.
    pub owner: Owner,
    /// The request to stop it. It stays active until it has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Its questions to the user, except those with answers that the turn has already picked up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// A request to stop a turn.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Who made it.
    pub by: Actor,
    /// The reason; may be empty.
    pub why: String,
    /// When it was made.
    pub at: UnixMs,
    /// The error that the turn ends with, if it wasn't simply stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A question to the user.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Its id.
    pub id: PermissionId,
    /// The tool that asks.
    pub tool: String,
    /// What it wants to do, in one line.
    pub subject: String,
    /// The first answer, and who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<(PermissionAnswer, Actor)>,
}

impl EntityRecord for SessionRecord {
    const KIND: &'static str = "session";
    type Id = SessionId;
    type Event = Happening;

    fn status(&self) -> Arc<str> {
        match self.removing {
            true => REMOVING.into(),
            false => self.state().name().into(),
        }
    }
}

impl SessionRecord {
    /// The state that follows from the record.
    #[must_use]
    pub fn state(&self) -> SessionState {
        match &self.active {
            Some(active) if active.stop.is_some() => SessionState::Stopping,
            Some(active) if active.asked.iter().any(|asked| asked.answer.is_none()) => SessionState::Asking,
            Some(_) => SessionState::Running,
            None if self.archived => SessionState::Archived,
            None if !self.queue.is_empty() => SessionState::Waiting,
            None => SessionState::Idle,
        }
    }
}
