//! What a session is.

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

/// Who does something, as the daemon was told.
pub type Actor = Arc<str>;

/// A session as it was when it was read. Its head has everything, so a change can be saved from it.
pub type Session = Entity<SessionRecord>;

/// What the head of a session says. Its size does not grow with its history.
///
/// It differs from [`protocol::Session`]: times are milliseconds here and RFC 3339 there, readers are told the state and the
/// machine instead of the parts that they follow from, and only of the questions that are open.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// What is known of it for good.
    pub facts: SessionFacts,
    /// The home whose machine has the directory, and runs the prompts. Older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeId>,
    /// What it is about, in one line.
    pub title: String,
    /// The agent that is asked unless a prompt names another one.
    #[serde(deserialize_with = "lenient")]
    pub agent: AgentChoice,
    /// What its agents may do without asking, or not at all; before the rules of the daemon.
    #[serde(default, deserialize_with = "lenient_list")]
    pub rules: Vec<PermissionRule>,
    /// How many of the rules, from the first on, come from answers: always allow. The newest is the first.
    #[serde(default)]
    pub learned_rules: usize,
    /// The plan that its agents work in; none before the first work, and again after that was applied or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// The turn that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveTurn>,
    /// The turns that wait, in their order.
    #[serde(default)]
    pub queue: Vec<TurnId>,
    /// The newest turn that has begun. Each names the one before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<TurnId>,
    /// How many prompts were accepted. The next turn has the next number.
    pub prompts: u64,
    /// How the newest turn that is over ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<TurnState>,
    /// Whether it was put away.
    #[serde(default)]
    pub archived: bool,
    /// Whether it is being removed. Nobody finds it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removing: bool,
    /// How many sessions were forked from it, and share its turns.
    #[serde(default)]
    pub forks: u64,
    /// When it last changed.
    pub changed_at: UnixMs,
}

/// What is known of a session for good.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The directory that its agents work on.
    pub directory: PathBuf,
    /// Who opened it.
    pub opened_by: Actor,
    /// When.
    pub opened_at: UnixMs,
    /// The session that it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Fork>,
}

/// Where a session was forked.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Fork {
    /// The session.
    pub session: SessionId,
    /// Its last turn that both share.
    pub turn: TurnId,
}

/// The turn that runs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ActiveTurn {
    /// The turn.
    pub turn: TurnId,
    /// The beginning of its prompt.
    pub prompt: String,
    /// The names of what came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    /// When it began.
    pub started_at: UnixMs,
    /// Who runs it.
    pub owner: Owner,
    /// Who wants it to stop. It stays active until it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What the user is or was asked in it; the answers that were taken over are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
}

/// A wish to stop a turn.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// Whose.
    pub by: Actor,
    /// Why; may be empty.
    pub why: String,
    /// Since when.
    pub at: UnixMs,
    /// What the turn says at its end, if it is not simply that somebody stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A question to the user.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Names it.
    pub id: PermissionId,
    /// The tool that wants to do something.
    pub tool: String,
    /// What it wants to do, in one line.
    pub subject: String,
    /// The first answer, and whose it is.
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
    /// What it is doing.
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
