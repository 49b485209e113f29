//! What is asked of an agent.

use eventlog::BlobId;
use protocol::Attachment;
use serde::{Deserialize, Serialize};

/// The most bytes in the text of a prompt. It stands in the head of its turn.
pub const PROMPT_LIMIT_BYTES: usize = 256 * 1024;
/// The most attachments of a prompt.
pub const ATTACHMENT_LIMIT: usize = 32;
/// The most bytes in the script of a rehearsal.
pub const SCRIPT_LIMIT_BYTES: usize = 128 * 1024;

/// What is asked, as the log has it.
pub type Prompt = protocol::Prompt<StoredAttachment>;

/// Something that came with a prompt, as the log has it. Only the log can read a blob, so answers leave `content` out.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct StoredAttachment {
    /// What readers are told of it.
    #[serde(flatten)]
    pub about: Attachment,
    /// Its content.
    pub content: BlobId,
}
