//! The JSON-RPC envelope.
//!
//! It is parsed once. Its content (parameters, result) stays raw text, and is parsed by code that knows its type.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// How much of a broken body an error repeats.
const EXCERPT_BYTES: usize = 80;

/// The error codes of answers.
pub mod error_code {
    /// The parameters do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver does not know the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The message isn't a request.
    pub const INVALID_REQUEST: i64 = -32600;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The server wants to be initialised first.
    pub const SERVER_NOT_INITIALIZED: i64 = -32002;
    /// The request was understood, and failed.
    pub const REQUEST_FAILED: i64 = -32803;
    /// The server gave up the request; it may be sent again.
    pub const SERVER_CANCELLED: i64 = -32802;
    /// A document changed during the request; it may be sent again.
    pub const CONTENT_MODIFIED: i64 = -32801;
    /// The client cancelled the request.
    pub const REQUEST_CANCELLED: i64 = -32800;
}

/// The id of a request, chosen by its sender.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MessageId {
    Number(i64),
    Text(String),
}

impl fmt::Display for MessageId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Text(text) => write!(formatter, "{text:?}"),
        }
    }
}

/// One message. It borrows from the body that it was read from.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: MessageId,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    /// Expects no answer.
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Response {
        /// The request; `None` if the peer couldn't read it.
        id: Option<MessageId>,
        outcome: Result<&'a RawValue, ResponseError>,
    },
}

/// The answer to a request that failed.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct ResponseError {
    /// What kind of failure it is; see [`error_code`].
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ResponseError {
    /// A failure without more data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The answer to a request with an unknown method.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(error_code::METHOD_NOT_FOUND, format!("no such method: {method}"))
    }
}

/// A body that isn't a message.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum MessageError {
    #[error("{problem}, in {excerpt:?}")]
    Json { problem: String, excerpt: String },
    #[error("the body is a batch")]
    Batch,
    #[error("the version of the protocol is {found}, not \"2.0\"")]
    WrongVersion { found: String },
    #[error("the id {found} is neither a whole number nor a string")]
    InvalidId { found: String },
    #[error("the method {found} is not a string")]
    InvalidMethod { found: String },
    #[error("the message is neither a request nor an answer")]
    Neither,
}

/// The relevant members. Absent and `null` are distinct: a result of `null` is an answer.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Message<'a> {
    /// Parses a body.
    ///
    /// A missing version is accepted: leaving it out is harmless, and ending a server for it is not.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        if body.trim_ascii_start().first() == Some(&b'[') {
            return Err(MessageError::Batch);
        }
        let envelope: Envelope<'a> = serde_json::from_slice(body).map_err(|problem| MessageError::Json {
            problem: problem.to_string(),
            excerpt: excerpt(body),
        })?;
        if let Some(version) = envelope.jsonrpc.filter(|version| version.get() != "\"2.0\"") {
            return Err(MessageError::WrongVersion {
                found: excerpt(version.get().as_bytes()),
            });
        }
        let id = envelope.id.map(id).transpose()?.flatten();
        match (envelope.method, id) {
            (Some(method), Some(id)) => Ok(Self::Request {
                id,
                method: text(method)?,
                params: envelope.params,
            }),
            (Some(method), None) => Ok(Self::Notification {
                method: text(method)?,
                params: envelope.params,
            }),
            (None, id) if envelope.id.is_some() => Ok(Self::Response {
                id,
                outcome: outcome(&envelope),
            }),
            (None, _) => Err(MessageError::Neither),
        }
    }
}

/// The id, which may be `null` in an answer to something unreadable.
fn id(raw: &RawValue) -> Result<Option<MessageId>, MessageError> {
    let found = raw.get();
    if found == "null" {
        return Ok(None);
    }
    let number = found.parse().map(MessageId::Number).ok();
    let id = number.or_else(|| serde_json::from_str(found).map(MessageId::Text).ok());
    id.map(Some).ok_or_else(|| MessageError::InvalidId {
        found: excerpt(found.as_bytes()),
    })
}

/// A string, borrowed unless it has escapes in it.
fn text(raw: &RawValue) -> Result<Cow<'_, str>, MessageError> {
    let quoted = raw.get();
    let bare = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .filter(|bare| !bare.contains('\\'));
    let text = bare
        .map(Cow::Borrowed)
        .or_else(|| serde_json::from_str(quoted).map(Cow::Owned).ok());
    text.ok_or_else(|| MessageError::InvalidMethod {
        found: excerpt(quoted.as_bytes()),
    })
}

/// An error counts unless it is `null`. An answer with neither a result nor an error fails that request, not the
/// connection.
fn outcome<'a>(envelope: &Envelope<'a>) -> Result<&'a RawValue, ResponseError> {
    let error = envelope.error.filter(|error| error.get() != "null");
    match (error, envelope.result) {
        (None, Some(result)) => Ok(result),
        (Some(error), _) => Err(serde_json::from_str(error.get()).unwrap_or_else(|_| {
            let excerpt = excerpt(error.get().as_bytes());
            ResponseError::new(
                error_code::INTERNAL_ERROR,
                format!("the server failed with {excerpt}"),
            )
        })),
        (None, None) => Err(ResponseError::new(
            error_code::INTERNAL_ERROR,
            "the answer has neither a result nor an error",
        )),
    }
}

fn excerpt(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_BYTES)]).into_owned()
}
