//! Questions about code, one tool for each that the language servers of this machine are asked.

use protocol::{CallDirection, CodeQuery};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::entry::{
    Answer, Entry, Interruption, Nature, directory_member, object, reads, text, texts, yes_or_no,
};
use super::lsp_words as words;
use crate::mcp::call::{Call, Reply, arguments};
use crate::mcp::clients::Known;
use crate::mcp::error::ToolError;
use crate::mcp::place::{Place, directory_of};

/// A tool that asks one question.
macro_rules! question {
    ($name:literal, $title:literal, $description:literal, $schema:expr, $arguments:ty, $route:literal, $told:path) => {
        Entry {
            name: $name,
            title: $title,
            description: $description,
            schema: $schema,
            nature: Nature::Reads,
            interruption: Interruption::Dropped,
            run: |call, given| Box::pin(ask::<$arguments, _>(call, given, $route, $told)),
            read: reads::<$arguments>,
        }
    };
}

pub(super) const TOOLS: &[Entry] = &[
    question!(
        "lsp_hover",
        "What stands at a place",
        "Type, signature and documentation of what stands at a place. Example: {\"at\": \"src/main.rs:12:8\"}",
        at_schema,
        AtArguments,
        "hover",
        words::hover
    ),
    question!(
        "lsp_definition",
        "Find the definition",
        "Where the thing at a place is defined. Example: {\"at\": \"src/main.rs:12:8\"}",
        at_schema,
        AtArguments,
        "definition",
        words::locations
    ),
    question!(
        "lsp_references",
        "Find all uses",
        "Every use of the thing at a place. Use it before you change or remove something. \
         Example: {\"at\": \"src/lib.rs:9:8\"}",
        references_schema,
        ReferencesArguments,
        "references",
        words::locations
    ),
    question!(
        "lsp_diagnostics",
        "What is wrong with a file",
        "Errors and warnings of the language servers about a file as it is on disk. Example: {\"path\": \"src/main.rs\"}",
        path_schema,
        PathArguments,
        "diagnostics",
        words::diagnostics
    ),
    question!(
        "lsp_symbols",
        "What a file defines",
        "The outline of a file: what it defines, with lines. Quicker than reading it. Example: {\"path\": \"src/main.rs\"}",
        path_schema,
        PathArguments,
        "symbols",
        words::outline
    ),
    question!(
        "lsp_workspace_symbols",
        "Find a name",
        "Where things of a name, or a part of it, are defined anywhere in the project. `path` is any file of its language. \
         Example: {\"name\": \"parse_config\", \"path\": \"src/main.rs\"}",
        name_schema,
        NameArguments,
        "workspace-symbols",
        words::symbols
    ),
    question!(
        "lsp_implementation",
        "Find implementations",
        "What implements the trait, interface or method at a place. Example: {\"at\": \"src/lib.rs:3:11\"}",
        at_schema,
        AtArguments,
        "implementation",
        words::locations
    ),
    question!(
        "lsp_type_definition",
        "Find the type's definition",
        "Where the type of the thing at a place is defined. Example: {\"at\": \"src/main.rs:12:8\"}",
        at_schema,
        AtArguments,
        "type-definition",
        words::locations
    ),
    question!(
        "lsp_declaration",
        "Find the declaration",
        "Where the thing at a place is declared, such as in a header. Example: {\"at\": \"src/main.c:12:8\"}",
        at_schema,
        AtArguments,
        "declaration",
        words::locations
    ),
    question!(
        "lsp_calls",
        "Who calls it",
        "Who calls the function at a place, or with direction `outgoing`, whom it calls. \
         Example: {\"at\": \"src/lib.rs:9:8\", \"direction\": \"incoming\"}",
        calls_schema,
        CallsArguments,
        "calls",
        words::calls
    ),
    question!(
        "lsp_signature",
        "What a call takes",
        "The parameters of the call around a place. Example: {\"at\": \"src/main.rs:12:20\"}",
        at_schema,
        AtArguments,
        "signature",
        words::signatures
    ),
    question!(
        "lsp_completions",
        "What could stand at a place",
        "Names that could be written at a place: fields, methods, variables. Example: {\"at\": \"src/main.rs:12:8\"}",
        at_schema,
        AtArguments,
        "completions",
        words::completions
    ),
    question!(
        "lsp_rename",
        "What a rename would edit",
        "The edits that give the thing at a place another name everywhere, as a patch. Nothing is changed: make the edits in \
         your plan. Example: {\"at\": \"src/lib.rs:9:8\", \"new_name\": \"full_name\"}",
        rename_schema,
        RenameArguments,
        "rename",
        words::edit
    ),
    question!(
        "lsp_code_actions",
        "What could be done about a place",
        "Fixes and refactorings that the language servers offer at a place. Nothing is changed. \
         Example: {\"at\": \"src/main.rs:12:8\", \"kinds\": [\"quickfix\"]}",
        actions_schema,
        ActionsArguments,
        "code-actions",
        words::actions
    ),
    question!(
        "lsp_format",
        "What formatting would edit",
        "The edits that would format a file, as a patch. Nothing is changed. Example: {\"path\": \"src/main.rs\"}",
        path_schema,
        PathArguments,
        "format",
        words::edit
    ),
];

fn at_member() -> (&'static str, Value) {
    (
        "at",
        text("path:line:column, counted from 1; the path from the directory or absolute."),
    )
}

fn path_member() -> (&'static str, Value) {
    ("path", text("The file, from the directory or absolute."))
}

fn at_schema() -> Value {
    object(&[at_member()], &[directory_member()])
}

fn path_schema() -> Value {
    object(&[path_member()], &[directory_member()])
}

fn references_schema() -> Value {
    let without = yes_or_no("Leave the declaration itself out.");
    object(
        &[at_member()],
        &[("without_declaration", without), directory_member()],
    )
}

fn name_schema() -> Value {
    object(
        &[("name", text("The name, or a part of it.")), path_member()],
        &[directory_member()],
    )
}

fn calls_schema() -> Value {
    let direction = json!({
        "type": "string", "enum": ["incoming", "outgoing"],
        "description": "Who calls it (`incoming`, the usual), or whom it calls.",
    });
    object(&[at_member()], &[("direction", direction), directory_member()])
}

fn rename_schema() -> Value {
    object(
        &[at_member(), ("new_name", text("The new name."))],
        &[directory_member()],
    )
}

fn actions_schema() -> Value {
    let kinds = texts("Only kinds that begin so, such as `quickfix` or `refactor`.");
    object(&[at_member()], &[("kinds", kinds), directory_member()])
}

/// Arguments that become a question.
trait Question: DeserializeOwned + Send {
    /// The question with its path as it was written, and the directory that was named.
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError>;
}

/// A question about a place.
fn about(at: &str) -> Result<CodeQuery, ToolError> {
    let place = Place::read(at)?;
    Ok(CodeQuery {
        path: place.path,
        line: Some(place.line),
        column: Some(place.column),
        ..CodeQuery::default()
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AtArguments {
    at: String,
    directory: Option<String>,
}

impl Question for AtArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        Ok((about(&self.at)?, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathArguments {
    path: String,
    directory: Option<String>,
}

impl Question for PathArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            path: self.path,
            ..CodeQuery::default()
        };
        Ok((query, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferencesArguments {
    at: String,
    without_declaration: Option<bool>,
    directory: Option<String>,
}

impl Question for ReferencesArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            without_declaration: self.without_declaration,
            ..about(&self.at)?
        };
        Ok((query, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameArguments {
    name: String,
    path: String,
    directory: Option<String>,
}

impl Question for NameArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            path: self.path,
            query: Some(self.name),
            ..CodeQuery::default()
        };
        Ok((query, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsArguments {
    at: String,
    direction: Option<CallDirection>,
    directory: Option<String>,
}

impl Question for CallsArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            direction: self.direction,
            ..about(&self.at)?
        };
        Ok((query, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RenameArguments {
    at: String,
    new_name: String,
    directory: Option<String>,
}

impl Question for RenameArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            new_name: Some(self.new_name),
            ..about(&self.at)?
        };
        Ok((query, self.directory))
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionsArguments {
    at: String,
    #[serde(default)]
    kinds: Vec<String>,
    directory: Option<String>,
}

impl Question for ActionsArguments {
    fn read(self) -> Result<(CodeQuery, Option<String>), ToolError> {
        let query = CodeQuery {
            kinds: self.kinds,
            ..about(&self.at)?
        };
        Ok((query, self.directory))
    }
}

async fn ask<Q: Question, A: DeserializeOwned>(
    call: &Call<'_>,
    given: Map<String, Value>,
    route: &str,
    told: fn(&A) -> String,
) -> Result<Answer, ToolError> {
    let (mut query, directory) = arguments::<Q>(given)?.read()?;
    let path = std::path::Path::new(&query.path);
    if !path.is_absolute() {
        let directory = directory_of(call, directory.as_deref()).await?;
        query.path = directory.join(path).display().to_string();
    }
    query.environment.clone_from(&call.client.about.environment);
    let answer: A = call.post(&format!("/v1/lsp/{route}"), &query).await?;
    let mut text = told(&answer);
    if let Known::Plan(ground) = call.client.known_plan() {
        text.push_str(&format!(
            "[this is the repository on disk; changes in {} are not in it]\n",
            ground.id
        ));
    }
    Ok(Reply::text(text).into())
}
