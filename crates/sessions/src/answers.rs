//! Requests to the service, and its answers.

use std::path::PathBuf;

use protocol::{AgentChoice, FinishPlan, IfBusy, PermissionRule, PlanId, SessionId, SessionState};

use crate::prompt::Prompt;
use crate::session::{Actor, Session};
use crate::turn::Turn;

/// A session to open.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The directory that its agents work on.
    pub directory: PathBuf,
    /// The title; if empty, the start of the first prompt is used.
    pub title: String,
    /// The agent for prompts that don't name one.
    pub agent: AgentChoice,
    /// What its agents may do.
    pub rules: Vec<PermissionRule>,
    /// An existing plan to start in.
    pub plan: Option<PlanId>,
    /// Who opens it.
    pub by: Actor,
}

/// A prompt to start a turn with.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// The prompt.
    pub prompt: Prompt,
    /// The agent; defaults to that of the session.
    pub agent: Option<AgentChoice>,
    /// What to do if a turn is running. If that turn is being stopped, the prompt is always queued.
    pub if_busy: IfBusy,
    /// The version of the session that the caller saw. If it has changed, the prompt is refused.
    pub seen: Option<u64>,
    /// What to do with the plan when the turn is done.
    pub finish: Option<FinishPlan>,
    /// A second request with the same key returns the same turn.
    pub idempotency_key: Option<String>,
    /// Which machine it runs on.
    pub run_on: RunOn,
    /// Who sends it.
    pub by: Actor,
}

/// Which machine runs a prompt, if several share the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RunOn {
    /// The machine of the session, which has its directory.
    #[default]
    ItsMachine,
    /// This one. The session moves here with its queued prompts.
    Here,
}

/// An accepted prompt. It is on disk.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The current session.
    pub session: Session,
    /// The turn, running or queued.
    pub turn: Turn,
    /// Whether this request started it.
    pub started: Started,
}

/// Which request started a turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Started {
    /// This one.
    New,
    /// An earlier one with the same key.
    Before,
}

/// Which sessions to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only those in this state; by default all that aren't archived.
    pub state: Option<SessionState>,
    /// Only those in this directory or below.
    pub directory: Option<PathBuf>,
    /// Only those older than this one.
    pub before: Option<SessionId>,
    /// The maximum number of sessions; 0 means 50.
    pub limit: u32,
}
