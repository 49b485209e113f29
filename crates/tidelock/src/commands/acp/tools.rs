//! How a tool call looks in an editor.

use std::path::{Path, PathBuf};

use protocol::ToolState;
use serde_json::{Value, json};

/// How much of a tool's output is shown, counted from its end. Each update repeats all that is shown, so more would
/// be sent again and again. The page and `tidelock session attach` have the rest.
const OUTPUT_SHOWN_BYTES: usize = 16 << 10;

/// A tool call, as far as it has been reported.
#[derive(Debug)]
pub(super) struct ToolCall {
    id: String,
    tool: String,
    title: String,
    arguments: Value,
    output: String,
    is_cut: bool,
    heard: usize,
    state: CallState,
    news: News,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Called,
    Started,
    Ended(ToolState),
}

/// What the editor doesn't know yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Call,
    Change,
    Nothing,
}

impl ToolCall {
    pub(super) fn new(id: String, tool: &str) -> ToolCall {
        ToolCall {
            id,
            tool: tool.to_owned(),
            title: String::new(),
            arguments: Value::Null,
            output: String::new(),
            is_cut: false,
            heard: 0,
            state: CallState::Called,
            news: News::Call,
        }
    }

    pub(super) fn start(&mut self, title: &str, arguments: &Value) {
        if self.state == CallState::Called {
            title.clone_into(&mut self.title);
            self.arguments = arguments.clone();
            self.state = CallState::Started;
            self.changed();
        }
    }

    pub(super) fn output(&mut self, delta: &str) {
        self.heard += delta.chars().count();
        self.output.push_str(delta);
        if self.output.len() > OUTPUT_SHOWN_BYTES {
            let cut = self.output.len() - OUTPUT_SHOWN_BYTES;
            self.output.drain(..self.output.ceil_char_boundary(cut));
            self.is_cut = true;
        }
        self.changed();
    }

    /// Takes the whole output so far, and adds the part that is new.
    pub(super) fn output_so_far(&mut self, whole: &str) {
        let rest: String = whole.chars().skip(self.heard).collect();
        if !rest.is_empty() {
            self.output(&rest);
        }
    }

    pub(super) fn end(&mut self, state: ToolState, answer: &str) {
        if matches!(self.state, CallState::Ended(_)) {
            return;
        }
        self.state = CallState::Ended(state);
        if self.output.is_empty() {
            // The agent's result, if the tool itself wrote nothing.
            self.output(answer);
        }
        self.changed();
    }

    fn changed(&mut self) {
        if self.news == News::Nothing {
            self.news = News::Change;
        }
    }

    /// The next update for the editor, if any.
    pub(super) fn news(&mut self, root: &Path) -> Option<Value> {
        let name = match std::mem::replace(&mut self.news, News::Nothing) {
            News::Nothing => return None,
            News::Call => "tool_call",
            News::Change => "tool_call_update",
        };
        let mut update = json!({
            "sessionUpdate": name,
            "toolCallId": self.id,
            "title": self.shown_title(),
            "kind": kind(&self.tool),
            "status": self.status(),
        });
        if !self.arguments.is_null() {
            update["rawInput"] = self.arguments.clone();
        }
        let locations = locations(&self.arguments, root);
        if !locations.is_empty() {
            update["locations"] = json!(locations);
        }
        let content = self.content(root);
        if !content.is_empty() {
            update["content"] = json!(content);
        }
        Some(update)
    }

    fn shown_title(&self) -> &str {
        if self.title.is_empty() {
            &self.tool
        } else {
            &self.title
        }
    }

    fn status(&self) -> &'static str {
        match self.state {
            CallState::Called => "pending",
            CallState::Started => "in_progress",
            CallState::Ended(ToolState::Done) => "completed",
            CallState::Ended(ToolState::Failed | ToolState::Denied | ToolState::Cancelled) => "failed",
        }
    }

    fn content(&self, root: &Path) -> Vec<Value> {
        let mut content = Vec::new();
        content.extend(edit(&self.tool, &self.arguments, root));
        let mut text = String::new();
        match self.state {
            CallState::Ended(ToolState::Denied) => text.push_str("It was not allowed.\n"),
            CallState::Ended(ToolState::Cancelled) => text.push_str("It was stopped.\n"),
            _ => {}
        }
        if self.is_cut {
            text.push_str("(only the end is shown)\n");
        }
        text.push_str(&self.output);
        if !text.trim().is_empty() {
            content.push(text_content(&text));
        }
        content
    }

    /// The call, for a question about it. A call that has not begun has no title yet.
    pub(super) fn in_question(&self, subject: &str) -> Value {
        let title = if self.title.is_empty() {
            title_of(&self.tool, subject)
        } else {
            self.title.clone()
        };
        json!({ "toolCallId": self.id, "title": title, "kind": kind(&self.tool) })
    }
}

pub(super) fn title_of(tool: &str, subject: &str) -> String {
    match tool {
        "ask" | "" => subject.to_owned(),
        tool => format!("{tool}: {subject}"),
    }
}

pub(super) fn text_content(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// The kind of a tool, in terms of the protocol.
pub(super) fn kind(tool: &str) -> &'static str {
    match tool {
        "read" | "list" | "diff" => "read",
        "edit" | "write" => "edit",
        "delete" => "delete",
        "move" => "move",
        "search" | "context" | "lsp" => "search",
        "shell" => "execute",
        "think" => "think",
        "fetch" => "fetch",
        _ => "other",
    }
}

fn edit(tool: &str, arguments: &Value, root: &Path) -> Option<Value> {
    if tool != "edit" {
        return None;
    }
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (path, find, replace) = (text("path")?, text("find")?, text("replace")?);
    let path = root.join(path);
    Some(json!({ "type": "diff", "path": path.to_str()?, "oldText": find, "newText": replace }))
}

/// The files that a call is about, taken from its arguments.
fn locations(arguments: &Value, root: &Path) -> Vec<Value> {
    let line = arguments.get("line").and_then(Value::as_u64);
    let line = line.and_then(|line| u32::try_from(line).ok());
    let mut found = Vec::new();
    for name in ["path", "file_path", "filePath", "from", "to"] {
        let Some(path) = arguments.get(name).and_then(Value::as_str) else {
            continue;
        };
        let path: PathBuf = root.join(path);
        let Some(path) = path.to_str() else { continue };
        found.push(match line {
            Some(line) => json!({ "path": path, "line": line }),
            None => json!({ "path": path }),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new("/w")
    }

    #[test]
    fn a_call_is_told_once_and_then_what_is_new() {
        let mut call = ToolCall::new("t-0".to_owned(), "edit");
        let arguments = json!({ "path": "a.rs", "find": "x", "replace": "y" });
        let told = |name: &str, title: &str, status: &str| {
            json!({
                "sessionUpdate": name, "toolCallId": "t-0", "title": title, "kind": "edit", "status": status,
            })
        };
        assert_eq!(call.news(root()), Some(told("tool_call", "edit", "pending")));
        assert_eq!(call.news(root()), None);
        call.start("edit a.rs", &arguments);
        let mut expected = told("tool_call_update", "edit a.rs", "in_progress");
        expected["rawInput"] = arguments;
        expected["locations"] = json!([{ "path": "/w/a.rs" }]);
        let diff = json!({ "type": "diff", "path": "/w/a.rs", "oldText": "x", "newText": "y" });
        expected["content"] = json!([diff]);
        assert_eq!(call.news(root()), Some(expected.clone()));
        call.end(ToolState::Denied, "no");
        call.end(ToolState::Done, "too late");
        expected["status"] = json!("failed");
        expected["content"] = json!([diff, text_content("It was not allowed.\nno")]);
        assert_eq!(call.news(root()), Some(expected));
        assert_eq!(call.news(root()), None);
    }

    #[test]
    fn a_snapshot_adds_what_was_not_heard_and_only_the_end_is_shown() {
        let mut call = ToolCall::new("t-0".to_owned(), "shell");
        call.output("grüß");
        call.output_so_far("grüß Gott");
        assert_eq!(call.output, "grüß Gott");
        call.output(&"ü".repeat(OUTPUT_SHOWN_BYTES));
        assert!(call.output.len() <= OUTPUT_SHOWN_BYTES && call.output.ends_with('ü'));
        let news = call.news(root()).unwrap();
        let text = news["content"][0]["content"]["text"].as_str().unwrap();
        assert!(text.starts_with("(only the end is shown)\nü"), "{text}");
    }

    #[test]
    fn files_are_found_in_the_arguments_of_any_agent() {
        for (arguments, expected) in [
            (json!({}), json!([])),
            (
                json!({ "path": "a", "line": 3 }),
                json!([{ "path": "/w/a", "line": 3 }]),
            ),
            (json!({ "filePath": "/x/b" }), json!([{ "path": "/x/b" }])),
            (
                json!({ "from": "a", "to": "b" }),
                json!([{ "path": "/w/a" }, { "path": "/w/b" }]),
            ),
            (json!({ "path": 7 }), json!([])),
            (Value::Null, json!([])),
        ] {
            assert_eq!(json!(locations(&arguments, root())), expected, "{arguments}");
        }
    }
}
