//! Diagnostics: on request and pushed, whole, and never for another version.

use std::path::Path;

use lsp::{
    Answer, PushTaken, PushedDiagnostics, Query, QueryError, QueryLimits, QueryResult, answer_from_push,
    merge_answers,
};
use protocol::Diagnostic;
use serde_json::{Value, json};

use crate::queries::{Ground, main_path, wire_range};

fn diagnostics(answer: &Answer) -> &[Diagnostic] {
    match &answer.result {
        QueryResult::Diagnostics(list) => &list.items,
        other => panic!("{other:?}"),
    }
}

fn pull(ground: &Ground, report: Value) -> Result<Answer, QueryError> {
    let query = Query::Diagnostics { path: main_path() };
    ground.talk(query, vec![vec![Ok(report)]]).1
}

fn full(items: Value) -> Value {
    json!({ "kind": "full", "items": items })
}

#[test]
fn a_diagnostic_is_read_whole() {
    let ground = Ground::new().file("/project/other.rs", "fn other() {}\n");
    let report = full(json!([{
        "range": wire_range(0, 6, 10), "severity": 2, "code": 42, "codeDescription": { "href": "https://e.test/42" },
        "source": "checker", "message": "odd", "tags": [2, 1, 99], "data": { "x": 1 },
        "relatedInformation": [{
            "location": { "uri": "file:///project/other.rs", "range": wire_range(0, 3, 8) }, "message": "see here",
        }],
    }]));
    let answer = pull(&ground, report).unwrap();
    let position = |column| json!({ "line": 1, "column": column });
    let expected = json!({
        "path": "main.rs", "range": { "start": position(6), "end": position(10) }, "excerpt": "// 😀 name",
        "severity": "warning", "message": "odd", "code": "42", "source": "checker",
        "tags": ["unnecessary", "deprecated"],
        "related": [{
            "location": {
                "path": "other.rs", "range": { "start": position(4), "end": position(9) },
                "excerpt": "fn other() {}",
            },
            "message": "see here",
        }],
    });
    assert_eq!(serde_json::to_value(&diagnostics(&answer)[0]).unwrap(), expected);
}

#[test]
fn forms_of_severity_code_and_message() {
    let ground = Ground::new();
    let cases = [
        (json!({ "message": "m" }), json!(["error", null, "m"])),
        (
            json!({ "message": "m", "severity": 1, "code": "E1" }),
            json!(["error", "E1", "m"]),
        ),
        (
            json!({ "message": "m", "severity": 3, "code": null }),
            json!(["information", null, "m"]),
        ),
        (
            json!({ "message": "m", "severity": 4 }),
            json!(["hint", null, "m"]),
        ),
        (
            json!({ "message": { "kind": "markdown", "value": "**m**" }, "tags": null, "relatedInformation": null }),
            json!(["error", null, "**m**"]),
        ),
    ];
    for (mut item, expected) in cases {
        item["range"] = wire_range(0, 0, 1);
        let answer = pull(&ground, full(json!([item]))).unwrap();
        let diagnostic = serde_json::to_value(&diagnostics(&answer)[0]).unwrap();
        let read = json!([diagnostic["severity"], diagnostic["code"], diagnostic["message"]]);
        assert_eq!(read, expected, "{item}");
    }
}

#[test]
fn reports_of_related_documents_belong_to_the_answer() {
    let ground = Ground::new().file("/project/other.rs", "x\n");
    let item = |message: &str| json!({ "range": wire_range(0, 0, 1), "message": message });
    let report = json!({
        "kind": "full", "items": [item("b"), item("a"), item("a")],
        "relatedDocuments": {
            "file:///project/other.rs": full(json!([item("c")])),
            "file:///project/same.rs": { "kind": "unchanged", "resultId": "1" },
        },
    });
    let answer = pull(&ground, report).unwrap();
    let read: Vec<_> = diagnostics(&answer)
        .iter()
        .map(|diagnostic| (&*diagnostic.path, &*diagnostic.message))
        .collect();
    assert_eq!(read, [("main.rs", "a"), ("main.rs", "b"), ("other.rs", "c")]);
    let QueryResult::Diagnostics(list) = &answer.result else {
        panic!("{answer:?}");
    };
    assert_eq!((list.total, list.truncated), (3, false));
}

/// What happens to the pushes of a document, in order.
#[derive(Debug)]
enum Event {
    Sending(i32),
    Closing,
    Pushed(Option<i32>, &'static str, PushTaken),
    /// What is current for a version.
    Has(i32, Option<&'static str>),
}

#[test]
fn a_push_counts_only_for_the_version_that_was_sent_last() {
    use Event::{Closing, Has, Pushed, Sending};
    use PushTaken::{Current, NotOpen, OtherVersion};
    let histories: [&[Event]; 6] = [
        &[Pushed(None, "a", NotOpen), Has(1, None), Sending(1), Has(1, None)],
        &[
            Sending(1),
            Pushed(Some(1), "a", Current),
            Has(1, Some("a")),
            Has(2, None),
        ],
        &[
            Sending(1),
            Pushed(Some(1), "a", Current),
            Sending(2),
            Has(1, None),
            Has(2, None),
        ],
        &[
            Sending(1),
            Sending(2),
            Pushed(Some(1), "late", OtherVersion),
            Has(2, None),
            Pushed(Some(2), "b", Current),
            Pushed(Some(1), "later", OtherVersion),
            Has(2, Some("b")),
            Pushed(Some(2), "c", Current),
            Has(2, Some("c")),
        ],
        &[
            Sending(1),
            Pushed(None, "a", Current),
            Has(1, Some("a")),
            Sending(2),
            Has(2, None),
            Pushed(None, "b", Current),
            Has(2, Some("b")),
            Pushed(Some(3), "from the future", OtherVersion),
            Has(2, Some("b")),
        ],
        &[
            Sending(1),
            Pushed(None, "a", Current),
            Closing,
            Has(1, None),
            Pushed(Some(1), "b", NotOpen),
        ],
    ];
    let path = Path::new("/project/main.rs");
    for history in histories {
        let mut pushed = PushedDiagnostics::default();
        for (step, event) in history.iter().enumerate() {
            let place = format!("{step} of {history:?}");
            match event {
                Sending(version) => pushed.sending(path, *version),
                Closing => pushed.closing(path),
                Pushed(version, name, expected) => {
                    let taken = pushed.pushed(path, *version, vec![json!(name)]);
                    assert_eq!(taken, *expected, "{place}");
                }
                Has(version, expected) => {
                    let current = pushed.current("test-server", path, *version);
                    match expected {
                        Some(name) => assert_eq!(current.unwrap().items[..], [json!(name)], "{place}"),
                        None => assert_eq!(
                            current,
                            Err(QueryError::NotReady {
                                server: "test-server".into(),
                                version: *version,
                            }),
                            "{place}"
                        ),
                    }
                }
            }
        }
    }
}

#[test]
fn a_push_is_read_like_a_report_and_is_bounded() {
    let ground = Ground::new();
    let path = Path::new("/project/main.rs");
    let mut pushed = PushedDiagnostics::default();
    pushed.sending(path, 7);
    let items: Vec<Value> = (0..2500)
        .map(|number| json!({ "range": wire_range(0, 0, 1), "message": format!("{number:04}") }))
        .collect();
    pushed.pushed(path, Some(7), items);
    let push = pushed.current("test-server", path, 7).unwrap();
    let answer = answer_from_push(&push, &ground.around()).unwrap();
    let QueryResult::Diagnostics(list) = &answer.result else {
        panic!("{answer:?}");
    };
    assert_eq!((list.items.len(), list.total, list.truncated), (1000, 2500, true));
    assert_eq!(list.items[0].message, "0000");
    assert_eq!(answer.origins[0].document_version, Some(7));

    pushed.pushed(path, Some(7), vec![json!({ "message": "no range" })]);
    let push = pushed.current("test-server", path, 7).unwrap();
    let broken = answer_from_push(&push, &ground.around());
    assert!(
        matches!(
            &broken,
            Err(QueryError::Broken {
                method: "textDocument/publishDiagnostics",
                ..
            })
        ),
        "{broken:?}"
    );
}

#[test]
fn a_change_of_another_file_makes_a_version_out_of_date() {
    let (a, b, c) = (Path::new("/a"), Path::new("/b"), Path::new("/c"));
    let mut pushed = PushedDiagnostics::default();
    let state = |pushed: &PushedDiagnostics| {
        [(a, 1), (b, 1), (c, 1)].map(|(path, version)| pushed.is_out_of_date(path, version))
    };
    for path in [a, b, c] {
        pushed.sending(path, 1);
    }
    assert_eq!(state(&pushed), [false, false, false]);
    pushed.changed(a);
    assert_eq!(state(&pushed), [false, true, true]);
    pushed.changed(a);
    assert_eq!(state(&pushed), [false, true, true]);
    for path in [b, c] {
        pushed.sending(path, 1);
    }
    assert_eq!(state(&pushed), [false, false, false]);
    pushed.changed(b);
    pushed.changed(b);
    assert_eq!(state(&pushed), [true, false, true]);
    pushed.changed(a);
    // The last change is of `a`, and the one before it of `b`.
    assert_eq!(state(&pushed), [true, true, true]);
    pushed.sending(a, 2);
    assert_eq!(state(&pushed), [false, true, true]);
    assert!(pushed.is_superseded(a, 1) && !pushed.is_superseded(a, 2));
}

#[test]
fn a_push_without_a_version_is_of_a_closed_document_if_others_have_one() {
    let path = Path::new("/a");
    let item = || vec![json!({"message": "x"})];
    for (named_before, items, expected) in [
        (false, vec![], PushTaken::Current),
        (false, item(), PushTaken::Current),
        (true, vec![], PushTaken::OtherVersion),
        (true, item(), PushTaken::Current),
    ] {
        let mut pushed = PushedDiagnostics::default();
        pushed.sending(path, 1);
        if named_before {
            pushed.pushed(path, Some(1), item());
        }
        assert_eq!(
            pushed.pushed(path, None, items.clone()),
            expected,
            "{named_before} {items:?}"
        );
    }
}

#[test]
fn typescripts_own_server_is_asked_through_the_one_before_it() {
    let commands = json!({"commands": ["typescript.tsserverRequest"]});
    let offered = json!({"executeCommandProvider": commands, "diagnosticProvider": null});
    let ground = Ground::with(offered).file("/project/other.rs", "fn other() {}\n");
    let point = |offset: u32| json!({"line": 1, "offset": offset});
    let reply = |body: Value| Ok(json!({"type": "response", "success": true, "body": body}));
    let semantic = json!([{
        "start": point(7), "end": point(11), "text": "wrong", "code": 2345, "category": "error",
        "relatedInformation": [
            {"message": "see here", "span": {"file": "/project/other.rs", "start": point(4), "end": point(9)}},
            {"message": "nowhere"},
        ],
    }]);
    let suggestion = json!([{
        "start": point(7), "end": point(11), "text": "unused", "code": 6133, "category": "suggestion",
        "reportsUnnecessary": true,
    }]);
    let query = Query::Diagnostics { path: main_path() };
    let replies = vec![vec![reply(json!([])), reply(semantic), reply(suggestion)]];
    let (asked, answer) = ground.talk(query.clone(), replies);
    let asked: Vec<&Value> = asked.iter().map(|(_, params)| &params["arguments"]).collect();
    let of = |command: &str| json!([command, {"file": "/project/main.rs"}]);
    assert_eq!(
        asked,
        [
            &of("syntacticDiagnosticsSync"),
            &of("semanticDiagnosticsSync"),
            &of("suggestionDiagnosticsSync"),
        ]
    );
    let answer = answer.unwrap();
    let said = serde_json::to_value(diagnostics(&answer)).unwrap();
    let short = |index: usize| {
        let said = &said[index];
        json!([said["range"], said["severity"], said["code"], said["tags"]])
    };
    let range = json!({"start": {"line": 1, "column": 6}, "end": {"line": 1, "column": 10}});
    assert_eq!(short(0), json!([range, "error", "2345", null]));
    assert_eq!(short(1), json!([range, "hint", "6133", ["unnecessary"]]));
    assert_eq!(said[0]["related"][0]["location"]["path"], "other.rs");
    assert_eq!(said[0]["related"].as_array().unwrap().len(), 1);

    let failed = Ok(json!({"success": false, "message": "no project"}));
    let empty = || reply(json!([]));
    let answer = ground.talk(query, vec![vec![empty(), failed, empty()]]).1;
    assert!(matches!(answer, Err(QueryError::Broken { .. })), "{answer:?}");
}

#[test]
fn two_servers_say_it_once() {
    let ground = Ground::new();
    let item = |message: &str, source: &str, column| json!({ "range": wire_range(0, column, column + 1), "message": message, "source": source });
    let first = pull(
        &ground,
        full(json!([item("same", "pyright", 0), item("types", "pyright", 4)])),
    )
    .unwrap();
    let around = lsp::Surroundings {
        server: "ruff",
        ..ground.around()
    };
    let mut pushed = PushedDiagnostics::default();
    let path = Path::new("/project/main.rs");
    pushed.sending(path, 7);
    pushed.pushed(
        path,
        None,
        vec![item("style", "Ruff", 2), item("same", "Ruff", 0)],
    );
    let push = pushed.current("ruff", path, 7).unwrap();
    let second = answer_from_push(&push, &around).unwrap();
    let merged = merge_answers(vec![first, second], &QueryLimits::default()).unwrap();
    let read: Vec<_> = diagnostics(&merged)
        .iter()
        .map(|diagnostic| (&*diagnostic.message, &*diagnostic.source))
        .collect();
    assert_eq!(
        read,
        [("same", "pyright"), ("style", "Ruff"), ("types", "pyright"),]
    );
    let QueryResult::Diagnostics(list) = &merged.result else {
        panic!("{merged:?}");
    };
    assert_eq!(list.total, 3);
}
