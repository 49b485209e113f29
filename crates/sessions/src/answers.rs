//! What the service is asked, and what it answers.

use std::path::PathBuf;

use protocol::{AgentChoice, FinishPlan, IfBusy, PermissionRule, PlanId, SessionId, SessionState};

use crate::prompt::Prompt;
use crate::session::{Actor, Session};
use crate::turn::Turn;

/// A session that is wanted.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The directory that its agents work on.
    pub directory: PathBuf,
    /// What it is about; the beginning of the first prompt if it is empty.
    pub title: String,
    /// The agent that is asked unless a prompt names another one.
    pub agent: AgentChoice,
    /// What its agents may do.
    pub rules: Vec<PermissionRule>,
    /// The plan that they begin to work in, if it is there already.
    pub plan: Option<PlanId>,
    /// Who wants it.
    pub by: Actor,
}

/// A prompt that is to become a turn.
#[derive(Clone, Debug)]
pub struct NewTurn {
    /// What is asked.
    pub prompt: Prompt,
    /// Who is asked; the agent of the session if it is not given.
    pub agent: Option<AgentChoice>,
    /// What to do if a turn runs already. If that one is being stopped, the prompt waits for its end in any case.
    pub if_busy: IfBusy,
    /// The version of the session that the caller saw: if it has moved, the prompt is refused.
    pub seen: Option<u64>,
    /// What is done with the plan when the turn is done.
    pub finish: Option<FinishPlan>,
    /// A second one with the same key is the same turn.
    pub idempotency_key: Option<String>,
    /// Which machine it runs on.
    pub run_on: RunOn,
    /// Who asks.
    pub by: Actor,
}

/// Which machine runs a prompt, if several share the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RunOn {
    /// That of the session: its directory is there.
    #[default]
    ItsMachine,
    /// This one. The session moves here, with the prompts that wait in it.
    Here,
}

/// A prompt was accepted. It is on disk.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The session as it is now.
    pub session: Session,
    /// The turn: it runs, or it waits.
    pub turn: Turn,
    /// Whether it is new, or that of an earlier request with the same key.
    pub started: Started,
}

/// Whether a request made something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Started {
    /// It did.
    New,
    /// An earlier one with the same key did.
    Before,
}

/// Which sessions to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only in this state. Without it, all but those that were put away.
    pub state: Option<SessionState>,
    /// Only of this directory, and below.
    pub directory: Option<PathBuf>,
    /// Only older ones than this.
    pub before: Option<SessionId>,
    /// At most so many; 50 if it is 0.
    pub limit: u32,
}
