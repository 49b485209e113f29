//! Many clients of one server: none of them stands in another one's way, whatever it does.

use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::wait_for;
use crate::lsp_stage::{FILE_URI, Player, Stage, told, usual_hover};

const CLIENTS: usize = 10;

/// What a client that reads nothing is owed.
const LARGE_BYTES: usize = 10 * 1024 * 1024;

#[test]
fn a_client_that_stops_reading_holds_up_nobody() {
    let large = json!({ "fault": "result", "result": "x".repeat(LARGE_BYTES) });
    let stage = Stage::new(&[Player::new("alpha", json!({ "on": { "custom/large": large } }))]);
    stage.hovered("alpha");
    let path = stage.server_path("alpha", "/request");
    let body = json!({ "method": "custom/large" });
    let mut stuck: Vec<_> = (0..4).map(|_| stage.ask_and_leave_open(&path, &body)).collect();
    let mut far = ask_over_tcp(&stage, &path, &body);
    for stream in &mut stuck {
        assert_beginning(stream);
    }
    assert_beginning(&mut far);

    // All of them have begun to be answered, and none of them reads on.
    for _ in 0..20 {
        assert_eq!(stage.hovered("alpha"), (usual_hover(), 1));
    }
    stage.world.run(&["status"]).expect(0);
    stage.world.run(&["lsp", "list"]).expect(0);
    let health = stage.get(&stage.server_path("alpha", "/health")).body;
    assert_eq!(health["answers"], true, "{health}");

    // Nothing of what they are owed is lost.
    let mut rest = Vec::new();
    let mut one = stuck.pop().unwrap();
    one.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    while rest.len() < LARGE_BYTES {
        let mut piece = vec![0; 1024 * 1024];
        let count = one.read(&mut piece).unwrap();
        assert_ne!(count, 0, "it ended after {} bytes", rest.len());
        rest.extend_from_slice(&piece[..count]);
    }
}

fn assert_beginning(stream: &mut impl Read) {
    let mut beginning = [0; 15];
    stream.read_exact(&mut beginning).unwrap();
    assert_eq!(&beginning, b"HTTP/1.1 200 OK");
}

fn ask_over_tcp(stage: &Stage, path: &str, body: &Value) -> TcpStream {
    let status = stage.world.run(&["status", "--json"]).expect(0).json();
    let address = status["address"].as_str().unwrap().trim_start_matches("http://");
    let token = std::fs::read_to_string(stage.world.home().token_file()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token.trim(),
        body.len(),
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn a_client_that_goes_away_cancels_its_own_request_at_the_server() {
    let silence = json!({ "fault": "silence" });
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({ "on": { "textDocument/hover": silence } }),
    )]);
    let ask = |line: u32| {
        stage.ask_and_leave_open("/v1/lsp/hover", &stage.query("alpha", &json!({ "line": line })))
    };
    let stays = ask(1);
    let goes = ask(2);
    let asked = stage.wait_for_sent("alpha", "textDocument/hover", 2);
    let id_at = |line: u32| {
        let of_line = asked
            .iter()
            .find(|hover| hover["params"]["position"]["line"] == line);
        of_line.expect("both were asked")["id"].clone()
    };
    drop(goes);
    let cancelled = stage.wait_for_sent("alpha", "$/cancelRequest", 1);
    assert_eq!(cancelled[0]["params"], json!({ "id": id_at(1) }));

    let server = stage.server("alpha");
    assert_eq!(
        (&server["pending_requests"], &server["leases"]),
        (&json!(1), &json!(1))
    );
    drop(stays);
    let cancelled = stage.wait_for_sent("alpha", "$/cancelRequest", 2);
    assert_eq!(cancelled[1]["params"], json!({ "id": id_at(0) }));
    wait_for("the leases to be given back", || {
        stage.server("alpha")["leases"] == 0
    });
    assert_eq!(stage.metric("tidelock_lsp_cancelled_total", "alpha"), Some(2.0));
}

#[test]
fn the_first_clients_exit_changes_nothing() {
    let stage = Stage::without_daemon(&[Player::new("alpha", json!({ "watch_parent": true }))]);
    let place = format!("{}:1:1", stage.file("alpha").display());
    // This client starts the daemon and, through it, the server.
    let first = stage.world.run(&["lsp", "hover", &place]).expect(0);
    assert_eq!(first.stdout, format!("version 1, {}\n", usual_hover()));
    let initialize = &stage.sent("alpha", "initialize")[0];
    assert_eq!(
        initialize["params"]["processId"],
        stage.world.pid(),
        "{initialize}"
    );
    // A server that watches the wrong process looks every tenth of a second.
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        assert_eq!(stage.hovered("alpha"), (usual_hover(), 1));
    }
    assert_eq!(stage.pids("alpha", "server").len(), 1);
}

#[test]
fn whoever_asks_in_the_instant_of_a_crash_is_answered() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    stage.hovered("alpha");
    for round in 0..24_u64 {
        if round % 4 == 0 {
            // What fails often within minutes is given up; a restart by hand begins to count anew.
            stage.restart("alpha");
        }
        let before = stage.server("alpha")["generation"].as_u64().unwrap();
        let barrier = Barrier::new(5);
        let answers: Vec<_> = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|client| {
                    let (stage, barrier) = (&stage, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        thread::sleep(Duration::from_micros(client * round * 50)); // tidy: the moment is the point
                        stage.hover("alpha")
                    })
                })
                .collect();
            barrier.wait();
            stage.kill_server("alpha");
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        for answer in &answers {
            let (text, generation) = told(answer);
            assert_eq!(text, usual_hover(), "round {round}");
            assert!(
                [before, before + 1].contains(&generation),
                "round {round}: {generation} after {before}"
            );
        }
        wait_for("the next process", || {
            let server = stage.server("alpha");
            server["state"] == "ready" && server["generation"] == before + 1
        });
    }
}

/// The fifteen verbs: what is asked besides the path, and where in the answer which value stands.
fn verbs() -> Vec<(&'static str, Value, &'static str, Value)> {
    let place = json!({ "line": 2, "column": 3 });
    vec![
        (
            "diagnostics",
            json!({}),
            "/diagnostics/0/message",
            json!("line 3 has an error"),
        ),
        (
            "hover",
            place.clone(),
            "/text",
            json!(format!("version 1, {}", usual_hover())),
        ),
        ("completions", place.clone(), "/completions/0/label", json!("one")),
        (
            "definition",
            place.clone(),
            "/locations/0/range/start",
            json!({ "line": 2, "column": 3 }),
        ),
        (
            "declaration",
            place.clone(),
            "/locations/0/range/start/line",
            json!(1),
        ),
        (
            "type-definition",
            place.clone(),
            "/locations/0/range/start/line",
            json!(2),
        ),
        (
            "implementation",
            place.clone(),
            "/locations/0/range/start/line",
            json!(3),
        ),
        ("references", place.clone(), "/total", json!(2)),
        (
            "rename",
            json!({ "line": 2, "column": 3, "new_name": "new" }),
            "/files/0/edits/0/new_text",
            json!("new"),
        ),
        (
            "code-actions",
            place.clone(),
            "/actions/0/title",
            json!("Mend it"),
        ),
        ("format", json!({}), "/files/0/edits/0/new_text", json!("FIRST")),
        ("signature", place.clone(), "/signatures/0/label", json!("f(x)")),
        ("symbols", json!({}), "/symbols/0/name", json!("thing")),
        (
            "workspace-symbols",
            json!({ "query": "th" }),
            "/symbols/0/name",
            json!("thing"),
        ),
        ("calls", place, "/calls/0/name", json!("caller")),
    ]
}

/// A server that can do everything.
pub(crate) fn able() -> Value {
    let range = |line: u32| json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 5 } });
    let at = |line: u32| json!({ "uri": FILE_URI, "range": range(line) });
    let item = |name: &str| json!({ "name": name, "kind": 12, "uri": FILE_URI, "range": range(0), "selectionRange": range(0) });
    let edit = |text: &str| json!({ "range": range(0), "newText": text });
    let result = |result: Value| json!({ "fault": "result", "result": result });
    json!({
        "capabilities": {
            "completionProvider": {}, "declarationProvider": true, "typeDefinitionProvider": true,
            "implementationProvider": true, "renameProvider": true, "codeActionProvider": true,
            "documentFormattingProvider": true, "signatureHelpProvider": {}, "documentSymbolProvider": true,
            "workspaceSymbolProvider": true, "callHierarchyProvider": true,
        },
        "on": {
            "textDocument/completion": result(json!([{ "label": "one" }])),
            "textDocument/declaration": result(at(0)),
            "textDocument/typeDefinition": result(at(1)),
            "textDocument/implementation": result(at(2)),
            "textDocument/rename": result(json!({ "changes": { FILE_URI: [edit("new")] } })),
            "textDocument/codeAction": result(json!([{ "title": "Mend it", "kind": "quickfix" }])),
            "textDocument/formatting": result(json!([edit("FIRST")])),
            "textDocument/signatureHelp": result(json!({ "signatures": [{ "label": "f(x)" }] })),
            "textDocument/documentSymbol":
                result(json!([{ "name": "thing", "kind": 12, "range": range(0), "selectionRange": range(0) }])),
            "workspace/symbol": result(json!([{ "name": "thing", "kind": 12, "location": at(0) }])),
            "textDocument/prepareCallHierarchy": result(json!([item("thing")])),
            "callHierarchy/incomingCalls":
                result(json!([{ "from": item("caller"), "fromRanges": [range(1)] }])),
        },
    })
}

#[test]
fn ten_clients_ask_all_fifteen_questions_of_one_process() {
    let stage = Stage::new(&[Player::new("alpha", able())]);
    let verbs = verbs();
    assert_eq!(verbs.len(), 15);
    let barrier = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (stage, verbs, barrier) = (&stage, &verbs, &barrier);
            scope.spawn(move || {
                barrier.wait();
                // Each begins elsewhere, so that different questions meet, at the start of the server as well.
                for turn in 0..verbs.len() {
                    let (verb, body, pointer, expected) = &verbs[(client + turn) % verbs.len()];
                    let mut body = body.clone();
                    body["path"] = json!(stage.file("alpha"));
                    let answer = stage.post(&format!("/v1/lsp/{verb}"), &body).unwrap();
                    assert_eq!(answer.status, 200, "{verb}: {answer:?}");
                    assert_eq!(answer.body.pointer(pointer), Some(expected), "{verb}: {answer:?}");
                    let by = &answer.body["answered_by"];
                    let expected = json!([{
                        "id": stage.id("alpha"), "server": "alpha", "generation": 1, "document_version": 1,
                    }]);
                    assert_eq!(by, &expected, "{verb}");
                }
            });
        }
    });
    assert_eq!(stage.pids("alpha", "server").len(), 1);
    assert_eq!(stage.sent("alpha", "initialize").len(), 1);
    assert_eq!(stage.sent("alpha", "textDocument/didOpen").len(), 1);
    let server = stage.server("alpha");
    assert_eq!(
        (
            &server["leases"],
            &server["pending_requests"],
            &server["open_documents"]
        ),
        (&json!(0), &json!(0), &json!(1)),
        "{server}"
    );
}
