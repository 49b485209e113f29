//! Questions to the language servers of this machine, with one tool for each verb.

use protocol::{CallDirection, CodeQuery, CodeVerb};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sessions::tools::{Parameter, Takes, optional, required};

use super::entry::{Answer, Effect, Entry, directory, tool};
use crate::language_servers::{answer_text, ask};
use crate::mcp::call::{Call, Reply};
use crate::mcp::clients::KnownPlan;
use crate::mcp::error::ToolError;

/// The format of a position, for messages.
const SHAPE: &str = "write path:line:column, such as src/main.rs:12:8";

pub(super) fn tools() -> Vec<Entry> {
    CodeVerb::ALL.iter().copied().map(tool_of).collect()
}

fn tool_of(verb: CodeVerb) -> Entry {
    let name = verb.name().replace('-', "_");
    let (first, rest) = verb.name().split_at(1);
    let title = format!("{}{}", first.to_uppercase(), rest.replace('-', " "));
    let parameters = parameters(verb);
    let description = format!("{} Example: {}", verb.description(), example(&parameters));
    tool(
        format!("lsp_{name}"),
        title,
        description,
        parameters,
        Effect::Reads,
        move |call, arguments| Box::pin(answer(call, verb, arguments)),
    )
}

/// The parameters of a verb. A position is one argument, as compilers print it.
fn parameters(verb: CodeVerb) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    if verb.has_position() {
        let description =
            "path:line:column, counted from 1. The path is relative to the directory, or absolute.";
        parameters.push(required("at", Takes::Text, description));
    }
    for member in verb.takes() {
        parameters.push(match *member {
            "path" if !verb.has_position() => required(
                "path",
                Takes::Text,
                "The file, relative to the directory or absolute.",
            ),
            "query" => required("name", Takes::Text, "The name, or a part of it."),
            "new_name" => required("new_name", Takes::Text, "The new name."),
            "without_declaration" => optional(
                "without_declaration",
                Takes::YesOrNo,
                "Leave out the declaration itself.",
            ),
            "kinds" => optional(
                "kinds",
                Takes::Texts,
                "Only kinds that begin with one of these, such as `quickfix` or `refactor`.",
            ),
            "direction" => optional(
                "direction",
                Takes::OneOf(vec!["incoming", "outgoing"]),
                "`incoming` finds the callers (the default), `outgoing` what it calls.",
            ),
            _ => continue,
        });
    }
    parameters.push(directory());
    parameters
}

fn example(parameters: &[Parameter]) -> Value {
    let value = |name: &str| match name {
        "at" => Some("src/main.rs:12:8"),
        "path" => Some("src/main.rs"),
        "name" => Some("parse_config"),
        "new_name" => Some("full_name"),
        "direction" => Some("outgoing"),
        _ => None,
    };
    let members = parameters
        .iter()
        .filter_map(|parameter| Some((parameter.name.to_owned(), json!(value(parameter.name)?))));
    Value::Object(members.collect::<Map<String, Value>>())
}

/// The arguments of all verbs combined.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    at: Option<String>,
    path: Option<String>,
    name: Option<String>,
    new_name: Option<String>,
    without_declaration: Option<bool>,
    #[serde(default)]
    kinds: Vec<String>,
    direction: Option<CallDirection>,
    directory: Option<String>,
}

async fn answer(call: &Call<'_>, verb: CodeVerb, arguments: Arguments) -> Result<Answer, ToolError> {
    let (path, line, column) = match &arguments.at {
        Some(at) => {
            let position = Position::read(at)?;
            (position.path, Some(position.line), Some(position.column))
        }
        None => (arguments.path.unwrap_or_default(), None, None),
    };
    let path = match std::path::Path::new(&path).is_absolute() {
        true => path,
        false => {
            let directory = call.directory(arguments.directory.as_deref()).await?;
            directory.join(path).display().to_string()
        }
    };
    let query = CodeQuery {
        path,
        line,
        column,
        query: arguments.name,
        new_name: arguments.new_name,
        without_declaration: arguments.without_declaration,
        kinds: arguments.kinds,
        direction: arguments.direction,
        environment: call.client.about.environment.clone(),
        ..CodeQuery::default()
    };
    let mut text = answer_text(verb, &ask(call.app, verb, query).await?);
    if let KnownPlan::Open(plan) = call.client.known_plan() {
        text.push_str(&format!(
            "[this is the repository on disk, without the changes in {}]\n",
            plan.id
        ));
    }
    Ok(Reply::text(text).into())
}

/// A position in a file, as compilers print it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    path: String,
    line: u32,
    column: u32,
}

impl Position {
    /// Parses `path:line:column`, or `path:line` for the first column. A path may contain colons.
    fn read(text: &str) -> Result<Self, ToolError> {
        let wrong = |why: &str| ToolError::argument("at", &format!("{why}; {SHAPE}"));
        let Some((rest, last)) = text.rsplit_once(':') else {
            return Err(wrong("the line is missing"));
        };
        let (path, line, column) = match rest.rsplit_once(':') {
            Some((path, line)) if is_number(line) => (path, line, last),
            _ => (rest, last, "1"),
        };
        let number = |text: &str, what: &str| match text.parse::<u32>() {
            Ok(0) => Err(wrong(&format!("{what}s count from 1"))),
            Ok(number) if is_number(text) => Ok(number),
            _ => Err(wrong(&format!("`{text}` is not a {what} number"))),
        };
        match path {
            "" => Err(wrong("the path is missing")),
            path => Ok(Self {
                path: path.to_owned(),
                line: number(line, "line")?,
                column: number(column, "column")?,
            }),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_their_end() {
        let position = |path: &str, line, column| {
            Ok(Position {
                path: path.to_owned(),
                line,
                column,
            })
        };
        for (text, expected) in [
            ("src/main.rs:12:8", position("src/main.rs", 12, 8)),
            ("src/main.rs:12", position("src/main.rs", 12, 1)),
            ("a:3:b.rs:12:8", position("a:3:b.rs", 12, 8)),
            ("a.rs", Err("`at`: the line is missing")),
            (":3:4", Err("`at`: the path is missing")),
            ("a.rs:0:1", Err("`at`: lines count from 1")),
            ("a.rs:1:x", Err("`at`: `x` is not a column number")),
            ("a.rs:1:+2", Err("`at`: `+2` is not a column number")),
            (
                "a.rs:99999999999:1",
                Err("`at`: `99999999999` is not a line number"),
            ),
        ] {
            match (Position::read(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(beginning)) => {
                    assert!(error.to_string().starts_with(beginning), "{text}: {error}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
