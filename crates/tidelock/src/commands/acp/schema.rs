//! The messages of the protocol that we know, with the fields that we read. All other fields are ignored.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::Refused;

pub(super) const PROTOCOL_VERSION: u64 = 1;

/// Parses the parameters of a request.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refused> {
    serde_json::from_value(params)
        .map_err(|error| Refused::params(format!("the parameters cannot be read: {error}")))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    #[expect(
        dead_code,
        reason = "it must be there, and whatever it is, we speak our own version"
    )]
    pub(super) protocol_version: u64,
}

/// `session/new`, and the fields that `session/load` and `session/resume` share with it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetUp {
    pub(super) cwd: PathBuf,
    #[serde(default)]
    pub(super) additional_directories: Vec<PathBuf>,
    #[serde(default)]
    pub(super) mcp_servers: Vec<McpServer>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct McpServer {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Existing {
    pub(super) session_id: String,
    #[serde(flatten)]
    pub(super) set_up: SetUp,
}

/// A request or notification that only names a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfSession {
    pub(super) session_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListSessions {
    pub(super) cwd: Option<PathBuf>,
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetConfigOption {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptRequest {
    pub(super) session_id: String,
    pub(super) prompt: Vec<ContentBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Value,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
        #[serde(default)]
        uri: Option<String>,
    },
    ResourceLink {
        name: String,
        uri: String,
    },
    Resource {
        resource: Resource,
    },
    /// Audio, or a type from a newer protocol version.
    #[serde(other)]
    Other,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    pub(super) uri: String,
    #[serde(default)]
    pub(super) mime_type: Option<String>,
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) blob: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct PermissionAnswered {
    pub(super) outcome: PermissionOutcome,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum PermissionOutcome {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: String,
    },
}
