//! What is asked of an agent.

use eventlog::BlobId;
use serde::{Deserialize, Serialize};

/// The most bytes in the text of a prompt. It stands in the head of its turn.
pub const PROMPT_LIMIT_BYTES: usize = 256 * 1024;
/// The most attachments of a prompt.
pub const ATTACHMENT_LIMIT: usize = 32;
/// The most bytes in the script of a rehearsal.
pub const SCRIPT_LIMIT_BYTES: usize = 128 * 1024;

/// What is asked.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// In words.
    pub text: String,
    /// With it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// Something that comes with a prompt.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// What it is called.
    pub name: String,
    /// What it is, for example `text/plain`.
    pub media_type: String,
    /// How large it is.
    pub size_bytes: u64,
    /// Its content.
    #[serde(with = "crate::streams::as_text")]
    pub content: BlobId,
}

/// Which agent is asked, and how.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct AgentChoice {
    /// The name of the agent; see [`AgentInfo`](crate::AgentInfo).
    pub name: String,
    /// The model, for an agent that has a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The script, for a rehearsal; its own one if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}
