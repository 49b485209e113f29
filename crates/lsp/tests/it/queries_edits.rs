//! Edits: what would be done, how people see it, and what is refused.

use lsp::{
    ActionEffect, CodeAction, Edit, EditError, Indentation, Query, QueryError, QueryLimits, QueryResult,
    Refusal,
};
use serde_json::{Value, json};

use crate::queries::{Ground, main_path, name, wire_range};

const URI: &str = "file:///project/main.rs";

fn rename() -> Query {
    Query::Rename {
        at: name(),
        new_name: "n".into(),
    }
}

fn edit_of(result: QueryResult) -> Edit {
    match result {
        QueryResult::Edit(edit) => edit,
        other => panic!("{other:?}"),
    }
}

fn edit(line: u32, start: u32, end: u32, new_text: &str) -> Value {
    json!({ "range": wire_range(line, start, end), "newText": new_text })
}

const RENAMED: &str = "\
--- a/main.rs
+++ b/main.rs
@@ -1,2 +1,2 @@
-// 😀 name
+// 😀 n
 fn main() {}
";

#[test]
fn both_forms_of_an_edit_are_read() {
    let ground = Ground::new();
    let edits = json!([edit(0, 6, 10, "n")]);
    let document =
        |version: Value| json!({ "textDocument": { "uri": URI, "version": version }, "edits": edits });
    let cases = [
        json!({ "changes": { URI: edits } }),
        json!({ "documentChanges": [document(json!(7))] }),
        json!({ "documentChanges": [document(json!(null))] }),
        json!({ "documentChanges": [document(json!(7))], "changes": { URI: [edit(0, 0, 9, "not this")] } }),
    ];
    for reply in cases {
        let edit = edit_of(ground.ask(rename(), reply.clone()).unwrap());
        let position = |column| json!({ "line": 1, "column": column });
        let range = json!({ "start": position(6), "end": position(10) });
        let expected = json!({
            "files": [{
                "change": "edit", "path": "main.rs", "edits": [{ "range": range, "new_text": "n" }],
            }],
            "diff": RENAMED,
        });
        assert_eq!(serde_json::to_value(&edit).unwrap(), expected, "{reply}");
    }
    for nothing in [
        json!(null),
        json!({}),
        json!({ "changes": {} }),
        json!({ "changes": { URI: [] } }),
    ] {
        let edit = edit_of(ground.ask(rename(), nothing.clone()).unwrap());
        assert_eq!(edit, Edit::default(), "{nothing}");
    }
}

#[test]
fn files_are_made_renamed_and_removed_in_order() {
    let ground = Ground::new()
        .file("/project/old.rs", "one\n")
        .file("/project/gone.rs", "gone\n")
        .file("/project/there.rs", "there\n");
    let uri = |name: &str| format!("file:///project/{name}");
    let reply = json!({ "documentChanges": [
        { "kind": "create", "uri": uri("new.rs") },
        { "textDocument": { "uri": uri("new.rs"), "version": null }, "edits": [edit(0, 0, 0, "new\n")] },
        { "kind": "rename", "oldUri": uri("old.rs"), "newUri": uri("moved.rs"), "options": { "overwrite": true } },
        { "textDocument": { "uri": uri("moved.rs"), "version": null }, "edits": [edit(0, 0, 3, "two")] },
        { "kind": "delete", "uri": uri("gone.rs"), "options": { "ignoreIfNotExists": true } },
        { "kind": "rename", "oldUri": uri("directory"), "newUri": uri("folder") },
        { "kind": "delete", "uri": uri("empty"), "options": { "recursive": true } },
        { "kind": "create", "uri": uri("there.rs"), "options": { "ignoreIfExists": true } },
        { "kind": "create", "uri": uri("blank.rs") },
    ] });
    let edit = edit_of(ground.ask(rename(), reply).unwrap());
    let shown: Vec<Value> = edit
        .files
        .iter()
        .map(|change| serde_json::to_value(change).unwrap())
        .collect();
    let kinds: Vec<&str> = shown
        .iter()
        .map(|change| change["change"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "create", "edit", "rename", "edit", "delete", "rename", "delete", "create", "create"
        ]
    );
    assert_eq!(shown[2]["new_path"], "moved.rs");
    assert_eq!(
        edit.diff,
        "\
create blank.rs
delete empty
rename from directory
rename to folder
--- a/gone.rs
+++ /dev/null
@@ -1 +0,0 @@
-gone
rename from old.rs
rename to moved.rs
--- a/old.rs
+++ b/moved.rs
@@ -1 +1 @@
-one
+two
--- /dev/null
+++ b/new.rs
@@ -0,0 +1 @@
+new
"
    );
}

#[test]
fn a_rename_over_another_file_shows_that_it_is_lost() {
    let ground = Ground::new().file("/project/a", "a\n").file("/project/b", "b\n");
    let reply = json!({ "documentChanges": [
        { "kind": "rename", "oldUri": "file:///project/a", "newUri": "file:///project/b",
          "options": { "overwrite": true } },
    ] });
    let edit = edit_of(ground.ask(rename(), reply).unwrap());
    assert_eq!(
        edit.diff,
        "rename from a\nrename to b\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n"
    );
}

#[test]
fn edits_that_cannot_be_made_are_refused_as_a_whole() {
    let mut ground = Ground::new();
    ground.limits = QueryLimits {
        edits: 2,
        ..QueryLimits::default()
    };
    let server = || "test-server".to_owned();
    let range = |value| serde_json::from_value(value).unwrap();
    let cases = [
        (
            json!({ "changes": { URI: [edit(0, 0, 5, ""), edit(0, 3, 9, "")] } }),
            QueryError::BadEdit {
                server: server(),
                place: "main.rs".into(),
                problem: EditError::Overlap {
                    first: range(wire_range(0, 0, 5)),
                    second: range(wire_range(0, 3, 9)),
                },
            },
        ),
        (
            json!({ "changes": { "file:///project/nowhere.rs": [edit(0, 0, 0, "x")] } }),
            QueryError::Unreadable {
                server: server(),
                place: "nowhere.rs".into(),
            },
        ),
        (
            json!({ "changes": { "untitled:1": [edit(0, 0, 0, "x")] } }),
            QueryError::Unreadable {
                server: server(),
                place: "untitled:1".into(),
            },
        ),
        (
            json!({ "changes": { URI: [edit(0, 0, 0, "x"), edit(0, 0, 0, "y"), edit(0, 0, 0, "z")] } }),
            QueryError::TooManyEdits {
                server: server(),
                edits: 3,
                limit: 2,
            },
        ),
        (
            json!({ "documentChanges": [
                { "kind": "delete", "uri": URI },
                { "textDocument": { "uri": URI, "version": null }, "edits": [edit(0, 0, 0, "x")] },
            ] }),
            QueryError::Unreadable {
                server: server(),
                place: "main.rs".into(),
            },
        ),
        (
            json!({ "documentChanges": [
                { "kind": "rename", "oldUri": URI, "newUri": "file:///project/moved.rs" },
                { "textDocument": { "uri": URI, "version": null }, "edits": [edit(0, 0, 0, "x")] },
            ] }),
            QueryError::Unreadable {
                server: server(),
                place: "main.rs".into(),
            },
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(ground.ask(rename(), reply.clone()), Err(expected), "{reply}");
    }
}

#[test]
fn a_formatted_document_is_an_edit_of_it() {
    let ground = Ground::new();
    let query = || Query::Format {
        path: main_path(),
        range: None,
        indentation: Indentation::Spaces(4),
    };
    let formatted = edit_of(ground.ask(query(), json!([edit(0, 6, 10, "n")])).unwrap());
    assert_eq!(formatted.diff, RENAMED);
    assert_eq!(formatted.files.len(), 1);
}

#[test]
fn a_long_difference_is_cut_and_the_edit_is_not() {
    let mut ground = Ground::new();
    ground.limits.diff_bytes = 20;
    let edit = edit_of(
        ground
            .ask(rename(), json!({ "changes": { URI: [edit(0, 6, 10, "n")] } }))
            .unwrap(),
    );
    assert_eq!(edit.diff, "--- a/main.rs\n+++ b/…");
    assert_eq!(edit.files.len(), 1);
}

fn actions(kinds: &[&str]) -> Query {
    let at = |line, column| protocol::Position { line, column };
    Query::CodeActions {
        path: main_path(),
        range: protocol::Range {
            start: at(1, 6),
            end: at(1, 10),
        },
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
    }
}

fn effects(result: QueryResult) -> Vec<(String, String)> {
    let QueryResult::CodeActions(list) = result else {
        panic!("{result:?}");
    };
    let effect = |action: CodeAction| match action.effect {
        ActionEffect::Edit { edit } => (action.title, edit.diff),
        ActionEffect::Command { command } => (action.title, format!("command {command}")),
        ActionEffect::Unknown { reason } => (action.title, format!("unknown: {reason}")),
    };
    list.items.into_iter().map(effect).collect()
}

#[test]
fn code_actions_of_every_form() {
    let mut ground = Ground::with(json!({ "diagnosticProvider": null }));
    let near = json!({ "range": wire_range(0, 8, 9), "message": "near" });
    let far = json!({ "range": wire_range(1, 0, 1), "message": "far" });
    let before = json!({ "range": wire_range(0, 0, 2), "message": "before" });
    ground.diagnostics = vec![before, near.clone(), far];
    let workspace_edit = json!({ "changes": { URI: [edit(0, 6, 10, "n")] } });
    let reply = json!([
        { "title": "bare", "command": "do.it", "arguments": [1] },
        { "title": "edit", "kind": "quickfix", "isPreferred": true, "edit": workspace_edit },
        { "title": "both", "edit": workspace_edit, "command": { "title": "t", "command": "then.this" } },
        { "title": "command", "command": { "title": "t", "command": "then.this" } },
        { "title": "no", "disabled": { "reason": "not here" } },
        { "title": "lazy", "data": 1 },
        { "title": "lost", "edit": { "changes": { "untitled:1": [edit(0, 0, 0, "x")] } } },
    ]);
    let (asked, answer) = ground.talk(actions(&["quickfix"]), vec![vec![Ok(reply)]]);
    assert_eq!(
        asked[0].1["context"],
        json!({ "diagnostics": [near], "only": ["quickfix"], "triggerKind": 1 })
    );
    let expected = [
        ("bare", "command do.it"),
        ("edit", RENAMED),
        ("both", RENAMED),
        ("command", "command then.this"),
        ("no", "unknown: the server said neither"),
        ("lazy", "unknown: the server said neither"),
        (
            "lost",
            "unknown: test-server wants to edit untitled:1, which cannot be read",
        ),
    ];
    assert_eq!(
        effects(answer.unwrap().result),
        expected.map(|(title, effect)| (title.to_owned(), effect.to_owned()))
    );
}

#[test]
fn code_actions_are_resolved_where_that_is_offered() {
    let ground = Ground::with(json!({
        "diagnosticProvider": null, "codeActionProvider": { "resolveProvider": true },
    }));
    let workspace_edit = json!({ "changes": { URI: [edit(0, 6, 10, "n")] } });
    let lazy = |title: &str| json!({ "title": title, "data": { "key": title } });
    let reply = json!([lazy("a"), { "title": "eager", "edit": workspace_edit }, lazy("b")]);
    let refusal = Refusal {
        code: -1,
        message: "too late".into(),
    };
    let mut resolved = lazy("a");
    resolved["edit"] = workspace_edit;
    let steps = vec![vec![Ok(reply)], vec![Ok(resolved), Err(refusal)]];
    let (asked, answer) = ground.talk(actions(&[]), steps);
    assert_eq!(
        asked[1..],
        [
            ("codeAction/resolve", lazy("a")),
            ("codeAction/resolve", lazy("b"))
        ]
    );
    let expected = [
        ("a", RENAMED),
        ("eager", RENAMED),
        ("b", "unknown: too late (code -1)"),
    ];
    assert_eq!(
        effects(answer.unwrap().result),
        expected.map(|(title, effect)| (title.to_owned(), effect.to_owned()))
    );
}

#[test]
fn code_actions_ask_for_diagnostics_where_none_are_pushed() {
    let ground = Ground::new();
    let near = json!({ "range": wire_range(0, 8, 9), "message": "near", "data": [1] });
    let report =
        json!({ "kind": "full", "items": [near, { "range": wire_range(1, 0, 1), "message": "far" }] });
    let (asked, answer) = ground.talk(actions(&[]), vec![vec![Ok(report)], vec![Ok(json!([]))]]);
    assert_eq!(asked[0].0, "textDocument/diagnostic");
    assert_eq!(
        asked[1].1["context"],
        json!({ "diagnostics": [near], "triggerKind": 1 })
    );
    assert_eq!(effects(answer.unwrap().result), []);
    let (_, answer) = ground.talk(
        actions(&[]),
        vec![vec![Ok(json!({ "kind": "unchanged", "resultId": "1" }))]],
    );
    assert!(matches!(answer, Err(QueryError::Broken { .. })), "{answer:?}");
}
