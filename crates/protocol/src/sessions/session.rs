//! What a session is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

use super::turn::TurnState;

/// The body of `POST /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenSession {
    /// The absolute path of the directory that its agents work on.
    #[schema(example = "/home/me/project")]
    pub directory: String,
    /// What it is about; the beginning of the first prompt if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent that is asked unless a prompt names another one; the usual one if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
    /// What its agents may do; these go before the rules of the daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
    /// A plan that they begin to work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// Which agent is asked, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChoice {
    /// The name of the agent.
    pub name: String,
    /// The model, for an agent that has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The script, for a rehearsal, in YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

/// A rule about what agents may do. The first one that speaks of a wish counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// The tool; `*` for all.
    pub tool: String,
    /// What it is to do: a path, or a line for the shell, with `*` for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What is to be done about it.
    pub permission: RulePermission,
}

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RulePermission {
    /// It is done.
    Allow,
    /// The user is asked.
    Ask,
    /// It is not done.
    Deny,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing. It takes a prompt.
    Idle,
    /// Nothing runs, and prompts wait: for a place, or for the machine of the session.
    Waiting,
    /// A turn runs.
    Running,
    /// A turn runs, and waits for an answer of the user.
    Asking,
    /// A turn is being stopped.
    Stopping,
    /// It was put away.
    Archived,
}

impl SessionState {
    /// Its name, as JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Stopping => "stopping",
            Self::Archived => "archived",
        }
    }
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its id.
    #[schema(example = "session_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// What it is doing.
    pub state: SessionState,
    /// The version that a change can name.
    pub version: u64,
    /// What it is about.
    pub title: String,
    /// The directory that its agents work on.
    pub directory: String,
    /// The machine that runs its prompts and has its directory. Older daemons do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The other machine that its prompts wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<AwaitedMachine>,
    /// The agent that is asked unless a prompt names another one.
    pub agent: AgentChoice,
    /// Who opened it.
    pub opened_by: String,
    /// When, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// When it last changed.
    #[schema(format = "date-time")]
    pub changed_at: String,
    /// The plan that its agents work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The turn that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveTurn>,
    /// The turns that wait, in their order.
    pub queue: Vec<String>,
    /// The newest turn that has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<String>,
    /// How the newest turn that is over ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<TurnState>,
    /// How many prompts were accepted.
    pub prompts: u64,
    /// Whether it was put away.
    pub archived: bool,
    /// The session and the turn that it goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkSession>,
    /// How many sessions were forked from it.
    pub forks: u64,
    /// Its own rules.
    pub rules: Vec<PermissionRule>,
}

/// Another machine, which prompts wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AwaitedMachine {
    /// The home of its daemon.
    pub home: String,
    /// What it is called.
    pub name: String,
    /// Whether its daemon runs. If not, the prompts wait until it is started, or until somebody has them run elsewhere.
    pub running: bool,
}

/// The turn that runs in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActiveTurn {
    /// The turn.
    pub turn: String,
    /// The beginning of its prompt.
    pub prompt: String,
    /// The names of what came with it.
    pub attachments: Vec<String>,
    /// When it began.
    #[schema(format = "date-time")]
    pub started_at: String,
    /// The life of the daemon that runs it.
    pub boot: String,
    /// The home of that daemon.
    pub home: String,
    /// Who wants it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRequest>,
    /// What the user is asked, as far as it is open.
    pub asking: Vec<WaitingPermission>,
}

/// A wish to stop a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopRequest {
    /// Whose.
    pub by: String,
    /// Why; may be empty.
    pub why: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub at: String,
}

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingPermission {
    /// Names it.
    pub permission: String,
    /// The tool that wants to do something.
    pub tool: String,
    /// What it wants to do.
    pub subject: String,
}

/// The answer of `GET /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// The sessions, newest first.
    pub sessions: Vec<Session>,
    /// The id to go on before, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The body of `POST /v1/sessions/{id}/rename`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameSession {
    /// The new title.
    pub title: String,
}

/// The body of `POST /v1/sessions/{id}/archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSession {
    /// Whether it is put away, or taken back.
    pub archived: bool,
}

/// The body of `POST /v1/sessions/{id}/fork`, and where a session was forked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    /// The session; not needed in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The last turn that both share; the newest that is over if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

/// The body of `POST /v1/sessions/{id}/permissions/{permission}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerPermission {
    /// The answer.
    pub answer: super::events::PermissionAnswer,
}

/// What a question was answered. The first answer counts, and is told to all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PermissionAnswered {
    /// The question.
    pub permission: String,
    /// The answer that counts.
    pub answer: super::events::PermissionAnswer,
    /// Whose it is.
    pub by: String,
}

/// Something that happened to a session, as an event of its stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionMoment {
    /// Its place in the stream.
    pub sequence: u64,
    /// When it was.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `opened`, `accepted`, `started`, `ended`, `stop_requested`, `asked`, `answered`, `edited`, `moved`,
    /// `removed`, `renamed`, `agent_set`, `home_set`, `archived`, `unarchived`, `forked`, `plan_set`.
    pub event: String,
    /// Who did it; may be empty.
    pub actor: String,
    /// The turn that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// What is to be said of it, in one line; may be empty.
    pub text: String,
}

/// What has happened to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionHistory {
    /// The moments of its life, oldest first.
    pub moments: Vec<SessionMoment>,
}

/// How many turns there are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCounts {
    /// How many turns run.
    pub running: u64,
    /// How many sessions have prompts that wait.
    pub waiting: u64,
}
