//! The steps that are tool calls, as a model would make them.

use serde_json::{Value, json};

use super::script::{Action, FilePosition};
use crate::tools::ToolCall;

/// The tool call for a step, with its texts filled in by `fill`; `None` if the step isn't a call.
pub(super) fn call_of<E>(
    action: &Action,
    mut fill: impl FnMut(&str) -> Result<String, E>,
) -> Result<Option<ToolCall>, E> {
    Ok(Some(match action {
        Action::Read { path } => call("read", json!({ "path": path })),
        Action::Write { path, text } => call("write", json!({ "path": path, "text": fill(text)? })),
        Action::Edit { path, find, replace } => call(
            "edit",
            json!({ "path": path, "find": fill(find)?, "replace": fill(replace)? }),
        ),
        Action::Shell { line } => call("shell", json!({ "line": line })),
        Action::Lsp { verb, at } => call("language", question(verb, at)),
        Action::Say(_) | Action::Think(_) | Action::Sleep(_) | Action::Ask(_) | Action::Fail(_) => {
            return Ok(None);
        }
    }))
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall {
        tool: tool.to_owned(),
        arguments,
    }
}

fn question(verb: &str, at: &FilePosition) -> Value {
    let mut question = json!({ "verb": verb, "path": at.path });
    for (name, number) in [("line", at.line), ("column", at.column)] {
        if let Some(number) = number {
            question[name] = number.into();
        }
    }
    question
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::{Value, json};

    use super::call_of;
    use crate::agents::rehearsal::script::{Script, Step};

    /// The calls of a script, where filling in turns texts into capitals.
    fn calls(script: &str) -> Vec<Option<(String, Value)>> {
        let script = Script::parse(script).unwrap();
        let call = |step: &Step| match step {
            Step::Act(action) => call_of(action, |text| Ok::<_, Infallible>(text.to_uppercase())).unwrap(),
            other => panic!("{other:?}"),
        };
        let calls = script.steps.iter().map(call);
        calls
            .map(|call| call.map(|call| (call.tool, call.arguments)))
            .collect()
    }

    #[test]
    fn steps_become_the_calls_that_a_model_would_make_and_only_texts_are_filled_in() {
        let script = "steps:
          - say: a
          - read: a/b
          - write: {path: p, text: t}
          - edit: {path: p, find: f, replace: r}
          - shell: echo a
          - lsp: {verb: hover, at: 'src/a.rs:3:7'}
          - lsp: {verb: symbols, at: src/a.rs}
          - sleep: 1s";
        let call = |tool: &str, arguments| Some((tool.to_owned(), arguments));
        assert_eq!(
            calls(script),
            [
                None,
                call("read", json!({ "path": "a/b" })),
                call("write", json!({ "path": "p", "text": "T" })),
                call("edit", json!({ "path": "p", "find": "F", "replace": "R" })),
                call("shell", json!({ "line": "echo a" })),
                call(
                    "language",
                    json!({ "verb": "hover", "path": "src/a.rs", "line": 3, "column": 7 })
                ),
                call("language", json!({ "verb": "symbols", "path": "src/a.rs" })),
                None,
            ]
        );
    }
}
