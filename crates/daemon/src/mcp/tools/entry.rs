//! What is known of a tool.

use std::pin::Pin;

use rmcp::model::{InputRequiredResult, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::error::ToolError;

/// What a tool comes to.
#[derive(Clone, Debug)]
pub(in crate::mcp) enum Answer {
    /// This is it.
    Reply(Reply),
    /// The client is to ask its user something first, and to call again.
    ComeBack(Box<InputRequiredResult>),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

type Given = Map<String, Value>;
/// A tool at work.
type Working<'a> = Pin<Box<dyn Future<Output = Result<Answer, ToolError>> + Send + 'a>>;

/// A tool.
#[derive(Debug)]
pub(in crate::mcp) struct Entry {
    pub(in crate::mcp) name: &'static str,
    pub(super) title: &'static str,
    /// When to use it, and one example.
    pub(super) description: &'static str,
    pub(super) schema: fn() -> Value,
    pub(super) nature: Nature,
    pub(in crate::mcp) interruption: Interruption,
    pub(in crate::mcp) run: for<'a> fn(&'a Call<'a>, Given) -> Working<'a>,
    /// Whether arguments have the right shape; for tests.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it compares schemas with what is really taken")
    )]
    pub(super) read: fn(Given) -> Result<(), ToolError>,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nature {
    /// It looks.
    Reads,
    /// It adds something, and takes nothing away.
    Adds,
    /// It changes what is there; to do it twice is to do it once.
    Replaces,
    /// It changes what is there, each time anew.
    Changes,
    /// It runs a command, which may do anything.
    Runs,
}

/// What happens to a call that nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mcp) enum Interruption {
    /// It is dropped.
    Dropped,
    /// The tool sees to it.
    Itself,
}

impl Entry {
    pub(super) fn to_wire(&self) -> Tool {
        let schema = match (self.schema)() {
            Value::Object(schema) => schema,
            // A schema is an object; the test of all tools sees to it.
            _ => Map::new(),
        };
        let (read_only, destructive, idempotent, open_world) = match self.nature {
            Nature::Reads => (true, false, true, false),
            Nature::Adds => (false, false, false, false),
            Nature::Replaces => (false, true, true, false),
            Nature::Changes => (false, true, false, false),
            Nature::Runs => (false, true, false, true),
        };
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world);
        Tool::new(self.name, self.description, schema)
            .with_title(self.title)
            .with_annotations(annotations)
    }
}

/// Reads arguments and forgets them.
pub(super) fn reads<A: DeserializeOwned>(given: Given) -> Result<(), ToolError> {
    arguments::<A>(given).map(drop)
}

/// A schema of these members; the first ones are required.
pub(super) fn object(required: &[(&str, Value)], optional: &[(&str, Value)]) -> Value {
    let members = required.iter().chain(optional);
    let properties: Given = members
        .map(|(name, schema)| ((*name).to_owned(), schema.clone()))
        .collect();
    let names: Vec<&str> = required.iter().map(|(name, _)| *name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !names.is_empty() {
        schema["required"] = json!(names);
    }
    schema
}

pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn number(minimum: u64, maximum: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": minimum, "maximum": maximum, "description": description })
}

pub(super) fn yes_or_no(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

pub(super) fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// The member that names a plan.
pub(super) fn plan_member() -> (&'static str, Value) {
    (
        "plan",
        text("Another plan's id. Left out, it is the plan that you opened."),
    )
}

/// The member that names a directory.
pub(super) fn directory_member() -> (&'static str, Value) {
    (
        "directory",
        text("Absolute path of the repository. Left out, it is the one that you work in."),
    )
}

/// The member that says how long to wait.
pub(super) fn wait_member() -> (&'static str, Value) {
    let description =
        "How long to wait for its end, 20 by default. After that it goes on, and you get its job.";
    (
        "wait_seconds",
        number(0, crate::mcp::waiting::LONGEST_WAIT_SECONDS, description),
    )
}
