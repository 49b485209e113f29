//! One event of an answer, as servers write it. Servers differ, so most fields are optional.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::fault::{Fault, Refusal};
use super::shown;

/// One event of an answer, or a whole answer from a server that doesn't stream.
#[derive(Debug, Default, Deserialize)]
pub(in super::super) struct Chunk {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    /// A whole answer has `message` where an event has `delta`.
    #[serde(default, alias = "message")]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Option<String>,
    #[serde(default)]
    pub(super) refusal: Option<String>,
    #[serde(default)]
    pub(super) reasoning_content: Option<String>,
    #[serde(default)]
    pub(super) reasoning: Option<String>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CallDelta {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "text_or_json")]
    pub(super) arguments: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) prompt_tokens: u64,
    #[serde(default)]
    pub(super) completion_tokens: u64,
}

impl Chunk {
    /// Parses one event. An event that reports an error is a fault.
    pub(in super::super) fn parse(text: &str) -> Result<Self, Fault> {
        let chunk: Self = serde_json::from_str(text).map_err(|error| {
            Fault::Garbled(format!("an event makes no sense ({error}): `{}`", shown(text)))
        })?;
        if let Some(error) = chunk.error.as_ref().filter(|error| !error.is_null()) {
            return Err(Fault::Refused(Refusal::in_stream(error)));
        }
        if chunk.choices.is_none() && chunk.usage.is_none() {
            return Err(Fault::Garbled(format!(
                "an event says nothing: `{}`",
                shown(text)
            )));
        }
        Ok(chunk)
    }
}

/// Arguments should be a string of JSON, but some servers send the JSON itself.
fn text_or_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(other) => Some(other.to_string()),
    })
}
