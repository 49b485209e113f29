//! What a turn is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::session::{AgentChoice, Session};
use crate::{FinishPlan, PlanFinish};

/// The body of `POST /v1/sessions/{id}/turns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTurn {
    /// What is asked.
    pub prompt: String,
    /// What comes with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<NewAttachment>,
    /// Who is asked; the agent of the session if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentChoice>,
    /// What to do if a turn runs already; `queue` if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_busy: Option<IfBusy>,
    /// The version of the session that was seen: if it has moved, the prompt is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// Whether it runs on this machine, if several share a database. The session moves here, with the prompts that wait in it.
    /// Without it, a prompt runs on the machine of the session, which has its directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub here: bool,
    /// What the daemon does with the plan when the turn ends as `done`, whoever is connected. It is a job, and the turn's
    /// `finished` says what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishPlan>,
    /// A second request with the same key is the same turn. The header `Idempotency-Key` means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// What becomes of a prompt while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// It waits for its turn.
    #[default]
    Queue,
    /// It is refused.
    Refuse,
}

/// Something that comes with a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAttachment {
    /// What it is called.
    pub name: String,
    /// What it is; `text/plain` for text, `application/octet-stream` otherwise, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Its content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its content in base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Something that came with a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attachment {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub media_type: String,
    /// How large it is.
    pub size_bytes: u64,
}

/// What a turn is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// It waits for the one before it.
    Queued,
    /// It runs.
    Running,
    /// It came to its end.
    Done,
    /// It could not go on.
    Failed,
    /// It was stopped.
    Cancelled,
    /// The daemon that ran it, or the agent, went away.
    Interrupted,
}

impl TurnState {
    /// Its name, as JSON has it.
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

    /// Whether it never changes again.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// A turn: one prompt and everything that followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Turn {
    /// Its id.
    #[schema(example = "turn_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
    pub id: String,
    /// What it is doing.
    pub state: TurnState,
    /// The session that it was made in.
    pub session: String,
    /// Which prompt of that session it is, from 1.
    pub number: u64,
    /// What was asked.
    pub prompt: String,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Who was asked.
    pub agent: AgentChoice,
    /// Who asked.
    pub by: String,
    /// When the prompt was accepted.
    #[schema(format = "date-time")]
    pub accepted_at: String,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time")]
    pub ended_at: Option<String>,
    /// The plan that it worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What it used.
    pub usage: Usage,
    /// Why it ended, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// What the prompt asked to be done with the plan at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<FinishPlan>,
    /// The job that does it, once the turn is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_job: Option<String>,
    /// What became of the plan, when that job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<PlanFinish>,
    /// The last event of its stream.
    pub last_sequence: u64,
}

/// Why a turn did not end well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnError {
    /// A stable name.
    pub code: String,
    /// In words.
    pub text: String,
}

/// What a turn used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Tokens that a model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// How often it was asked.
    pub requests: u64,
    /// What that cost, in millionths; 0 if no price is known.
    pub cost_micros: u64,
}

impl Usage {
    /// Both together.
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

/// A prompt was accepted, and is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnAccepted {
    /// The session as it is now.
    pub session: Session,
    /// The turn: it runs, or it waits.
    pub turn: Turn,
    /// Whether this request made it. If not, an earlier one with the same key did.
    pub new: bool,
}

/// Turns, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TurnList {
    /// The turns.
    pub turns: Vec<Turn>,
    /// The turn to go on before, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The body of `PUT /v1/sessions/{id}/queue/{turn}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditQueued {
    /// What is asked now; as it is if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The place in the queue, from 0; where it is if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
}

/// The body of `POST /v1/sessions/{id}/cancel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTurn {
    /// The turn that was seen; the active one, whatever it is, if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The body of `POST /v1/sessions/{id}/clear-stale-turn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClearStaleTurn {
    /// The version of the session that was seen.
    pub seen: u64,
    /// The turn that was seen.
    pub turn: String,
}
