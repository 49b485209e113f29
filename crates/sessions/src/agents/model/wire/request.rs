//! The request sent to a model.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::tools::ToolSpec;

/// What an image costs in context, expressed as bytes of text.
const IMAGE_BYTES: usize = 6 * 1024;
/// What a message or a call costs on top of its text.
const MESSAGE_BYTES: usize = 48;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) enum Message {
    System(String),
    User(Vec<Part>),
    Assistant { text: String, calls: Vec<Call> },
    Tool { call: String, text: String },
}

/// A part of the user's message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) enum Part {
    Text(String),
    /// As a data URL.
    Image(String),
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) struct Call {
    pub(in super::super) id: String,
    pub(in super::super) tool: String,
    /// JSON, as the model wrote it.
    pub(in super::super) arguments: String,
}

pub(in super::super) fn body(model: &str, messages: &[&Message], tools: &[ToolSpec]) -> Bytes {
    let mut body = json!({
        "model": model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect();
    }
    Bytes::from(body.to_string())
}

/// How much context a message takes up, in bytes of text. An image costs about the same however large its file is.
pub(in super::super) fn size_of(message: &Message) -> usize {
    let parts = match message {
        Message::System(text) | Message::Tool { text, .. } => text.len(),
        Message::User(parts) => parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.len(),
                Part::Image(_) => IMAGE_BYTES,
            })
            .sum(),
        Message::Assistant { text, calls } => {
            let calls = calls.iter();
            text.len()
                + calls
                    .map(|call| call.arguments.len() + MESSAGE_BYTES)
                    .sum::<usize>()
        }
    };
    parts + MESSAGE_BYTES
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": spec.schema},
    })
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Self::User(parts) => {
                map.serialize_entry("role", "user")?;
                // Many servers only accept a plain string there.
                match parts.as_slice() {
                    [Part::Text(text)] => map.serialize_entry("content", text)?,
                    _ => map.serialize_entry("content", parts)?,
                }
            }
            Self::Assistant { text, calls } => {
                map.serialize_entry("role", "assistant")?;
                if text.is_empty() && !calls.is_empty() {
                    map.serialize_entry("content", &Value::Null)?;
                } else {
                    map.serialize_entry("content", text)?;
                }
                if !calls.is_empty() {
                    map.serialize_entry("tool_calls", calls)?;
                }
            }
            Self::Tool { call, text } => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", call)?;
                map.serialize_entry("content", text)?;
            }
        }
        map.end()
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image(url) => json!({"type": "image_url", "image_url": {"url": url}}),
        }
        .serialize(serializer)
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "id": self.id,
            "type": "function",
            "function": {"name": self.tool, "arguments": self.arguments},
        })
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Access;

    #[test]
    fn a_request_looks_as_servers_want_it() {
        let messages = [
            Message::System("Be good.".to_owned()),
            Message::User(vec![Part::Text("Hi".to_owned())]),
            Message::User(vec![
                Part::Text("See".to_owned()),
                Part::Image("data:x".to_owned()),
            ]),
            Message::Assistant {
                text: String::new(),
                calls: vec![Call {
                    id: "a".to_owned(),
                    tool: "read".to_owned(),
                    arguments: "{}".to_owned(),
                }],
            },
            Message::Tool {
                call: "a".to_owned(),
                text: "empty".to_owned(),
            },
            Message::Assistant {
                text: "Done".to_owned(),
                calls: Vec::new(),
            },
        ];
        let tools = [ToolSpec {
            name: "read",
            description: "Reads.",
            schema: json!({"type": "object"}),
            access: Access::Reads,
        }];
        let messages: Vec<&Message> = messages.iter().collect();
        let sent: Value = serde_json::from_slice(&body("m", &messages, &tools)).unwrap();
        let expected = json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "Be good."},
                {"role": "user", "content": "Hi"},
                {"role": "user", "content": [
                    {"type": "text", "text": "See"},
                    {"type": "image_url", "image_url": {"url": "data:x"}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "empty"},
                {"role": "assistant", "content": "Done"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "read", "description": "Reads.", "parameters": {"type": "object"},
            }}],
        });
        assert_eq!(sent, expected);
        let bare: Value = serde_json::from_slice(&body("m", &[], &[])).unwrap();
        assert_eq!(bare.get("tools"), None);
    }
}
