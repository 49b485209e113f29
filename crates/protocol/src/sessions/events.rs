//! The stream of a turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::ids::{ChangesetId, PermissionId, PlanId};
use crate::lenient::lenient;

use super::session::AgentChoice;
use super::turn::{Attachment, TurnError, TurnState, Usage};

/// An event of the stream of a turn, as the data of a server-sent event. Its id there is `sequence`, its name is the kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEvent {
    /// Its place in the stream, from 1 and without a gap.
    pub sequence: u64,
    /// When it was, in milliseconds since 1970.
    pub at_ms: i64,
    /// What happened.
    pub data: TurnEventBody,
}

/// What happened in a turn. Readers pass over kinds and members that they do not know.
///
/// Most events are of an item: a piece of text, a piece of reasoning, a call of a tool. Items are numbered from 0 in the
/// order in which they began; several can grow at the same time.
// The log stores the same JSON, but with the place of an attachment's content, which only the log can use: there `A` is
// another type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TurnEventBody<A = Attachment> {
    /// The prompt was accepted. It is the first event of every turn.
    Accepted {
        /// The version of these events.
        v: u32,
        /// What was asked.
        #[schema(value_type = Prompt)]
        prompt: Prompt<A>,
        /// Who is asked.
        #[serde(deserialize_with = "lenient")]
        agent: AgentChoice,
    },
    /// The prompt was changed while it waited.
    Edited {
        /// What is asked now.
        #[schema(value_type = Prompt)]
        prompt: Prompt<A>,
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
        /// The item of the tool that waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<u64>,
        /// Names the question.
        permission: PermissionId,
        /// The tool.
        tool: String,
        /// What is to be done, in one line.
        subject: String,
        /// What can be answered.
        options: Vec<PermissionOption>,
        /// How long an answer is waited for; then it is a `deny`. Without it there is no limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// The question was answered. The first answer counts.
    PermissionAnswered {
        /// Names the question.
        permission: PermissionId,
        /// The answer.
        answer: PermissionAnswer,
        /// Whose it is; empty if nobody answered in time.
        by: String,
    },
    /// What the plan of the turn comes to has changed.
    PlanChanged {
        /// The plan.
        plan: PlanId,
        /// Names what is in it now.
        fingerprint: String,
        /// How many files it changes.
        files: u64,
        /// The changeset that the newest changes went to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// Something that this version does not know.
    #[serde(other)]
    Unknown,
}

impl<A> TurnEventBody<A> {
    /// Its kind, as JSON has it.
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

    /// Whether it is a piece of something that grows. A crash may lose the last ones of these, and nothing else.
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
    /// In words.
    pub text: String,
    /// With it.
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

/// How a call of a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

impl ToolState {
    /// Its name, as JSON has it.
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

/// What a user answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Yes, this time.
    Allow,
    /// Yes, and from now on in this session.
    AllowAlways,
    /// No. It is also what silence means.
    Deny,
}

impl PermissionAnswer {
    /// Its name, as JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways => "allow_always",
            Self::Deny => "deny",
        }
    }
}

/// An answer that the user can give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PermissionOption {
    /// What it is called.
    pub label: String,
    /// What it means.
    pub answer: PermissionAnswer,
    /// The name that whoever asked has for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
}

/// Events of a turn, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEventList {
    /// The events.
    pub events: Vec<TurnEvent>,
    /// The first event that is still there. Earlier ones are in the transcript.
    pub first: u64,
    /// The newest event.
    pub last: u64,
}

/// The data of the event `resync`: events were folded together that the reader has not seen, or its place is of another
/// stream. What it has is to be thrown away, and this taken instead. The stream goes on after `after`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnResync {
    /// The last event that is in the snapshot.
    pub after: u64,
    /// The turn up to there.
    pub snapshot: TurnTranscript,
}

/// The data of the event `end`, the last one of every stream of a turn that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnEnd {
    /// The last event of the turn.
    pub sequence: u64,
    /// How it ended.
    pub state: TurnState,
}

/// What a reader of all events of a turn has in the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TurnTranscript {
    /// The items, in the order in which they began.
    pub items: Vec<TurnItem>,
    /// The number that events have for the item of the same place; `null` for an item that has none. Whoever goes on from
    /// a snapshot finds the items that still grow by it.
    #[serde(default)]
    pub numbers: Vec<Option<u64>>,
    /// What was used.
    pub usage: Usage,
    /// How far the turn is; nothing before it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TurnState>,
    /// Why it ended, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TurnItem {
    /// What the agent says.
    Text {
        /// All of it.
        text: String,
    },
    /// What it thinks.
    Reasoning {
        /// All of it.
        text: String,
    },
    /// A call of a tool.
    Tool {
        /// The agent's own name for this call; may be empty.
        call: String,
        /// The tool.
        tool: String,
        /// What it is to do, in one line; empty until it runs.
        title: String,
        /// The arguments: as JSON when they are complete, as the text so far before that.
        arguments: Value,
        /// What it has said.
        output: String,
        /// How it ended; nothing while it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<ToolState>,
        /// What the agent was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Where all of it is, if that is more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        full: Option<String>,
    },
    /// A question to the user.
    Permission {
        /// Names it.
        permission: PermissionId,
        /// The tool.
        tool: String,
        /// What is to be done.
        subject: String,
        /// What can be answered.
        options: Vec<PermissionOption>,
        /// The answer; nothing while it is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<PermissionAnswer>,
        /// Whose it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// What the plan came to.
    Plan {
        /// The plan.
        plan: PlanId,
        /// Names what was in it then.
        fingerprint: String,
        /// How many files it changed.
        files: u64,
        /// The paths that were just changed.
        paths: Vec<String>,
    },
    /// Something went wrong, and the turn went on.
    Trouble {
        /// A stable name.
        code: String,
        /// In words.
        text: String,
    },
}
