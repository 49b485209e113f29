//! Sessions and their state.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Machine;

use super::turn::TurnState;

/// The body of `POST /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenSession {
    /// The absolute path of the directory that the agents work on.
    #[schema(example = "/home/me/project")]
    pub directory: String,
    /// The title. Defaults to the beginning of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The agent for prompts that don't name another one. Defaults to the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
    /// Permission rules for the agents. They take precedence over the daemon's rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PermissionRule>,
    /// The id of a plan for the agents to start working in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// An agent and its options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentChoice {
    /// The name of the agent.
    pub name: String,
    /// The model, for agents that offer a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The script of a rehearsal, in YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

/// A rule about what agents may do. The first matching rule applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionRule {
    /// The name of the tool, or `*` for all tools.
    pub tool: String,
    /// The path or shell command line to match. `*` matches anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What to do when the rule matches.
    pub permission: RulePermission,
}

/// What to do when a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RulePermission {
    /// Allow it.
    Allow,
    /// Ask the user.
    Ask,
    /// Deny it.
    Deny,
}

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing is running. The session accepts a prompt.
    Idle,
    /// Nothing is running, and prompts are waiting for a free slot or for the session's machine.
    Waiting,
    /// A turn is running.
    Running,
    /// A turn is running, and is waiting for the user's answer.
    Asking,
    /// A turn is being stopped.
    Stopping,
    /// The session is archived.
    Archived,
}

impl SessionState {
    /// The name, as in JSON.
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
    /// The id of the session.
    #[schema(example = "session_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The state of the session.
    pub state: SessionState,
    /// The version, which you can pass to requests that change the session.
    pub version: u64,
    /// The title.
    pub title: String,
    /// The directory that the agents work on.
    pub directory: String,
    /// The machine that runs the session's prompts and has its directory. Absent in older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The other machine that the session's prompts are waiting for. Absent if they aren't waiting for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<AwaitedMachine>,
    /// The agent for prompts that don't name another one.
    pub agent: AgentChoice,
    /// Who opened the session.
    pub opened_by: String,
    /// When the session was opened, in RFC 3339 and UTC.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// When the session last changed.
    #[schema(format = "date-time")]
    pub changed_at: String,
    /// The id of the plan that the agents work in. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The running turn. Absent if none is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveTurn>,
    /// The ids of the queued turns, in order.
    pub queue: Vec<String>,
    /// The id of the newest turn that has started. Absent if none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<String>,
    /// How the most recent finished turn ended. Absent if none has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state: Option<TurnState>,
    /// The number of prompts that were accepted.
    pub prompts: u64,
    /// Whether the session is archived.
    pub archived: bool,
    /// The session and turn that this session was forked from. Absent if it isn't a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkSession>,
    /// The number of sessions that were forked from this one.
    pub forks: u64,
    /// The session's own permission rules.
    pub rules: Vec<PermissionRule>,
}

/// Another machine that prompts are waiting for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AwaitedMachine {
    /// The home of its daemon.
    pub home: String,
    /// The name of the machine.
    pub name: String,
    /// Whether its daemon is running. If not, the prompts wait until it is started, or until someone moves
    /// them to another machine.
    pub running: bool,
}

/// The running turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActiveTurn {
    /// The id of the turn.
    pub turn: String,
    /// The beginning of the prompt.
    pub prompt: String,
    /// The names of the attachments.
    pub attachments: Vec<String>,
    /// When the turn started.
    #[schema(format = "date-time")]
    pub started_at: String,
    /// The id of the daemon run that runs the turn.
    pub boot: String,
    /// The home of that daemon.
    pub home: String,
    /// The request to stop the turn. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRequest>,
    /// The open permission requests.
    pub asking: Vec<WaitingPermission>,
}

/// A request to stop a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StopRequest {
    /// Who requested it.
    pub by: String,
    /// The reason. May be empty.
    pub why: String,
    /// When it was requested.
    #[schema(format = "date-time")]
    pub at: String,
}

/// An open permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingPermission {
    /// The id of the request.
    pub permission: String,
    /// The name of the tool that needs permission.
    pub tool: String,
    /// What the tool would do.
    pub subject: String,
}

/// The response of `GET /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionList {
    /// The sessions, newest first.
    pub sessions: Vec<Session>,
    /// The id to continue before, for the next page. Absent on the last page.
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
    /// `true` to archive the session, `false` to unarchive it.
    pub archived: bool,
}

/// The body of `POST /v1/sessions/{id}/fork`, and the origin of a forked session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkSession {
    /// The id of the session. Not needed in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The id of the last turn that both sessions share. Defaults to the newest finished turn.
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

/// The answer to a permission request. The first answer counts, and is returned to everyone who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PermissionAnswered {
    /// The id of the request.
    pub permission: String,
    /// The answer that counts.
    pub answer: super::events::PermissionAnswer,
    /// Who answered.
    pub by: String,
}

/// One event in the history of a session, and in its event stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionMoment {
    /// The position in the stream.
    pub sequence: u64,
    /// When it happened.
    #[schema(format = "date-time")]
    pub at: String,
    /// What happened: `opened`, `accepted`, `started`, `ended`, `stop_requested`, `asked`, `answered`, `edited`, `moved`,
    /// `removed`, `renamed`, `agent_set`, `home_set`, `archived`, `unarchived`, `forked`, `plan_set`.
    pub event: String,
    /// Who did it. May be empty.
    pub actor: String,
    /// The id of the turn it is about. Absent if it isn't about a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// A one-line description. May be empty.
    pub text: String,
}

/// The history of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionHistory {
    /// The events, oldest first.
    pub moments: Vec<SessionMoment>,
}

/// A summary of the current turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionCounts {
    /// The number of running turns.
    pub running: u64,
    /// The number of sessions with waiting prompts.
    pub waiting: u64,
}
