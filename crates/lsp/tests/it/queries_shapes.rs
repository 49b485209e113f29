//! Every shape that an answer may have.

use lsp::{Query, QueryError, QueryLimits, QueryResult};
use protocol::CallDirection;
use serde_json::{Value, json};

use crate::queries::{Ground, main_path, name, wire_range};

fn read(ground: &Ground, query: Query, reply: Value) -> Value {
    let result = ground.ask(query, reply).unwrap();
    serde_json::to_value(result).unwrap()["result"].take()
}

fn position(line: u32, column: u32) -> Value {
    json!({ "line": line, "column": column })
}

fn people(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": position(line, start), "end": position(line, end) })
}

/// The word `name` in the document, as an answer has it.
fn found_name() -> Value {
    json!({ "path": "main.rs", "range": people(1, 6, 10), "excerpt": "// 😀 name" })
}

fn listed(items: Value) -> Value {
    let total = items.as_array().unwrap().len();
    json!({ "items": items, "total": total, "truncated": false })
}

const URI: &str = "file:///project/main.rs";

#[test]
fn locations_and_links() {
    let ground = Ground::new();
    let location = json!({ "uri": URI, "range": wire_range(0, 6, 10) });
    let link = json!({
        "targetUri": URI, "targetRange": wire_range(0, 0, 10), "targetSelectionRange": wire_range(0, 6, 10),
        "originSelectionRange": wire_range(1, 0, 1),
    });
    let once = listed(json!([found_name()]));
    let cases = [
        (location.clone(), once.clone()),
        (json!([location]), once.clone()),
        (json!([link]), once.clone()),
        (json!([location, link, location]), once),
        (json!([]), listed(json!([]))),
        (json!(null), listed(json!([]))),
    ];
    for (reply, expected) in cases {
        assert_eq!(
            read(&ground, Query::Definition(name()), reply.clone()),
            expected,
            "{reply}"
        );
    }
}

#[test]
fn locations_elsewhere_are_marked_and_all_are_sorted() {
    let ground = Ground::new()
        .file("/project/src/a.rs", "ää\nöö\n")
        .file("/usr/lib/b.rs", "bb\n");
    let at = |uri: &str, line| json!({ "uri": uri, "range": wire_range(line, 1, 2) });
    let reply = json!([
        at("jdt://contents/C.class", 4),
        at("file:///usr/lib/b.rs", 0),
        at("file:///project/src/a.rs", 1),
        at("file:///project/gone.rs", 0),
        at("file:///project/src/%61.rs", 0),
        at("file:///project/src/a.rs", 1),
    ]);
    let place = |path: &str, line, text: Option<&str>| {
        let mut place = json!({ "path": path, "range": people(line, 2, 3) });
        if let Some(text) = text {
            place["excerpt"] = json!(text);
        }
        place
    };
    let expected = listed(json!([
        place("gone.rs", 1, None),
        place("src/a.rs", 1, Some("ää")),
        place("src/a.rs", 2, Some("öö")),
        place("/usr/lib/b.rs", 1, Some("bb")),
        place("jdt://contents/C.class", 5, None),
    ]));
    assert_eq!(read(&ground, Query::Definition(name()), reply), expected);
}

#[test]
fn what_is_cut_is_counted() {
    let mut ground = Ground::new();
    ground.limits = QueryLimits {
        locations: 2,
        completions: 1,
        symbols: 1,
        text_bytes: 5,
        ..QueryLimits::default()
    };
    let many: Vec<Value> = (0..5)
        .map(|column| json!({ "uri": URI, "range": wire_range(0, column, column) }))
        .collect();
    let cut = read(&ground, Query::Definition(name()), json!(many));
    let starts: Vec<&Value> = cut["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["range"]["start"]["column"])
        .collect();
    assert_eq!(
        json!([starts, cut["total"], cut["truncated"]]),
        json!([[1, 2], 5, true])
    );

    let cut = read(
        &ground,
        Query::Completions(name()),
        json!([{ "label": "b" }, { "label": "a" }]),
    );
    assert_eq!(
        json!([cut["items"][0]["label"], cut["total"], cut["truncated"]]),
        json!(["a", 2, true])
    );
    let cut = read(&ground, Query::Hover(name()), json!({ "contents": "1234ä" }));
    assert_eq!(cut["text"], "1234…");
}

#[test]
fn hovers() {
    let ground = Ground::new();
    let cases = [
        (json!("plain"), json!("plain")),
        (json!({ "kind": "markdown", "value": "**m**" }), json!("**m**")),
        (
            json!({ "language": "rust", "value": "fn f()" }),
            json!("```rust\nfn f()\n```"),
        ),
        (
            json!(["a", { "language": "c", "value": "int" }, "", "b"]),
            json!("a\n\n```c\nint\n```\n\nb"),
        ),
        (json!(""), json!(null)),
        (json!([]), json!(null)),
        (json!({ "kind": "plaintext", "value": " " }), json!(null)),
    ];
    for (contents, expected) in cases {
        let reply = json!({ "contents": contents, "range": wire_range(0, 6, 10) });
        let hover = read(&ground, Query::Hover(name()), reply);
        let expected = match expected {
            Value::Null => Value::Null,
            text => json!({ "text": text, "range": people(1, 6, 10) }),
        };
        assert_eq!(hover, expected, "{contents}");
    }
    let error = ground
        .ask(Query::Hover(name()), json!({ "contents": 5 }))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "test-server gave an invalid answer to textDocument/hover: expected a text, found a number at result.contents"
    );
}

#[test]
fn completions() {
    let ground = Ground::new();
    let plain = |label: &str| json!({ "label": label });
    let list = |items: Vec<Value>, incomplete: bool| {
        let mut list = listed(json!(items));
        list["incomplete"] = json!(incomplete);
        list
    };
    let full = json!({
        "label": "f", "kind": 3, "detail": "fn()", "documentation": { "kind": "markdown", "value": "doc" },
        "sortText": "0", "insertTextFormat": 2,
        "textEdit": { "newText": "f($1)", "range": wire_range(0, 6, 10) },
    });
    let full_read = json!({ "label": "f", "kind": "function", "detail": "fn()", "insert_text": "f($1)" });
    let insert_replace = json!({
        "label": "r", "textEdit": { "newText": "r!", "insert": wire_range(0, 6, 7), "replace": wire_range(0, 6, 10) },
    });
    let cases = [
        (json!(null), list(vec![], false)),
        (json!([]), list(vec![], false)),
        (
            json!([{ "label": "b" }, { "label": "a", "insertText": "a" }, full]),
            list(vec![full_read, plain("a"), plain("b")], false),
        ),
        (
            json!({ "isIncomplete": true, "items": [insert_replace] }),
            list(vec![json!({ "label": "r", "insert_text": "r!" })], true),
        ),
        (
            json!({
                "isIncomplete": false,
                "itemDefaults": {
                    "insertTextFormat": 2,
                    "editRange": { "insert": wire_range(0, 6, 6), "replace": wire_range(0, 6, 10) },
                },
                "items": [{ "label": "d", "textEditText": "D" }],
            }),
            list(vec![json!({ "label": "d", "insert_text": "D" })], false),
        ),
    ];
    for (reply, expected) in cases {
        assert_eq!(
            read(&ground, Query::Completions(name()), reply.clone()),
            expected,
            "{reply}"
        );
    }
}

#[test]
fn signatures() {
    let ground = Ground::new();
    let reply = json!({
        "signatures": [
            { "label": "f()" },
            {
                "label": "f(😀: A, b: B)", "documentation": "doc",
                "parameters": [
                    { "label": [2, 7], "documentation": { "kind": "plaintext", "value": "first" } },
                    { "label": "b: B" },
                ],
            },
            { "label": "g(a)", "parameters": [{ "label": "a" }], "activeParameter": 0 },
        ],
        "activeSignature": 1,
        "activeParameter": 1,
    });
    let expected = json!({
        "signatures": [
            { "label": "f()", "parameters": [] },
            {
                "label": "f(😀: A, b: B)", "documentation": "doc", "active_parameter": 1,
                "parameters": ["😀: A", "b: B"],
            },
            { "label": "g(a)", "active_parameter": 0, "parameters": ["a"] },
        ],
        "active": 1,
    });
    assert_eq!(read(&ground, Query::SignatureHelp(name()), reply), expected);
    let beyond = json!({ "signatures": [{ "label": "f()" }], "activeSignature": 9, "activeParameter": 9 });
    assert_eq!(read(&ground, Query::SignatureHelp(name()), beyond)["active"], 0);
    for label in [json!([0]), json!([3, 1]), json!(["a", 1]), json!(7)] {
        let reply = json!({ "signatures": [{ "label": "f(a)", "parameters": [{ "label": label }] }] });
        let error = ground.ask(Query::SignatureHelp(name()), reply).unwrap_err();
        let place = "result.signatures[0].parameters[0].label";
        assert!(
            matches!(&error, QueryError::Broken { place: at, .. } if at == place),
            "{error}"
        );
    }
}

#[test]
fn symbols() {
    let ground = Ground::new();
    let symbol = |name: &str, kind: &str, detail: Option<&str>, container: Option<&str>, depth: u32| {
        let mut symbol = json!({
            "name": name, "kind": kind, "depth": depth, "path": "main.rs", "range": people(1, 6, 10),
        });
        for (key, value) in [("detail", detail), ("container", container)] {
            if let Some(value) = value {
                symbol[key] = json!(value);
            }
        }
        symbol
    };
    let nested = json!([{
        "name": "outer", "kind": 5, "range": wire_range(0, 0, 10), "selectionRange": wire_range(0, 6, 10),
        "children": [{
            "name": "inner", "kind": 6, "detail": "d", "range": wire_range(0, 6, 10),
            "selectionRange": wire_range(0, 6, 10), "children": [],
        }],
    }]);
    let flat = json!([
        { "name": "f", "kind": 12, "location": { "uri": URI, "range": wire_range(0, 6, 10) }, "containerName": "m" },
        { "name": "f", "kind": 12, "location": { "uri": URI, "range": wire_range(0, 6, 10) }, "containerName": "m" },
    ]);
    let outer = symbol("outer", "class", None, None, 0);
    let inner = symbol("inner", "method", Some("d"), Some("outer"), 1);
    let function = symbol("f", "function", None, Some("m"), 0);
    let query = || Query::DocumentSymbols { path: main_path() };
    assert_eq!(read(&ground, query(), nested), listed(json!([outer, inner])));
    assert_eq!(read(&ground, query(), flat.clone()), listed(json!([function])));

    let workspace = || Query::WorkspaceSymbols { name: "f".into() };
    assert_eq!(read(&ground, workspace(), flat), listed(json!([function])));
    // Some servers know the file and nothing else, and kinds may be newer than we are.
    let nowhere = json!({ "name": "g", "kind": "other", "depth": 0, "path": "main.rs" });
    let reply = json!([{ "name": "g", "kind": 99, "location": { "uri": URI } }]);
    assert_eq!(read(&ground, workspace(), reply), listed(json!([nowhere])));
}

#[test]
fn symbols_that_are_nested_without_end_are_refused() {
    let ground = Ground::new();
    let range = wire_range(0, 0, 1);
    let mut symbol = json!({ "name": "s", "kind": 5, "range": range, "selectionRange": range });
    for _ in 0..100 {
        symbol = json!({
            "name": "s", "kind": 5, "range": range, "selectionRange": range, "children": [symbol],
        });
    }
    let answer = ground.ask(Query::DocumentSymbols { path: main_path() }, json!([symbol]));
    assert!(matches!(answer, Err(QueryError::Broken { .. })), "{answer:?}");
}

#[test]
fn calls() {
    let ground = Ground::new().file("/project/lib.rs", "fn caller() { name() }\n");
    let item = |name: &str, uri: &str, range: Value| {
        json!({
            "name": name, "kind": 12, "detail": "", "uri": uri, "range": range, "selectionRange": range,
            "data": { "id": 5 },
        })
    };
    let target = item("name", URI, wire_range(0, 6, 10));
    let caller = item("caller", "file:///project/lib.rs", wire_range(0, 3, 9));
    let call = |calls: Value| {
        let location =
            json!({ "path": "lib.rs", "range": people(1, 4, 10), "excerpt": "fn caller() { name() }" });
        json!({ "name": "caller", "kind": "function", "location": location, "calls": calls })
    };

    let directions = [
        (
            CallDirection::Incoming,
            "callHierarchy/incomingCalls",
            json!([{ "from": caller, "fromRanges": [wire_range(0, 14, 18)] }]),
            // The call stands in the file of the caller.
            call(json!([people(1, 15, 19)])),
        ),
        (
            CallDirection::Outgoing,
            "callHierarchy/outgoingCalls",
            json!([{ "to": caller, "fromRanges": [wire_range(0, 6, 10)] }]),
            // The caller is the thing that was asked about.
            call(json!([people(1, 6, 10)])),
        ),
    ];
    for (direction, method, reply, expected) in directions {
        let query = Query::Calls {
            at: name(),
            direction,
        };
        let (asked, answer) = ground.talk(query, vec![vec![Ok(json!([target]))], vec![Ok(reply)]]);
        assert_eq!(asked[1], (method, json!({ "item": target })));
        let answer = serde_json::to_value(answer.unwrap()).unwrap();
        assert_eq!(answer["result"], listed(json!([expected])), "{direction:?}");
    }
    let query = Query::Calls {
        at: name(),
        direction: CallDirection::Incoming,
    };
    let (_, answer) = ground.talk(
        query,
        vec![
            vec![Ok(json!([target, target]))],
            vec![Ok(json!(null)), Ok(json!([]))],
        ],
    );
    assert!(
        matches!(answer.unwrap().result, QueryResult::Calls(list) if list.items.is_empty()),
        "nobody calls it"
    );
}

#[test]
fn a_broken_answer_is_named_with_its_place() {
    let ground = Ground::new();
    let location = |range: Value| json!({ "uri": URI, "range": range });
    let cases = [
        (
            Query::Definition(name()),
            json!([
                location(wire_range(0, 0, 1)),
                location(json!({ "start": { "line": "x" } }))
            ]),
            "result[1].range.start.line",
        ),
        (Query::Definition(name()), json!([{ "uri": 5 }]), "result[0].uri"),
        (
            Query::Completions(name()),
            json!({ "isIncomplete": false, "items": [{ "label": "a" }, { "label": 5 }] }),
            "result.items[1].label",
        ),
        (
            Query::Rename {
                at: name(),
                new_name: "n".into(),
            },
            json!({ "documentChanges": [{ "textDocument": { "uri": URI }, "edits": [{ "newText": 1 }] }] }),
            "result.documentChanges[0].edits[0].newText",
        ),
        (
            Query::Diagnostics { path: main_path() },
            json!({ "kind": "full", "items": [{ "range": wire_range(0, 0, 1), "message": 5 }] }),
            "result.items[0].message",
        ),
        (
            Query::Diagnostics { path: main_path() },
            json!({ "kind": "unchanged", "resultId": "1" }),
            "result.kind",
        ),
    ];
    for (query, reply, expected) in cases {
        match ground.ask(query, reply.clone()) {
            Err(QueryError::Broken { place, .. }) => assert_eq!(place, expected, "{reply}"),
            other => panic!("{reply}: {other:?}"),
        }
    }
}
