//! What a turn is.

use eventlog::{BlobId, Sequence, UnixMs, Version};
use protocol::{PlanId, SessionId, TurnId};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;
use crate::prompt::{AgentChoice, Prompt};
use crate::session::Actor;
use crate::streams::{as_text, maybe_as_text};

/// A turn, as it was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The version that it was read at.
    pub version: Version,
    /// The last event of its stream.
    pub last_sequence: Sequence,
    /// What it is.
    pub record: TurnRecord,
}

/// What the head of a turn says.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// The session that it was made in.
    #[serde(with = "as_text")]
    pub session: SessionId,
    /// Which prompt of the session it is, from 1.
    pub number: u64,
    /// The turn before it, once it has begun.
    #[serde(default, with = "maybe_as_text", skip_serializing_if = "Option::is_none")]
    pub previous: Option<TurnId>,
    /// What was asked.
    pub prompt: Prompt,
    /// Which agent is asked.
    pub agent: AgentChoice,
    /// Who asked.
    pub by: Actor,
    /// When the prompt was accepted.
    pub accepted_at: UnixMs,
    /// What it is doing.
    pub state: TurnState,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMs>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<UnixMs>,
    /// Who runs it or ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The plan that it worked in, if it came to that.
    #[serde(default, with = "maybe_as_text", skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanId>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
    /// The whole of it, once its events were folded together.
    #[serde(default, with = "maybe_as_text", skip_serializing_if = "Option::is_none")]
    pub transcript: Option<BlobId>,
}

/// What a turn is doing.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
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
    /// The daemon that ran it went away.
    Interrupted,
}

impl TurnState {
    /// Its name.
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

/// Why a turn did not end well.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct TurnError {
    /// A stable name, for example `model_unreachable`.
    pub code: String,
    /// In words.
    pub text: String,
}

/// What a turn used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that a model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// How often it was asked.
    pub requests: u64,
    /// What that cost, in millionths of the currency of the settings; nothing if no price is known.
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
