//! Questions: what a server is asked, and what happens when it cannot or will not answer.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use lsp::{
    Answer, At, Capabilities, Conversation, Declarations, Indentation, LineIndex, OpenDocument,
    PositionEncoding, PositionError, Query, QueryError, QueryLimits, QueryResult, Refusal, Step,
    Surroundings, Texts, merge_answers,
};
use protocol::{CallDirection, Position, Range};
use serde_json::{Value, json, value::RawValue};

pub(crate) const ROOT: &str = "/project";
/// The document that is asked about. The word `name` begins behind a character of two units and four bytes.
pub(crate) const MAIN: &str = "// 😀 name\nfn main() {}\n";

/// A workspace, and a server in it.
pub(crate) struct Ground {
    pub(crate) files: BTreeMap<PathBuf, Arc<str>>,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: QueryLimits,
    pub(crate) diagnostics: Vec<Value>,
    document: LineIndex,
}

impl Texts for Ground {
    fn text(&self, path: &Path) -> Option<Arc<str>> {
        self.files.get(path).cloned()
    }
}

/// Every feature, as servers offer it today.
fn everything() -> Value {
    json!({
        "hoverProvider": true, "completionProvider": {}, "definitionProvider": true, "declarationProvider": true,
        "typeDefinitionProvider": true, "implementationProvider": true, "referencesProvider": true,
        "renameProvider": true, "codeActionProvider": true, "documentFormattingProvider": true,
        "documentRangeFormattingProvider": true, "signatureHelpProvider": {}, "documentSymbolProvider": true,
        "workspaceSymbolProvider": true, "callHierarchyProvider": true,
        "diagnosticProvider": { "identifier": "all" },
    })
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self::offering(everything())
    }

    /// Everything, and these options.
    pub(crate) fn with(options: Value) -> Self {
        let mut capabilities = everything();
        for (name, option) in options.as_object().unwrap() {
            capabilities[name] = option.clone();
        }
        Self::offering(capabilities)
    }

    fn offering(capabilities: Value) -> Self {
        Self {
            files: BTreeMap::new(),
            capabilities: Capabilities::new(capabilities),
            limits: QueryLimits::default(),
            diagnostics: Vec::new(),
            document: LineIndex::new(MAIN),
        }
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn around(&self) -> Surroundings<'_> {
        Surroundings {
            server: "test-server",
            generation: 3,
            root: Path::new(ROOT),
            encoding: PositionEncoding::Utf16,
            capabilities: &self.capabilities,
            document: Some(OpenDocument {
                path: Path::new("/project/main.rs"),
                version: 7,
                text: &self.document,
            }),
            diagnostics: &self.diagnostics,
            texts: self,
            limits: &self.limits,
        }
    }

    /// Asks, with one list of replies for each step, and says what was asked.
    pub(crate) fn talk(
        &self,
        query: Query,
        steps: Vec<Vec<Result<Value, Refusal>>>,
    ) -> (Vec<(&'static str, Value)>, Result<Answer, QueryError>) {
        let around = self.around();
        let mut asked = Vec::new();
        let (mut conversation, mut requests) = match Conversation::begin(query, &around) {
            Ok(begun) => begun,
            Err(error) => return (asked, Err(error)),
        };
        for replies in steps {
            assert_eq!(requests.len(), replies.len(), "{requests:?}");
            asked.extend(requests.drain(..).map(|request| (request.method, request.params)));
            let raw: Vec<Result<Box<RawValue>, Refusal>> = replies
                .into_iter()
                .map(|reply| reply.map(|value| serde_json::value::to_raw_value(&value).unwrap()))
                .collect();
            let replies: Vec<Result<&RawValue, Refusal>> = raw
                .iter()
                .map(|reply| reply.as_deref().map_err(Clone::clone))
                .collect();
            match conversation.answered(&replies, &around) {
                Ok(Step::Ask(next, more)) => (conversation, requests) = (next, more),
                Ok(Step::Done(answer)) => return (asked, Ok(*answer)),
                Err(error) => return (asked, Err(error)),
            }
        }
        panic!("more is asked: {requests:?}");
    }

    /// Asks something that takes one request.
    pub(crate) fn ask(&self, query: Query, reply: Value) -> Result<QueryResult, QueryError> {
        let (_, answer) = self.talk(query, vec![vec![Ok(reply)]]);
        answer.map(|answer| answer.result)
    }
}

pub(crate) fn main_path() -> Arc<Path> {
    Path::new("/project/main.rs").into()
}

/// The word `name` of the document.
pub(crate) fn name() -> At {
    At {
        path: main_path(),
        position: Position { line: 1, column: 6 },
    }
}

fn range(start: (u32, u32), end: (u32, u32)) -> Range {
    let position = |(line, column)| Position { line, column };
    Range {
        start: position(start),
        end: position(end),
    }
}

pub(crate) fn wire_range(line: u32, start: u32, end: u32) -> Value {
    json!({ "start": { "line": line, "character": start }, "end": { "line": line, "character": end } })
}

/// Every question, with what it asks of the server first.
fn questions() -> Vec<(Query, &'static str, Value)> {
    let document = json!({ "uri": "file:///project/main.rs" });
    let position = json!({ "line": 0, "character": 6 });
    let at = json!({ "textDocument": document, "position": position });
    let with = |key: &str, value: Value| {
        let mut params = at.clone();
        params[key] = value;
        params
    };
    let format = |indentation, range| Query::Format {
        path: main_path(),
        range,
        indentation,
    };
    vec![
        (
            Query::Diagnostics { path: main_path() },
            "textDocument/diagnostic",
            json!({ "textDocument": document, "identifier": "all" }),
        ),
        (Query::Hover(name()), "textDocument/hover", at.clone()),
        (
            Query::Completions(name()),
            "textDocument/completion",
            with("context", json!({ "triggerKind": 1 })),
        ),
        (Query::Definition(name()), "textDocument/definition", at.clone()),
        (Query::Declaration(name()), "textDocument/declaration", at.clone()),
        (
            Query::TypeDefinition(name()),
            "textDocument/typeDefinition",
            at.clone(),
        ),
        (
            Query::Implementation(name()),
            "textDocument/implementation",
            at.clone(),
        ),
        (
            Query::References {
                at: name(),
                declarations: Declarations::LeftOut,
            },
            "textDocument/references",
            with("context", json!({ "includeDeclaration": false })),
        ),
        (
            Query::References {
                at: name(),
                declarations: Declarations::Included,
            },
            "textDocument/references",
            with("context", json!({ "includeDeclaration": true })),
        ),
        (
            Query::Rename {
                at: name(),
                new_name: "other".into(),
            },
            "textDocument/rename",
            with("newName", json!("other")),
        ),
        (
            format(Indentation::Spaces(4), None),
            "textDocument/formatting",
            json!({ "textDocument": document, "options": { "tabSize": 4, "insertSpaces": true } }),
        ),
        (
            format(Indentation::Tabs(8), Some(range((1, 1), (1, 6)))),
            "textDocument/rangeFormatting",
            json!({
                "textDocument": document, "options": { "tabSize": 8, "insertSpaces": false },
                "range": wire_range(0, 0, 6),
            }),
        ),
        (
            Query::SignatureHelp(name()),
            "textDocument/signatureHelp",
            at.clone(),
        ),
        (
            Query::DocumentSymbols { path: main_path() },
            "textDocument/documentSymbol",
            json!({ "textDocument": document }),
        ),
        (
            Query::WorkspaceSymbols { name: "x".into() },
            "workspace/symbol",
            json!({ "query": "x" }),
        ),
        (
            Query::Calls {
                at: name(),
                direction: CallDirection::Incoming,
            },
            "textDocument/prepareCallHierarchy",
            at.clone(),
        ),
    ]
}

#[test]
fn every_question_becomes_its_request() {
    let ground = Ground::new();
    for (query, method, params) in questions() {
        let (_, requests) = Conversation::begin(query.clone(), &ground.around()).unwrap();
        let asked: Vec<_> = requests
            .into_iter()
            .map(|request| (request.method, request.params))
            .collect();
        assert_eq!(asked, [(method, params)], "{query:?}");
    }
}

#[test]
fn nothing_found_is_an_answer_and_an_error_is_none() {
    let ground = Ground::new();
    let refusal = Refusal {
        code: -32603,
        message: "internal".into(),
    };
    for (query, method, _) in questions() {
        // A report of diagnostics is never nothing.
        if method != "textDocument/diagnostic" {
            let (null, empty) = (
                ground.ask(query.clone(), json!(null)),
                ground.ask(query.clone(), json!([])),
            );
            let null = null.unwrap_or_else(|error| panic!("{query:?}: {error}"));
            // Objects have no empty list; for all others both mean the same.
            if !matches!(null, QueryResult::Hover(_) | QueryResult::Signatures(_))
                && method != "textDocument/rename"
            {
                assert_eq!(null, empty.unwrap(), "{query:?}");
            }
        }
        let (_, answer) = ground.talk(query.clone(), vec![vec![Err(refusal.clone())]]);
        let expected = QueryError::Refused {
            server: "test-server".into(),
            method,
            refusal: refusal.clone(),
        };
        assert_eq!(answer, Err(expected), "{query:?}");
        for broken in [json!(17), json!("text"), json!([17]), json!({ "a": 1 })] {
            let answer = ground.ask(query.clone(), broken.clone());
            let broken_by = match answer {
                Err(QueryError::Broken { method, .. }) => Some(method),
                // Nothing in an edit is an edit of nothing.
                Ok(QueryResult::Edit(_)) if broken.is_object() => Some(method),
                _ => None,
            };
            assert_eq!(broken_by, Some(method), "{query:?} {broken}: {answer:?}");
        }
    }
}

#[test]
fn what_a_server_does_not_offer_is_not_asked() {
    let mut ground = Ground::offering(json!({}));
    for (query, _, _) in questions() {
        let error = Conversation::begin(query.clone(), &ground.around()).unwrap_err();
        let expected = QueryError::Unsupported {
            server: "test-server".into(),
            what: query.needs().what(),
        };
        assert_eq!(error, expected, "{query:?}");
    }
    ground
        .capabilities
        .register("1", "textDocument/hover", Value::Null)
        .unwrap();
    assert_eq!(
        ground.ask(Query::Hover(name()), Value::Null),
        Ok(QueryResult::Hover(None))
    );
}

#[test]
fn a_place_that_is_not_there_is_refused_before_the_server_is_asked() {
    let ground = Ground::new();
    let mut at = name();
    at.position = Position { line: 1, column: 99 };
    let error = ground.ask(Query::Hover(at.clone()), Value::Null).unwrap_err();
    let expected = PositionError::NoSuchColumn {
        line: 1,
        column: 99,
        length: 9,
    };
    assert_eq!(error, QueryError::Position(expected));
    at.path = Path::new("/project/other.rs").into();
    let error = ground.ask(Query::Hover(at), Value::Null).unwrap_err();
    assert_eq!(
        error,
        QueryError::NotOpen {
            path: "/project/other.rs".into()
        }
    );
}

#[test]
fn a_rename_is_prepared_where_that_is_offered() {
    let ground = Ground::with(json!({ "renameProvider": { "prepareProvider": true } }));
    let query = || Query::Rename {
        at: name(),
        new_name: "n".into(),
    };
    let not_renamable = Err(QueryError::NotRenamable {
        server: "test-server".into(),
    });
    let (asked, answer) = ground.talk(query(), vec![vec![Ok(Value::Null)]]);
    assert_eq!(answer, not_renamable);
    assert_eq!(asked[0].0, "textDocument/prepareRename");
    for prepared in [
        wire_range(0, 6, 10),
        json!({ "range": wire_range(0, 6, 10), "placeholder": "name" }),
        json!({ "defaultBehavior": true }),
    ] {
        let (asked, answer) = ground.talk(query(), vec![vec![Ok(prepared)], vec![Ok(Value::Null)]]);
        let methods: Vec<_> = asked.iter().map(|(method, _)| *method).collect();
        assert_eq!(methods, ["textDocument/prepareRename", "textDocument/rename"]);
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn an_answer_says_who_gave_it_and_for_which_version() {
    let (_, answer) = Ground::new().talk(Query::Hover(name()), vec![vec![Ok(json!({ "contents": "x" }))]]);
    assert_eq!(
        serde_json::to_value(answer.unwrap()).unwrap(),
        json!({
            "origins": [{ "server": "test-server", "generation": 3, "document_version": 7 }],
            "kind": "hover",
            "result": { "text": "x", "range": null },
        })
    );
}

#[test]
fn answers_of_several_servers_become_one() {
    let ground = Ground::new();
    let diagnostics = |lines: &[u32]| {
        let items: Vec<Value> = lines
            .iter()
            .map(|line| json!({ "range": wire_range(*line, 0, 1), "message": "odd" }))
            .collect();
        let report = json!({ "kind": "full", "items": items });
        let query = Query::Diagnostics { path: main_path() };
        ground.talk(query, vec![vec![Ok(report)]]).1.unwrap()
    };
    let limits = QueryLimits {
        diagnostics: 2,
        code_actions: 2,
        ..QueryLimits::default()
    };
    assert_eq!(merge_answers(Vec::new(), &limits), None);

    let merged = merge_answers(
        vec![diagnostics(&[1]), diagnostics(&[0, 1]), diagnostics(&[2])],
        &limits,
    )
    .unwrap();
    assert_eq!(merged.origins.len(), 3);
    let QueryResult::Diagnostics(list) = merged.result else {
        panic!("{merged:?}");
    };
    let lines: Vec<u32> = list.items.iter().map(|item| item.range.start.line).collect();
    assert_eq!((lines, list.total, list.truncated), (vec![1, 2], 3, true));

    let ground = Ground::with(json!({ "diagnosticProvider": null }));
    let actions = |titles: &[&str]| {
        let query = Query::CodeActions {
            path: main_path(),
            range: range((1, 1), (1, 2)),
            kinds: Vec::new(),
        };
        let actions: Vec<Value> = titles
            .iter()
            .map(|title| json!({ "title": title, "command": "do.it" }))
            .collect();
        ground.talk(query, vec![vec![Ok(json!(actions))]]).1.unwrap()
    };
    let merged = merge_answers(vec![actions(&["a"]), actions(&["b", "c"])], &limits).unwrap();
    let QueryResult::CodeActions(list) = merged.result else {
        panic!("{merged:?}");
    };
    let titles: Vec<&str> = list.items.iter().map(|action| &*action.title).collect();
    assert_eq!((titles, list.total, list.truncated), (vec!["a", "b"], 3, true));

    let format = |edits: Value| {
        let query = Query::Format {
            path: main_path(),
            range: None,
            indentation: Indentation::Spaces(4),
        };
        ground.talk(query, vec![vec![Ok(edits)]]).1.unwrap()
    };
    let edit = format(json!([{ "range": wire_range(0, 0, 1), "newText": "x" }]));
    let merged = merge_answers(vec![format(json!([])), edit.clone(), format(json!([]))], &limits).unwrap();
    assert_eq!(merged.result, edit.result);
}
