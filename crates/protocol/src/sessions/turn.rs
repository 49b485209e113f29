//! Turns and their state.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::session::{AgentChoice, Session};
use crate::{FinishPlan, PlanFinish};

/// The body of `POST /v1/sessions/{id}/turns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTurn {
    /// The text of the prompt.
    pub prompt: String,
    /// Attachments to the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// The agent for this turn. Defaults to the session's agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
    /// What to do if a turn is already running. Defaults to `queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_busy: Option<IfBusy>,
    /// The version of the session that you saw. If the session has changed since, the prompt is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// If several machines share a database: whether to run the turn on this machine. The session and its
    /// waiting prompts then move here. Defaults to false: the turn runs on the session's machine, which has
    /// its directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub here: bool,
    /// What the daemon does with the plan when the turn ends as `done`, whether or not a client is connected.
    /// This runs as a job, and the turn's `finished` has the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishPlan>,
    /// An idempotency key. A second request with the same key returns the same turn. The `Idempotency-Key`
    /// header is equivalent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// What happens to a prompt while a turn is running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// It is queued.
    #[default]
    Queue,
    /// It is refused.
    Refuse,
}

/// An attachment to send with a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// The name of the attachment.
    pub name: String,
    /// The media type. Defaults to `text/plain` for text, and to `application/octet-stream` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The content in Base64, if it isn't text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// An attachment of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attachment {
    /// The name of the attachment.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The size, in bytes.
    pub size_bytes: u64,
}

/// The state of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// It is waiting for the turns before it.
    Queued,
    /// It is running.
    Running,
    /// It completed.
    Done,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// The daemon that ran it, or the agent, ended unexpectedly.
    Interrupted,
}

impl TurnState {
    /// The name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// Whether the state is final.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A turn: one prompt and everything that followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    /// The id of the turn.
    #[schema(example = "turn_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// The state of the turn.
    pub state: TurnState,
    /// The id of the session the turn was created in.
    pub session: String,
    /// The number of the prompt in that session, starting at 1.
    pub number: u64,
    /// The text of the prompt.
    pub prompt: String,
    /// The attachments of the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The agent that runs the turn.
    pub agent: AgentChoice,
    /// Who sent the prompt.
    pub by: String,
    /// When the prompt was accepted.
    #[schema(format = "date-time")]
    pub accepted_at: String,
    /// When the turn started. Absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When the turn ended. Absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// The id of the plan that the turn worked in. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The usage of the turn.
    pub usage: Usage,
    /// Why the turn didn't succeed. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// What the prompt asked the daemon to do with the plan at the end. Absent if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishPlan>,
    /// The id of the job that does it. Absent until the turn is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_job: Option<String>,
    /// What happened to the plan. Absent until that job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<PlanFinish>,
    /// The sequence number of the last event in its stream.
    pub last_sequence: u64,
}

/// Why a turn didn't succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnError {
    /// A stable code.
    pub code: String,
    /// A description for people.
    pub text: String,
}

/// The model usage of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// The number of tokens the model read.
    pub input_tokens: u64,
    /// The number of tokens the model wrote.
    pub output_tokens: u64,
    /// The number of requests to the model.
    pub requests: u64,
    /// The cost, in millionths of the currency of the configured prices. 0 if no price is known.
    pub cost_micros: u64,
}

impl Usage {
    /// Adds two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            requests: self.requests.saturating_add(other.requests),
            cost_micros: self.cost_micros.saturating_add(other.cost_micros),
        }
    }
}

/// The prompt was accepted and is stored on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnAccepted {
    /// The session in its current state.
    pub session: Session,
    /// The turn, which is running or queued.
    pub turn: Turn,
    /// Whether this request created the turn. If false, an earlier request with the same key did.
    pub new: bool,
}

/// A list of turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnList {
    /// The turns: newest first, or for the queue in the order they will run.
    pub turns: Vec<Turn>,
    /// The id of the turn to continue before, for the next page. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The body of `PUT /v1/sessions/{id}/queue/{turn}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditQueued {
    /// The new text of the prompt. If omitted, it stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The new position in the queue, starting at 0. If omitted, it stays unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

/// The body of `POST /v1/sessions/{id}/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTurn {
    /// The id of the turn that you saw. Defaults to the active turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The body of `POST /v1/sessions/{id}/clear-stale-turn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearStaleTurn {
    /// The version of the session that you saw.
    pub seen: u64,
    /// The id of the turn that you saw.
    pub turn: String,
}
