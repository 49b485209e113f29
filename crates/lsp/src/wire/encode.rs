//! From messages to bytes: header and body in one buffer, so that they are written at once.
//!
//! The length comes before the body but is only known after it. So the body is written behind a gap that is large
//! enough for any header, and the header is then put right before it. The same gap holds the id of a request: a request
//! is serialised before it has one, because ids are assigned in the step that queues the message.

use bytes::Bytes;
use serde::Serialize;

use super::message::{MessageId, ResponseError};

/// Room for `Content-Length: `, the digits of any length, and two line ends.
const HEADER_ROOM: usize = 16 + 20 + 4;

/// Room for the beginning of a request, up to and including an id of any length.
const START_ROOM: usize = 23 + 20;

/// Parameters or a result that can't be written as JSON.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot be written as JSON: {problem}")]
pub struct EncodeError {
    pub problem: String,
}

impl From<serde_json::Error> for EncodeError {
    fn from(error: serde_json::Error) -> Self {
        Self {
            problem: error.to_string(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Unnumbered {
    /// A gap, and the message from the member `method` on.
    buffer: Vec<u8>,
}

impl Unnumbered {
    /// Writes method and parameters. Parameters that serialize as `null` are omitted: a method without parameters
    /// expects no member, and some servers refuse `null`.
    pub(crate) fn new<P: Serialize + ?Sized>(method: &str, params: &P) -> Result<Self, EncodeError> {
        let mut buffer = vec![0; HEADER_ROOM + START_ROOM];
        buffer.extend_from_slice(b"\"method\":");
        serde_json::to_writer(&mut buffer, method)?;
        let without = buffer.len();
        buffer.extend_from_slice(b",\"params\":");
        let start = buffer.len();
        serde_json::to_writer(&mut buffer, params)?;
        if &buffer[start..] == b"null" {
            buffer.truncate(without);
        }
        buffer.push(b'}');
        Ok(Self { buffer })
    }

    pub(crate) fn into_request(self, id: i64) -> Bytes {
        self.begun_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},"))
    }

    pub(crate) fn into_notification(self) -> Bytes {
        self.begun_with("{\"jsonrpc\":\"2.0\",")
    }

    fn begun_with(mut self, start: &str) -> Bytes {
        let body = HEADER_ROOM + START_ROOM - start.len();
        self.buffer[body..HEADER_ROOM + START_ROOM].copy_from_slice(start.as_bytes());
        with_header(self.buffer, body)
    }
}

pub fn encode_request<P: Serialize + ?Sized>(
    id: &MessageId,
    method: &str,
    params: &P,
) -> Result<Bytes, EncodeError> {
    match id {
        MessageId::Number(id) => Ok(Unnumbered::new(method, params)?.into_request(*id)),
        MessageId::Text(_) => {
            #[derive(Serialize)]
            struct Request<'a, P: ?Sized> {
                jsonrpc: &'static str,
                id: &'a MessageId,
                method: &'a str,
                params: &'a P,
            }
            encode(&Request {
                jsonrpc: "2.0",
                id,
                method,
                params,
            })
        }
    }
}

pub fn encode_notification<P: Serialize + ?Sized>(method: &str, params: &P) -> Result<Bytes, EncodeError> {
    Ok(Unnumbered::new(method, params)?.into_notification())
}

pub fn encode_response<R: Serialize + ?Sized>(
    id: &MessageId,
    outcome: Result<&R, &ResponseError>,
) -> Result<Bytes, EncodeError> {
    #[derive(Serialize)]
    struct Response<'a, R: ?Sized> {
        jsonrpc: &'static str,
        id: &'a MessageId,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a R>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a ResponseError>,
    }
    encode(&Response {
        jsonrpc: "2.0",
        id,
        result: outcome.ok(),
        error: outcome.err(),
    })
}

pub(crate) fn encode_cancel(id: i64) -> Bytes {
    let mut buffer = vec![0; HEADER_ROOM];
    let body = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{{\"id\":{id}}}}}");
    buffer.extend_from_slice(body.as_bytes());
    with_header(buffer, HEADER_ROOM)
}

fn encode<T: Serialize>(message: &T) -> Result<Bytes, EncodeError> {
    let mut buffer = vec![0; HEADER_ROOM];
    serde_json::to_writer(&mut buffer, message)?;
    Ok(with_header(buffer, HEADER_ROOM))
}

/// Puts the header right before the body, which begins at `body`.
fn with_header(mut buffer: Vec<u8>, body: usize) -> Bytes {
    let header = format!("Content-Length: {}\r\n\r\n", buffer.len() - body);
    let at = body - header.len();
    buffer[at..body].copy_from_slice(header.as_bytes());
    Bytes::from(buffer).slice(at..)
}
