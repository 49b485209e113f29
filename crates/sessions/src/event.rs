//! What the stream of a turn is made of.
//!
//! The body of an event in the log is this, as JSON, without its kind, which the log has of its own. What goes over the
//! wire is the same body: a reader that knows version 1 passes over kinds and members that it does not know.
//!
//! Most events are of an item: a piece of text, a piece of reasoning, a call of a tool. Items are numbered from 0 in the
//! order in which they began; several can grow at the same time.

use eventlog::{CommitError, NewEvent};
use protocol::{ChangesetId, PermissionId, PlanId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permissions::Answer;
use crate::prompt::{AgentChoice, Prompt};
use crate::streams::{as_text, maybe_as_text};
use crate::turn::{TurnError, TurnState, Usage};

/// Something that happened in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnEvent {
    /// The prompt was accepted. It is the first event of every turn.
    Accepted {
        /// The version of these events.
        v: u32,
        /// What was asked.
        prompt: Prompt,
        /// Who is asked.
        agent: AgentChoice,
    },
    /// The prompt was changed while it waited.
    Edited {
        /// What is asked now.
        prompt: Prompt,
    },
    /// The turn is in another state now. After one that is terminal there is no other event.
    State {
        /// The state.
        state: TurnState,
        /// Why, if it did not end well.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<TurnError>,
    },
    /// More of what the agent says.
    Text {
        /// The item.
        item: u64,
        /// The text.
        delta: String,
    },
    /// More of what it thinks.
    Reasoning {
        /// The item.
        item: u64,
        /// The text.
        delta: String,
    },
    /// A tool is about to be called.
    ToolCall {
        /// The item.
        item: u64,
        /// The agent's own name for this call; may be empty.
        call: String,
        /// The tool.
        tool: String,
    },
    /// More of the arguments, as the agent writes them: a piece of JSON.
    ToolArguments {
        /// The item.
        item: u64,
        /// The text.
        delta: String,
    },
    /// The arguments are complete and good, and the tool runs.
    ToolStarted {
        /// The item.
        item: u64,
        /// What it is to do, in one line.
        title: String,
        /// The arguments.
        arguments: Value,
    },
    /// More of what the tool says.
    ToolOutput {
        /// The item.
        item: u64,
        /// The text.
        delta: String,
    },
    /// The tool is done.
    ToolEnded {
        /// The item.
        item: u64,
        /// How.
        state: ToolState,
        /// What the agent is told; bounded.
        answer: String,
        /// Where all of it is, if that is more: the id of a job, or a path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<String>,
    },
    /// The user is asked whether something may be done.
    PermissionAsked {
        /// The item of the tool that waits; none if it is not a tool that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<u64>,
        /// Names the question.
        #[serde(with = "as_text")]
        permission: PermissionId,
        /// The tool.
        tool: String,
        /// What is to be done, in one line.
        subject: String,
        /// What can be answered.
        options: Vec<PermissionOption>,
        /// How long an answer is waited for, in milliseconds; then it is a `deny`. Without it there is no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// The question was answered. The first answer counts.
    PermissionAnswered {
        /// Names the question.
        #[serde(with = "as_text")]
        permission: PermissionId,
        /// The answer.
        answer: Answer,
        /// Whose it is; empty if nobody answered in time.
        by: String,
    },
    /// What the plan of the turn comes to has changed.
    PlanChanged {
        /// The plan.
        #[serde(with = "as_text")]
        plan: PlanId,
        /// Names what is in it now.
        fingerprint: String,
        /// How many files it changes.
        files: u64,
        /// The changeset that the newest changes went to.
        #[serde(default, with = "maybe_as_text", skip_serializing_if = "Option::is_none")]
        changeset: Option<ChangesetId>,
        /// The paths that were just changed; the first of them, if there are many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// What the turn has used so far.
    Usage {
        /// All of it.
        total: Usage,
    },
    /// Something went wrong, and the turn goes on all the same.
    Trouble {
        /// A stable name.
        code: String,
        /// In words.
        text: String,
    },
}

/// How a call of a tool ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// It did what it should.
    Done,
    /// It could not. The agent is told why.
    Failed,
    /// The user, or a rule, did not allow it.
    Denied,
    /// The turn was stopped.
    Cancelled,
}

/// An answer that the user can give.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct PermissionOption {
    /// What it is called.
    pub label: String,
    /// What it means.
    pub answer: Answer,
    /// The name that whoever asked has for it; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// The version of these events.
pub(crate) const EVENT_VERSION: u32 = 1;

impl TurnEvent {
    /// Its name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "accepted",
            Self::Edited { .. } => "edited",
            Self::State { .. } => "state",
            Self::Text { .. } => "text",
            Self::Reasoning { .. } => "reasoning",
            Self::ToolCall { .. } => "tool_call",
            Self::ToolArguments { .. } => "tool_arguments",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolOutput { .. } => "tool_output",
            Self::ToolEnded { .. } => "tool_ended",
            Self::PermissionAsked { .. } => "permission_asked",
            Self::PermissionAnswered { .. } => "permission_answered",
            Self::PlanChanged { .. } => "plan_changed",
            Self::Usage { .. } => "usage",
            Self::Trouble { .. } => "trouble",
        }
    }

    /// Whether it is a piece of something that grows. A crash may lose the last ones of these, and nothing else.
    #[must_use]
    pub fn is_delta(&self) -> bool {
        matches!(
            self,
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolArguments { .. } | Self::ToolOutput { .. }
        )
    }

    /// As the log takes it.
    pub(crate) fn to_log(&self) -> Result<NewEvent, CommitError> {
        let blobs = match self {
            Self::Accepted { prompt, .. } | Self::Edited { prompt } => prompt
                .attachments
                .iter()
                .map(|attachment| attachment.content)
                .collect(),
            _ => Vec::new(),
        };
        Ok(NewEvent {
            blobs,
            ..NewEvent::json(self.kind(), self)?
        })
    }

    /// Takes it back from the log; nothing if it is of a kind that is not known here.
    #[must_use]
    pub fn from_log(event: &eventlog::Event) -> Option<Self> {
        serde_json::from_slice(&event.body).ok()
    }
}
