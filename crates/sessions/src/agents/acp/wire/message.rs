//! JSON-RPC messages.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The agent's id for one of its requests. It's returned unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct RequestId(Value);

/// A message from an agent.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        /// Our id for the request; `None` if the request isn't ours.
        id: Option<u64>,
        result: Result<Value, RpcError>,
    },
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(in super::super) struct RpcError {
    pub(in super::super) code: i64,
    #[serde(default)]
    pub(in super::super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in super::super) data: Option<Value>,
}

impl RpcError {
    /// The user has to sign in first.
    pub(in super::super) const AUTH_REQUIRED: i64 = -32000;
    const INVALID_PARAMS: i64 = -32602;
    const NOT_FOUND: i64 = -32601;
    const FAILED: i64 = -32603;

    fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The request could not be carried out.
    pub(in super::super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Self::FAILED, message)
    }

    /// The request is malformed, or asks for something unavailable.
    pub(in super::super) fn refused(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub(in super::super) fn no_method(method: &str) -> Self {
        Self::new(Self::NOT_FOUND, format!("there is no method `{method}`"))
    }

    /// The whole error in one line: many agents put the actual problem only in the data.
    pub(in super::super) fn in_words(&self) -> String {
        match &self.data {
            None | Some(Value::Null) => self.message.clone(),
            Some(Value::String(data)) => format!("{}: {data}", self.message),
            Some(data) => match data.get("details").and_then(Value::as_str) {
                Some(details) => format!("{}: {details}", self.message),
                None => format!("{}: {data}", self.message),
            },
        }
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcError>,
}

impl Message {
    /// Parses a line; `None` if it isn't a message.
    pub(in super::super) fn parse(line: &[u8]) -> Option<Self> {
        let raw: Raw = serde_json::from_slice(line).ok()?;
        let params = raw.params.unwrap_or(Value::Null);
        match (raw.method, raw.id) {
            (Some(method), Some(id)) => Some(Self::Request {
                id: RequestId(id),
                method,
                params,
            }),
            (Some(method), None) => Some(Self::Notification { method, params }),
            (None, id) if id.is_some() || raw.result.is_some() || raw.error.is_some() => {
                Some(Self::Response {
                    id: id.and_then(|id| id.as_u64()),
                    result: match raw.error {
                        Some(error) => Err(error),
                        None => Ok(raw.result.unwrap_or(Value::Null)),
                    },
                })
            }
            (None, _) => None,
        }
    }
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

pub(super) fn answer(id: &RequestId, result: Result<Value, RpcError>) -> Vec<u8> {
    line(&match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id.0, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id.0, "error": error }),
    })
}

fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let check = |line: &str, expected: Option<Message>| {
            assert_eq!(Message::parse(line.as_bytes()), expected, "{line}");
        };
        let response = |id, result| Some(Message::Response { id, result });
        check("Listening on port 8080", None);
        check("{}", None);
        check("[]", None);
        check("17", None);
        check(
            r#"{"jsonrpc":"2.0","id":"a-1","method":"fs/read_text_file","params":{"path":"/x"}}"#,
            Some(Message::Request {
                id: RequestId(json!("a-1")),
                method: "fs/read_text_file".to_owned(),
                params: json!({ "path": "/x" }),
            }),
        );
        check(
            r#"{"jsonrpc":"2.0","method":"session/update"}"#,
            Some(Message::Notification {
                method: "session/update".to_owned(),
                params: Value::Null,
            }),
        );
        check(r#"{"id":3,"result":null}"#, response(Some(3), Ok(Value::Null)));
        check(
            r#"{"id":3,"result":{"a":1}}"#,
            response(Some(3), Ok(json!({ "a": 1 }))),
        );
        check(
            r#"{"id":null,"error":{"code":-32700,"message":"what?"}}"#,
            response(None, Err(RpcError::new(-32700, "what?"))),
        );
    }

    #[test]
    fn an_error_says_all_that_it_knows() {
        let check = |data: Option<Value>, expected: &str| {
            let error = RpcError {
                data,
                ..RpcError::failed("internal error")
            };
            assert_eq!(error.in_words(), expected);
        };
        check(None, "internal error");
        check(Some(json!("no key")), "internal error: no key");
        check(Some(json!({ "details": "no key" })), "internal error: no key");
        check(Some(json!({ "why": 1 })), r#"internal error: {"why":1}"#);
    }
}
