//! The definition of a tool.

use std::pin::Pin;

use rmcp::model::{InputRequiredResult, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use sessions::tools::{Parameter, Takes, check, optional, schema};

use crate::mcp::call::{Call, Reply};
use crate::mcp::error::ToolError;
use crate::mcp::waiting::LONGEST_WAIT_SECONDS;

#[derive(Clone, Debug)]
pub(in crate::mcp) enum Answer {
    Reply(Reply),
    /// The client has to ask its user this, then call again.
    AskFirst(Box<InputRequiredResult>),
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

type Working<'a> = Pin<Box<dyn Future<Output = Result<Answer, ToolError>> + Send + 'a>>;
type Run = Box<dyn for<'a> Fn(&'a Call<'a>, Value) -> Result<Working<'a>, ToolError> + Send + Sync>;

pub(in crate::mcp) struct Entry {
    pub(in crate::mcp) name: String,
    title: String,
    /// When to use it, and one example.
    pub(super) description: String,
    pub(super) parameters: Vec<Parameter>,
    effect: Effect,
    run: Run,
    /// Whether arguments have the right shape; for tests.
    #[cfg(test)]
    pub(super) takes: fn(Value) -> bool,
}

/// How a tool affects the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads.
    Reads,
    /// It adds something, and removes nothing.
    Adds,
    /// It changes existing things, and is idempotent.
    Replaces,
    /// It changes existing things, each time it is called.
    Changes,
    /// It runs a command, which may do anything.
    Runs,
}

/// A tool with arguments of this type, which must match its parameters.
pub(super) fn tool<A: DeserializeOwned + Send + 'static>(
    name: impl Into<String>,
    title: impl Into<String>,
    description: impl Into<String>,
    parameters: Vec<Parameter>,
    effect: Effect,
    run: impl for<'a> Fn(&'a Call<'a>, A) -> Working<'a> + Send + Sync + 'static,
) -> Entry {
    Entry {
        name: name.into(),
        title: title.into(),
        description: description.into(),
        parameters,
        effect,
        run: Box::new(move |call, given| {
            // The arguments were checked against the table, so this fails only if the type doesn't match the
            // table.
            let arguments =
                serde_json::from_value(given).map_err(|error| ToolError::Arguments(error.to_string()))?;
            Ok(run(call, arguments))
        }),
        #[cfg(test)]
        takes: |given| serde_json::from_value::<A>(given).is_ok(),
    }
}

impl Entry {
    pub(in crate::mcp) async fn run(&self, call: &Call<'_>, given: Value) -> Result<Answer, ToolError> {
        let given = check(&self.name, &self.parameters, given).map_err(ToolError::of_arguments)?;
        (self.run)(call, given)?.await
    }

    pub(in crate::mcp) fn is_read_only(&self) -> bool {
        self.effect == Effect::Reads
    }

    pub(super) fn to_wire(&self) -> Tool {
        let schema = match schema(&self.parameters) {
            Value::Object(schema) => schema,
            // A schema is always an object; the test of all tools verifies it.
            _ => Map::new(),
        };
        let (read_only, destructive, idempotent, open_world) = match self.effect {
            Effect::Reads => (true, false, true, false),
            Effect::Adds => (false, false, false, false),
            Effect::Replaces => (false, true, true, false),
            Effect::Changes => (false, true, false, false),
            Effect::Runs => (false, true, false, true),
        };
        let annotations = ToolAnnotations::with_title(&self.title)
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world);
        Tool::new(self.name.clone(), self.description.clone(), schema)
            .with_title(&self.title)
            .with_annotations(annotations)
    }
}

pub(super) fn plan() -> Parameter {
    optional(
        "plan",
        Takes::Text,
        "The id of another plan. Default: the plan that you opened.",
    )
}

pub(super) fn directory() -> Parameter {
    optional(
        "directory",
        Takes::Text,
        "Absolute path of the repository. Default: the one that you work in.",
    )
}

pub(super) fn wait() -> Parameter {
    let takes = Takes::Capped {
        least: 0,
        most: LONGEST_WAIT_SECONDS,
    };
    optional(
        "wait_seconds",
        takes,
        "How long to wait for it to end. Default: 20. After that it keeps running, and you get its job.",
    )
}

pub(super) fn time_limit() -> Parameter {
    let takes = Takes::Number {
        least: 1,
        most: 24 * 60 * 60,
    };
    optional("time_limit_seconds", takes, "Stop it after so many seconds.")
}
