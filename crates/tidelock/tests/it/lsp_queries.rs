//! Queries on their way to the daemon and back. The daemon is played by the test.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Outcome, World};
use crate::played::{self, answer};

/// The daemon's answer to a query, what it was asked, and what the user saw.
fn ask(world: &World, arguments: &[&str], said: &Value) -> (String, Value, Outcome) {
    let asked = played::recording(world, answer("200 OK", said));
    let arguments: Vec<&str> = ["lsp"].iter().chain(arguments).copied().collect();
    let outcome = world.run(&arguments);
    fs::remove_file(world.home().socket()).unwrap();
    let (head, body) = asked.recv_timeout(Duration::from_secs(30)).unwrap();
    (head.lines().next().unwrap().to_owned(), body, outcome)
}

/// An answer that has the members of all of them, and nothing in it.
fn nothing() -> Value {
    json!({
        "locations": [], "completions": [], "files": [], "actions": [], "signatures": [], "symbols": [], "calls": [],
        "diagnostics": [], "diff": "", "total": 0, "incomplete": false, "answered_by": [], "workspace": "/w",
    })
}

#[test]
fn each_verb_asks_its_own_question_and_nothing_is_an_answer() {
    let world = World::new();
    fs::write(world.path().join("a:1.rs"), "fn main() {}\n").unwrap();
    let root = world.path().canonicalize().unwrap();
    let root = root.to_str().unwrap();
    let file = format!("{root}/a:1.rs");
    let at = |more: Value| {
        let mut query = json!({ "path": file, "line": 1, "column": 4 });
        query
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        query
    };
    let place = "a:1.rs:1:4";
    for (arguments, verb, expected, text) in [
        (
            &["diagnostics", "a:1.rs"] as &[&str],
            "diagnostics",
            json!({ "path": file }),
            "no diagnostics",
        ),
        (&["hover", place], "hover", at(json!({})), "no hover"),
        (
            &["hover", "a:1.rs:2"],
            "hover",
            json!({ "path": file, "line": 2, "column": 1 }),
            "no hover",
        ),
        (
            &["completions", place],
            "completions",
            at(json!({})),
            "no completions",
        ),
        (
            &["definition", place],
            "definition",
            at(json!({})),
            "no definition",
        ),
        (
            &["declaration", place],
            "declaration",
            at(json!({})),
            "no declaration",
        ),
        (
            &["type-definition", place],
            "type-definition",
            at(json!({})),
            "no type definition",
        ),
        (
            &["implementation", place],
            "implementation",
            at(json!({})),
            "no implementation",
        ),
        (
            &["references", place],
            "references",
            at(json!({})),
            "no references",
        ),
        (
            &["references", place, "--without-declaration", "--wait-ready"],
            "references",
            at(json!({ "without_declaration": true, "wait_ready": true })),
            "no references",
        ),
        (
            &["rename", place, "b"],
            "rename",
            at(json!({ "new_name": "b" })),
            "no changes",
        ),
        (
            &[
                "code-actions",
                "a:1.rs:1:4-2:1",
                "--kind",
                "quickfix",
                "--kind",
                "source",
            ],
            "code-actions",
            at(json!({ "end_line": 2, "end_column": 1, "kinds": ["quickfix", "source"] })),
            "no code actions",
        ),
        (
            &["format", "a:1.rs"],
            "format",
            json!({ "path": file }),
            "no changes",
        ),
        (
            &[
                "signature",
                place,
                "--no-wait",
                "--timeout",
                "5s",
                "--server",
                "x",
                "--workspace",
                ".",
            ],
            "signature",
            at(json!({ "no_wait": true, "timeout_ms": 5000, "server": "x", "workspace": root })),
            "no signature",
        ),
        (
            &["symbols", "./a:1.rs"],
            "symbols",
            json!({ "path": file }),
            "no symbols",
        ),
        (
            &["workspace-symbols"],
            "workspace-symbols",
            json!({ "path": root, "query": "" }),
            "no symbols",
        ),
        (
            &["workspace-symbols", "S", "--in", "."],
            "workspace-symbols",
            json!({ "path": root, "query": "S" }),
            "no symbols",
        ),
        (
            &["calls", place],
            "calls",
            at(json!({ "direction": "incoming" })),
            "no calls",
        ),
        (
            &["calls", place, "--outgoing"],
            "calls",
            at(json!({ "direction": "outgoing" })),
            "no calls",
        ),
    ] {
        let (request, mut body, outcome) = ask(&world, arguments, &nothing());
        assert_eq!(request, format!("POST /v1/lsp/{verb} HTTP/1.1"));
        // Where the caller has its programs goes along with every question.
        let environment = body.as_object_mut().unwrap().remove("environment").unwrap();
        assert!(environment["PATH"].is_string(), "{arguments:?}: {environment}");
        assert_eq!(body, expected, "{arguments:?}");
        let expected = Outcome {
            code: Some(0),
            stdout: format!("{text}\n"),
            stderr: String::new(),
        };
        assert_eq!(outcome, expected, "{arguments:?}");
    }
}

#[test]
fn errors_in_the_code_are_an_answer_and_a_server_that_is_silent_a_note() {
    let world = World::new();
    fs::write(world.path().join("a.py"), "").unwrap();
    let said = json!({
        "diagnostics": [{
            "path": "a.py", "severity": "error", "source": "Pyright", "code": "reportX",
            "range": { "start": { "line": 3, "column": 5 }, "end": { "line": 3, "column": 6 } },
            "message": "bad \u{1b}[31mred",
        }],
        "total": 1,
        "answered_by": [], "workspace": world.path().canonicalize().unwrap(),
        "not_answered": [{ "server": "ruff", "code": "server_failed", "detail": "It ended." }],
    });
    let (_, _, outcome) = ask(&world, &["diagnostics", "a.py"], &said);
    let expected = Outcome {
        code: Some(0),
        stdout: "a.py:3:5: error[reportX]: bad \u{fffd}[31mred (Pyright)\n1 error\n".to_owned(),
        stderr: "note: ruff did not answer (server_failed): It ended.\n".to_owned(),
    };
    assert_eq!(outcome, expected);
    let (_, _, outcome) = ask(&world, &["diagnostics", "a.py", "--json"], &said);
    assert_eq!((outcome.json(), outcome.stderr.as_str()), (said, ""));
}

#[test]
fn a_refusal_says_what_to_do_on_a_command_line() {
    let world = World::new();
    fs::write(world.path().join("a.py"), "").unwrap();
    for (status, code, exit, hint) in [
        (
            "503 Service Unavailable",
            "server_not_ready",
            1,
            "use --wait-ready, or try again in a moment",
        ),
        (
            "503 Service Unavailable",
            "server_restarting",
            1,
            "try again in a moment, or leave --no-wait out",
        ),
        (
            "504 Gateway Timeout",
            "server_timeout",
            1,
            "try again with a larger --timeout, or check `tidelock lsp list`",
        ),
        ("404 Not Found", "no_server_for_file", 4, "as the daemon says"),
        ("409 Conflict", "server_stopped", 4, "as the daemon says"),
        (
            "424 Failed Dependency",
            "server_not_installed",
            1,
            "install it as described above and try again; you don't need to restart anything",
        ),
        (
            "502 Bad Gateway",
            "server_failed",
            1,
            "check `tidelock lsp health` and `tidelock lsp log`, fix the problem, then run `tidelock lsp restart`",
        ),
        (
            "502 Bad Gateway",
            "server_error",
            1,
            "`tidelock lsp log` shows the server's messages; it may need different input",
        ),
        (
            "422 Unprocessable Content",
            "position_invalid",
            1,
            "lines and columns count from 1, and columns count characters",
        ),
        (
            "422 Unprocessable Content",
            "file_not_usable",
            1,
            "choose a file that exists, is UTF-8 text, and isn't too large",
        ),
    ] {
        let problem = json!({ "code": code, "detail": "It is so.", "advice": "as the daemon says" });
        played::recording(&world, answer(status, &problem));
        let outcome = world.run(&["lsp", "hover", "a.py:1:1"]);
        fs::remove_file(world.home().socket()).unwrap();
        let expected = Outcome {
            code: Some(exit),
            stdout: String::new(),
            stderr: format!("error: It is so.\nhint: {hint}\n"),
        };
        assert_eq!(outcome, expected, "{code}");
    }
}

#[test]
fn a_server_that_has_moved_is_not_touched() {
    let world = World::new();
    // The list and the refusal in one, since the daemon always says the same.
    let server = json!({
        "id": "ruff-1", "state": "ready", "server": "ruff", "root": "/r", "generation": 4, "since_ms": 1,
        "restarts": 0, "leases": 0, "open_documents": 0, "pending_requests": 0, "requests": 0,
    });
    let asked = played::recording(&world, answer("200 OK", &json!({ "servers": [server] })));
    // The answer to the change is not a server, which is said; what matters is what was asked.
    world
        .run(&["lsp", "restart", "ruff", "--generation", "3"])
        .expect(3);
    let requests: Vec<(String, Value)> = asked
        .try_iter()
        .map(|(head, body)| (head.lines().next().unwrap().to_owned(), body))
        .collect();
    assert_eq!(
        requests,
        [
            ("GET /v1/lsp/servers HTTP/1.1".to_owned(), Value::Null),
            (
                "POST /v1/lsp/servers/ruff-1/restart HTTP/1.1".to_owned(),
                json!({ "generation": 3 })
            ),
        ]
    );
    fs::remove_file(world.home().socket()).unwrap();

    let refusal =
        json!({ "code": "stale_generation", "detail": "You saw 3.", "servers": [server], "current": server });
    played::recording(&world, answer("409 Conflict", &refusal));
    let outcome = world.run(&["lsp", "list"]).expect(4);
    assert!(
        outcome
            .stderr
            .contains("check it with `tidelock lsp list`, then try again"),
        "{outcome:?}"
    );
}
