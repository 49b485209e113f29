//! The messages of the protocol that we know, reduced to the fields that we use. Everything else is ignored.

use serde::Deserialize;
use serde_json::Value;

/// The version of the protocol that we speak.
pub(in super::super) const PROTOCOL_VERSION: u64 = 1;

/// The answer to `initialize`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Initialized {
    pub(in super::super) protocol_version: u64,
    #[serde(default)]
    pub(in super::super) agent_capabilities: AgentCapabilities,
    #[serde(default)]
    pub(in super::super) auth_methods: Vec<AuthMethod>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(in super::super) struct AgentCapabilities {
    pub(in super::super) load_session: bool,
    pub(in super::super) prompt_capabilities: PromptCapabilities,
    pub(in super::super) session_capabilities: SessionCapabilities,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(in super::super) struct PromptCapabilities {
    pub(in super::super) image: bool,
    pub(in super::super) embedded_context: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(in super::super) struct SessionCapabilities {
    /// An object, if the agent supports it.
    pub(in super::super) resume: Option<Value>,
}

/// A way to sign in.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(in super::super) struct AuthMethod {
    pub(in super::super) name: String,
    pub(in super::super) description: Option<String>,
}

/// A config option of a session.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct ConfigOption {
    pub(in super::super) id: String,
    #[serde(default)]
    category: Option<String>,
}

impl ConfigOption {
    /// The config options in an answer about a session.
    pub(in super::super) fn of(answer: &Value) -> Vec<Self> {
        let offered = answer.get("configOptions").and_then(Value::as_array);
        let offered = offered.into_iter().flatten();
        offered
            .filter_map(|option| serde_json::from_value(option.clone()).ok())
            .collect()
    }

    /// Whether this option selects the model.
    pub(in super::super) fn is_model(&self) -> bool {
        self.category.as_deref() == Some("model") || self.id == "model"
    }
}

/// The answer to `session/prompt`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct PromptEnd {
    pub(in super::super) stop_reason: StopReason,
    #[serde(default)]
    pub(in super::super) usage: Option<PromptUsage>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Refusal,
    Cancelled,
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(in super::super) struct PromptUsage {
    pub(in super::super) input_tokens: u64,
    pub(in super::super) output_tokens: u64,
}

/// A piece of speech or thought.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct Chunk {
    pub(in super::super) content: Value,
}

/// A tool call, or changes to one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct ToolUpdate {
    pub(in super::super) tool_call_id: String,
    #[serde(default)]
    pub(in super::super) title: Option<String>,
    #[serde(default)]
    pub(in super::super) kind: Option<String>,
    #[serde(default)]
    pub(in super::super) status: Option<ToolStatus>,
    #[serde(default)]
    pub(in super::super) content: Option<Vec<ToolContent>>,
    #[serde(default)]
    pub(in super::super) locations: Option<Vec<ToolLocation>>,
    #[serde(default)]
    pub(in super::super) raw_input: Option<Value>,
    #[serde(default)]
    pub(in super::super) raw_output: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum ToolStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in super::super) enum ToolContent {
    Content {
        content: Value,
    },
    Diff {
        path: String,
    },
    Terminal {
        #[serde(rename = "terminalId")]
        terminal_id: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct ToolLocation {
    pub(in super::super) path: String,
}

/// The agent's to-do list.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct PlanUpdate {
    pub(in super::super) entries: Vec<PlanEntry>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct PlanEntry {
    pub(in super::super) content: String,
    #[serde(default)]
    pub(in super::super) status: ToolStatus,
}

/// `session/request_permission`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct RequestPermission {
    pub(in super::super) tool_call: ToolUpdate,
    pub(in super::super) options: Vec<PermissionChoice>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct PermissionChoice {
    pub(in super::super) option_id: String,
    pub(in super::super) name: String,
    pub(in super::super) kind: PermissionKind,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    #[serde(other)]
    Other,
}

/// `fs/read_text_file`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct ReadTextFile {
    pub(in super::super) path: String,
    /// The first line, from 1.
    #[serde(default)]
    pub(in super::super) line: Option<usize>,
    #[serde(default)]
    pub(in super::super) limit: Option<usize>,
}

/// `fs/write_text_file`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct WriteTextFile {
    pub(in super::super) path: String,
    pub(in super::super) content: String,
}

/// `terminal/create`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct CreateTerminal {
    pub(in super::super) command: String,
    #[serde(default)]
    pub(in super::super) args: Vec<String>,
    #[serde(default)]
    pub(in super::super) env: Vec<EnvVariable>,
    #[serde(default)]
    pub(in super::super) cwd: Option<String>,
    #[serde(default)]
    pub(in super::super) output_byte_limit: Option<usize>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(in super::super) struct EnvVariable {
    pub(in super::super) name: String,
    pub(in super::super) value: String,
}

/// Any other request about a terminal.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct NamedTerminal {
    pub(in super::super) terminal_id: String,
}

/// A content block as text.
pub(in super::super) fn text_of(block: &Value) -> String {
    let member = |name: &str| block.get(name).and_then(Value::as_str);
    match member("type") {
        Some("text") => member("text").unwrap_or_default().to_owned(),
        Some("resource_link") => {
            let uri = member("uri").unwrap_or_default();
            format!("[{}]({uri})", member("name").unwrap_or(uri))
        }
        Some("resource") => {
            let text = block.pointer("/resource/text").and_then(Value::as_str);
            text.unwrap_or("[a resource that is no text]").to_owned()
        }
        Some(kind) => format!("[{kind}]"),
        None => String::new(),
    }
}
