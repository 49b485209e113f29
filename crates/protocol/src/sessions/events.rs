//! The event stream of a turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::ids::{ChangesetId, PermissionId, PlanId};
use crate::lenient::lenient;

use super::session::AgentChoice;
use super::turn::{Attachment, TurnError, TurnState, Usage};

/// An event in the stream of a turn: the data of a server-sent event. The id of the server-sent event is
/// `sequence`, and its name is the kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEvent {
    /// The position in the stream, starting at 1, without gaps.
    pub sequence: u64,
    /// When it happened, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// What happened.
    pub data: TurnEventBody,
}

/// What happened in a turn. Readers must ignore kinds and fields they don't know.
///
/// Most events belong to an item: a piece of text, a piece of reasoning, or a tool call. Items are numbered
/// from 0 in the order they start. Several can grow at the same time.
// The log stores the same JSON, but with a reference to the content of each attachment, which only the log can
// use. There, `A` is another type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnEventBody<A = Attachment> {
    /// The prompt was accepted. This is the first event of every turn.
    Accepted {
        /// The version of the event format.
        v: u32,
        /// The prompt.
        #[schema(value_type = Prompt)]
        prompt: Prompt<A>,
        /// The agent that runs the turn.
        #[serde(deserialize_with = "lenient")]
        agent: AgentChoice,
    },
    /// The prompt was edited while it was queued.
    Edited {
        /// The new prompt.
        #[schema(value_type = Prompt)]
        prompt: Prompt<A>,
    },
    /// The state of the turn changed. No events follow a terminal state.
    State {
        /// The new state.
        state: TurnState,
        /// Why the turn didn't succeed. Otherwise absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<TurnError>,
    },
    /// More text from the agent.
    Text {
        /// The number of the item.
        item: u64,
        /// The text to append.
        delta: String,
    },
    /// More reasoning from the agent.
    Reasoning {
        /// The number of the item.
        item: u64,
        /// The text to append.
        delta: String,
    },
    /// The agent is about to call a tool.
    ToolCall {
        /// The number of the item.
        item: u64,
        /// The agent's own id for the call. May be empty.
        call: String,
        /// The name of the tool.
        tool: String,
    },
    /// More of the arguments, as the agent writes them: a fragment of JSON.
    ToolArguments {
        /// The number of the item.
        item: u64,
        /// The text to append.
        delta: String,
    },
    /// The arguments are complete and valid, and the tool is running.
    ToolStarted {
        /// The number of the item.
        item: u64,
        /// A one-line description of what the tool does.
        title: String,
        /// The arguments.
        arguments: Value,
    },
    /// More output from the tool.
    ToolOutput {
        /// The number of the item.
        item: u64,
        /// The text to append.
        delta: String,
    },
    /// The tool call ended.
    ToolEnded {
        /// The number of the item.
        item: u64,
        /// How the call ended.
        state: ToolState,
        /// The result that the agent receives. Its size is limited.
        answer: String,
        /// Where to find the full result, if `answer` was shortened: the id of a job, or a path. Otherwise
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<String>,
    },
    /// The user is asked for permission.
    PermissionAsked {
        /// The number of the item of the tool call that is waiting. Absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<u64>,
        /// The id of the permission request.
        permission: PermissionId,
        /// The name of the tool.
        tool: String,
        /// A one-line description of what the tool would do.
        subject: String,
        /// The possible answers.
        options: Vec<PermissionOption>,
        /// How long to wait for an answer, in milliseconds. After that, the answer is `deny`. Absent if there
        /// is no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// The permission request was answered. The first answer counts.
    PermissionAnswered {
        /// The id of the permission request.
        permission: PermissionId,
        /// The answer.
        answer: PermissionAnswer,
        /// Who answered. Empty if the request timed out.
        by: String,
    },
    /// The content of the turn's plan changed.
    PlanChanged {
        /// The id of the plan.
        plan: PlanId,
        /// The fingerprint of its current content.
        fingerprint: String,
        /// The number of files the plan changes.
        files: u64,
        /// The id of the changeset with the latest changes. Absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changeset: Option<ChangesetId>,
        /// The paths that just changed. Only the first ones if there are many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
    },
    /// The usage of the turn so far.
    Usage {
        /// The total usage.
        total: Usage,
    },
    /// Something went wrong, but the turn continues.
    Trouble {
        /// A stable code.
        code: String,
        /// A description for people.
        text: String,
    },
    /// An event that this version doesn't know.
    #[serde(other)]
    Unknown,
}

impl<A> TurnEventBody<A> {
    /// The kind, as in JSON.
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
            Self::Unknown => "unknown",
        }
    }

    /// Whether it appends to something that grows. A crash can lose the latest of these events, but no
    /// others.
    #[must_use]
    pub fn is_delta(&self) -> bool {
        matches!(
            self,
            Self::Text { .. } | Self::Reasoning { .. } | Self::ToolArguments { .. } | Self::ToolOutput { .. }
        )
    }
}

/// A prompt, in an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EventPrompt)]
pub struct Prompt<A = Attachment> {
    /// The text of the prompt.
    pub text: String,
    /// The attachments.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Attachment>)]
    pub attachments: Vec<A>,
}

impl<A> Default for Prompt<A> {
    fn default() -> Self {
        Self {
            text: String::new(),
            attachments: Vec::new(),
        }
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// It succeeded.
    Done,
    /// It failed. The agent receives the reason.
    Failed,
    /// The user, or a rule, denied it.
    Denied,
    /// The turn was stopped.
    Cancelled,
}

impl ToolState {
    /// The name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A user's answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Allow it this time.
    Allow,
    /// Allow it, now and for the rest of the session.
    AllowAlways,
    /// Deny it. This is also the answer when the request times out.
    Deny,
}

impl PermissionAnswer {
    /// The name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
        }
    }
}

/// A possible answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PermissionOption {
    /// The text to show.
    pub label: String,
    /// The answer it stands for.
    pub answer: PermissionAnswer,
    /// The id that the requesting agent uses for the option. Absent if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// Events of a turn, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEventList {
    /// The events.
    pub events: Vec<TurnEvent>,
    /// The sequence number of the first event that is still stored. Earlier ones are in the transcript.
    pub first: u64,
    /// The sequence number of the newest event.
    pub last: u64,
}

/// The data of a `resync` event: events that the reader hasn't seen were compacted, or its position belongs
/// to another stream. Replace everything read so far with this snapshot. The stream continues after `after`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnResync {
    /// The sequence number of the last event in the snapshot.
    pub after: u64,
    /// The turn up to that event.
    pub snapshot: TurnTranscript,
}

/// The data of an `end` event, the last event in the stream of a finished turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEnd {
    /// The sequence number of the turn's last event.
    pub sequence: u64,
    /// How the turn ended.
    pub state: TurnState,
}

/// The combined result of all events of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnTranscript {
    /// The items, in the order they started.
    pub items: Vec<TurnItem>,
    /// For each item, the number that events use for it, or `null` if it has none. When you continue from a
    /// snapshot, use it to find the items that are still growing.
    #[serde(default)]
    pub numbers: Vec<Option<u64>>,
    /// The usage.
    pub usage: Usage,
    /// The state of the turn. Absent before it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TurnState>,
    /// Why the turn didn't succeed. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnItem {
    /// Text from the agent.
    Text {
        /// The full text.
        text: String,
    },
    /// Reasoning from the agent.
    Reasoning {
        /// The full text.
        text: String,
    },
    /// A tool call.
    Tool {
        /// The agent's own id for the call. May be empty.
        call: String,
        /// The name of the tool.
        tool: String,
        /// A one-line description of what the tool does. Empty until it runs.
        title: String,
        /// The arguments: JSON once they are complete, and before that a string with the text so far.
        arguments: Value,
        /// The output of the tool.
        output: String,
        /// How the call ended. Absent while it is running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ToolState>,
        /// The result that the agent received. Absent while the tool is running.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Where to find the full result, if `answer` was shortened. Otherwise absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<String>,
    },
    /// A permission request.
    Permission {
        /// The id of the request.
        permission: PermissionId,
        /// The name of the tool.
        tool: String,
        /// A one-line description of what the tool would do.
        subject: String,
        /// The possible answers.
        options: Vec<PermissionOption>,
        /// The answer. Absent while the request is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<PermissionAnswer>,
        /// Who answered. Absent while the request is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A change to the plan.
    Plan {
        /// The id of the plan.
        plan: PlanId,
        /// The fingerprint of its content at that time.
        fingerprint: String,
        /// The number of files the plan changed.
        files: u64,
        /// The paths that just changed.
        paths: Vec<String>,
    },
    /// Something went wrong, but the turn continued.
    Trouble {
        /// A stable code.
        code: String,
        /// A description for people.
        text: String,
    },
}
