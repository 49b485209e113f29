//! The prompt of a turn.

use eventlog::BlobId;
use protocol::Attachment;
use serde::{Deserialize, Serialize};

/// The most bytes in the text of a prompt, which is stored in the head of its turn.
pub const PROMPT_LIMIT_BYTES: usize = 256 * 1024;
/// The most attachments of a prompt.
pub const ATTACHMENT_LIMIT: usize = 32;
/// The most bytes in the script of a rehearsal.
pub const SCRIPT_LIMIT_BYTES: usize = 128 * 1024;

/// A prompt, as stored in the log.
pub type Prompt = protocol::Prompt<StoredAttachment>;

/// An attachment of a prompt, as stored in the log. Only the log can read a blob, so answers leave `content` out.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct StoredAttachment {
    /// What readers see of it.
    #[serde(flatten)]
    pub about: Attachment,
    /// Its content.
    pub content: BlobId,
}
