//! Stores the attachments of a prompt in the log.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use eventlog::{BlobError, Log, LogError};
use protocol::Attachment;
use sessions::{ATTACHMENT_LIMIT, StoredAttachment};

use crate::http::Problem;
use crate::http::log_problem::refusing;
use crate::jobs::wire::invalid;

/// The default media type of text.
const TEXT: &str = "text/plain";
/// The default media type of anything else.
const BYTES: &str = "application/octet-stream";
/// The longest name of an attachment, and of its media type. Both are stored in the head of a turn.
const NAME_LIMIT_BYTES: usize = 255;

/// Stores the attachments of a prompt in the log. If the prompt isn't accepted then, they are garbage-collected later.
///
/// *Cancel safety*: if dropped, some may be stored, and are collected later.
pub(crate) async fn attachments_of(
    log: &Log,
    new: Vec<protocol::NewAttachment>,
) -> Result<Vec<StoredAttachment>, Problem> {
    if new.len() > ATTACHMENT_LIMIT {
        let why = format!("has more than {ATTACHMENT_LIMIT} entries");
        return Err(invalid("attachments", &why));
    }
    let mut read = Vec::with_capacity(new.len());
    // Decode all of them before storing the first one.
    for (index, attachment) in new.into_iter().enumerate() {
        read.push(read_one(index, attachment)?);
    }
    let mut kept = Vec::with_capacity(read.len());
    for (about, bytes) in read {
        let (content, _) = log.put_blob(bytes.as_slice()).await.map_err(not_kept)?;
        kept.push(StoredAttachment { about, content });
    }
    Ok(kept)
}

fn read_one(index: usize, new: protocol::NewAttachment) -> Result<(Attachment, Vec<u8>), Problem> {
    let field = |name: &str| format!("attachments.{index}.{name}");
    let (usual, content) = match (new.text, new.base64) {
        (Some(_), Some(_)) => {
            return Err(invalid(&field("text"), "cannot be given together with `base64`"));
        }
        (None, None) => return Err(invalid(&field("text"), "is missing, and so is `base64`")),
        (Some(text), None) => (TEXT, text.into_bytes()),
        (None, Some(encoded)) => {
            let content = STANDARD.decode(encoded);
            let content = content.map_err(|_| invalid(&field("base64"), "is not Base64"))?;
            (BYTES, content)
        }
    };
    let media_type = new.media_type.unwrap_or_else(|| usual.to_owned());
    let about = Attachment {
        name: checked(&field("name"), new.name)?,
        media_type: checked(&field("media_type"), media_type)?,
        size_bytes: content.len() as u64,
    };
    Ok((about, content))
}

fn checked(field: &str, text: String) -> Result<String, Problem> {
    if text.is_empty() || text.len() > NAME_LIMIT_BYTES {
        let why = format!("must have 1 to {NAME_LIMIT_BYTES} bytes");
        return Err(invalid(field, &why));
    }
    match text.chars().any(char::is_control) {
        true => Err(invalid(field, "has control characters in it")),
        false => Ok(text),
    }
}

fn not_kept(error: BlobError) -> Problem {
    match error {
        BlobError::Log(LogError::Closed) => Problem::new(
            protocol::ErrorCode::ShuttingDown,
            "The daemon takes no more prompts.",
        ),
        BlobError::Log(reason) => refusing(&reason),
        error => Problem::internal(error),
    }
}
