//! JSON-RPC messages.

use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::Refused;

/// The editor's id for its request. We send it back unchanged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RequestId(pub(super) Value);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// The response to a request of ours; `None` if the editor failed.
    Answer {
        id: Option<u64>,
        result: Option<Value>,
    },
}

#[derive(Deserialize)]
struct Raw {
    // `null` is a valid id too, if a poor one.
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Message {
    /// Parses a line.
    ///
    /// # Errors
    /// The line is not a valid message. The sender gets this error.
    pub(super) fn parse(line: &[u8]) -> Result<Message, Refused> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| Refused::no_json(format!("this is not JSON: {error}")))?;
        if value.is_array() {
            return Err(Refused::no_request(
                "batches aren't supported; send one message per line",
            ));
        }
        let raw: Raw = serde_json::from_value(value)
            .map_err(|error| Refused::no_request(format!("this is not a JSON-RPC message: {error}")))?;
        let params = raw.params.unwrap_or(Value::Null);
        match (raw.method, raw.id) {
            (Some(method), Some(id)) if id.is_string() || id.is_number() || id.is_null() => {
                Ok(Message::Request {
                    id: RequestId(id),
                    method,
                    params,
                })
            }
            (Some(_), Some(_)) => Err(Refused::no_request("an id must be a string or a number")),
            (Some(method), None) => Ok(Message::Notification { method, params }),
            (None, Some(id)) if raw.result.is_some() || raw.error.is_some() => Ok(Message::Answer {
                id: id.as_u64(),
                result: raw.result.filter(|_| raw.error.is_none()),
            }),
            (None, _) => Err(Refused::no_request(
                "a message must have a method, a result or an error",
            )),
        }
    }
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// A response as a line. It has no id if the request's id could not be read.
pub(super) fn answer(id: Option<&RequestId>, result: Result<Value, Refused>) -> Vec<u8> {
    let id = id.map_or(&Value::Null, |id| &id.0);
    line(&match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(refused) => json!({ "jsonrpc": "2.0", "id": id, "error": refused.to_json() }),
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
    fn lines_are_taken_apart_and_rubbish_is_named() {
        let request = |id: Value| Message::Request {
            id: RequestId(id),
            method: "m".to_owned(),
            params: json!({ "a": 1 }),
        };
        let answer = |id, result| Message::Answer { id, result };
        let cases = [
            (
                r#"{"id":"x","method":"m","params":{"a":1}}"#,
                Ok(request(json!("x"))),
            ),
            (
                r#"{"id":null,"method":"m","params":{"a":1}}"#,
                Ok(request(Value::Null)),
            ),
            (
                r#"{"method":"m"}"#,
                Ok(Message::Notification {
                    method: "m".to_owned(),
                    params: Value::Null,
                }),
            ),
            (
                r#"{"id":3,"result":{"a":1}}"#,
                Ok(answer(Some(3), Some(json!({ "a": 1 })))),
            ),
            (
                r#"{"id":3,"error":{"code":-1,"message":"no"}}"#,
                Ok(answer(Some(3), None)),
            ),
            (r#"{"id":"x","result":{}}"#, Ok(answer(None, Some(json!({}))))),
            ("Listening on port 8080", Err(Refused::PARSE_ERROR)),
            ("\u{fffd}", Err(Refused::PARSE_ERROR)),
            ("{}", Err(Refused::INVALID_REQUEST)),
            ("17", Err(Refused::INVALID_REQUEST)),
            ("[]", Err(Refused::INVALID_REQUEST)),
            (r#"{"id":{},"method":"m"}"#, Err(Refused::INVALID_REQUEST)),
            (r#"{"id":1,"method":2}"#, Err(Refused::INVALID_REQUEST)),
        ];
        for (line, expected) in cases {
            let found = Message::parse(line.as_bytes()).map_err(|refused| refused.code);
            assert_eq!(found, expected, "{line}");
        }
    }
}
