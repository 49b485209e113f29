//! Servers on their way up: what they say too early, how long they take, and what others notice of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::json;

use crate::harness::{finish, wait_for};
use crate::lsp_stage::{Player, Stage, fault_server, problem, told, usual_hover};
use crate::mcp_stage::Agent;

#[test]
fn messages_before_the_answer_to_initialize_are_taken() {
    let early = json!([
        { "method": "window/logMessage", "params": { "type": 3, "message": "I begin early" } },
        { "method": "workspace/configuration", "params": { "items": [{ "section": "a" }] }, "kind": "request" },
        { "method": "client/registerCapability", "kind": "request", "params": { "registrations": [] } },
        { "method": "window/workDoneProgress/create", "kind": "request", "params": { "token": "early" } },
        { "method": "eslint/unknown", "kind": "request" },
        { "method": "telemetry/event", "params": {} },
    ]);
    let stage = Stage::new(&[Player::new("alpha", json!({ "before_initialize": early }))]);
    assert_eq!(stage.hovered("alpha"), (usual_hover(), 1));
    let answers: Vec<_> = stage
        .record("alpha")
        .into_iter()
        .filter(|message| message.get("method").is_none())
        .map(|mut message| {
            (
                message["id"].take(),
                message["result"].take(),
                message["error"]["code"].take(),
            )
        })
        .collect();
    assert_eq!(
        answers,
        [
            (json!("fault-1"), json!([null]), json!(null)),
            (json!("fault-2"), json!(null), json!(null)),
            (json!("fault-3"), json!(null), json!(null)),
            (json!("fault-4"), json!(null), json!(-32601)),
        ]
    );
    let log = stage.world.run(&["lsp", "log", "alpha"]).expect(0).stdout;
    assert!(log.contains("I begin early"), "{log}");
}

#[test]
fn a_slow_start_delays_nobody_who_wants_another_server() {
    // The script cannot know where it will lie; a relative path is in the workspace, where servers are started.
    let held = json!({ "initialize": { "hold_until_file": "go-on" } });
    let stage = Stage::new(&[Player::new("alpha", held), Player::new("beta", json!({}))]);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| stage.hover("alpha"))).collect();
        wait_for("the start of alpha", || {
            stage.server("alpha")["state"] == "starting"
        });
        stage.wait_for_sent("alpha", "initialize", 1);

        // All of this while alpha says nothing: the start of another server, questions to it, and its health.
        let place = stage.file("beta").display().to_string();
        stage.world.run(&["lsp", "start", &place]).expect(0);
        for _ in 0..10 {
            assert_eq!(stage.hovered("beta"), (usual_hover(), 1));
        }
        let health = stage.get(&stage.server_path("beta", "/health")).body;
        assert_eq!(health["answers"], true, "{health}");
        let health = stage.get(&stage.server_path("alpha", "/health")).body;
        assert_eq!(
            (&health["state"], health.get("answers")),
            (&json!("starting"), None),
            "{health}"
        );
        let answer = stage.ask("hover", "alpha", &json!({ "no_wait": true }));
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (503, &json!("server_restarting"))
        );
        assert!(waiting.iter().all(|client| !client.is_finished()));

        fs::write(stage.work().join("go-on"), "").unwrap();
        for client in waiting {
            assert_eq!(told(&client.join().unwrap()), (usual_hover(), 1));
        }
    });
    assert_eq!(stage.pids("alpha", "server").len(), 1);
}

#[test]
fn a_start_that_takes_too_long_wakes_everybody_with_the_reason() {
    let stage = Stage::new(&[Player::new("alpha", json!({ "initialize": "hang" }))
        .settings(json!({ "timeouts": { "startup_ms": 300 } }))]);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| stage.hover("alpha"))).collect();
        for client in waiting {
            let answer = client.join().unwrap();
            let (status, code, detail) = problem(&answer);
            assert_eq!((status, code), (502, "server_failed"), "{answer:?}");
            assert!(detail.contains("it was not ready after"), "{detail}");
        }
    });
    assert_eq!(stage.server("alpha")["state"], "failed");
}

#[test]
fn a_server_that_ends_at_once_is_reported_with_its_code_and_its_last_words() {
    let script = json!({ "exit_at_start": 7, "stderr": "cannot open libnothing.so\n" });
    let stage = Stage::new(&[Player::new("alpha", script)]);
    let answer = stage.hover("alpha");
    let (status, code, detail) = problem(&answer);
    assert_eq!((status, code), (502, "server_failed"), "{answer:?}");
    for part in ["code 7", "cannot open libnothing.so"] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

#[test]
fn a_server_that_is_still_indexing_says_so_and_is_never_taken_for_one_that_found_nothing() {
    let script = json!({
        "references": 0,
        "progress": { "title": "Indexing", "steps": 4, "hold_until_file": "indexed" },
        "server_status": true,
    });
    let stage = Stage::new(&[Player::new("alpha", script)]);
    stage
        .world
        .run(&["lsp", "start", stage.file("alpha").to_str().unwrap()])
        .expect(0);
    wait_for("the work to be known", || {
        stage.server("alpha")["readiness"] == "indexing"
    });

    let answer = stage.ask("references", "alpha", &json!({ "wait_ready": false }));
    let (status, code, detail) = problem(&answer);
    assert_eq!((status, code), (503, "server_not_ready"), "{answer:?}");
    assert!(detail.contains("Indexing"), "{detail}");
    let place = format!("{}:1:1", stage.file("alpha").display());
    let outcome = stage
        .world
        .run(&["lsp", "references", &place, "--no-wait"])
        .expect(1);
    assert_eq!(outcome.stdout, "", "{outcome:?}");
    assert!(
        outcome.stderr.contains("still reading the workspace"),
        "{outcome:?}"
    );
    let list = stage.world.run(&["lsp", "list"]).expect(0).stdout;
    assert!(list.contains("indexing"), "{list}");

    thread::scope(|scope| {
        let waiting = scope.spawn(|| stage.ask("references", "alpha", &json!({ "wait_ready": true })));
        fs::write(stage.work().join("indexed"), "").unwrap();
        let answer = waiting.join().unwrap();
        // Now nothing means nothing.
        assert_eq!(
            (answer.status, &answer.body["total"]),
            (200, &json!(0)),
            "{answer:?}"
        );
    });
}

#[test]
fn an_error_is_never_an_empty_answer() {
    let error = json!({ "fault": "error", "code": -32603, "message": "the index is broken" });
    let stage = Stage::new(&[Player::new(
        "alpha",
        json!({ "on": {
            "textDocument/references": error, "textDocument/hover": error, "textDocument/definition": error,
        } }),
    )]);
    for verb in ["references", "hover", "definition"] {
        let answer = stage.ask(verb, "alpha", &json!({}));
        let (status, code, detail) = problem(&answer);
        assert_eq!((status, code), (502, "server_error"), "{verb}: {answer:?}");
        assert!(detail.contains("the index is broken"), "{verb}: {detail}");
        let place = format!("{}:1:1", stage.file("alpha").display());
        let outcome = stage.world.run(&["lsp", verb, &place]).expect(1);
        assert_eq!(outcome.stdout, "", "{outcome:?}");
        assert!(outcome.stderr.contains("the index is broken"), "{outcome:?}");
    }
    // And what it cannot do is not "nothing" either.
    let answer = stage.ask("implementation", "alpha", &json!({}));
    assert_eq!(problem(&answer).1, "query_unsupported", "{answer:?}");
    assert_eq!(stage.pids("alpha", "server").len(), 1);
}

/// A stage whose server is only in a virtual environment, and the `PATH` of a shell in which that was activated. The daemon was
/// started before.
fn with_a_venv() -> (Stage, String) {
    let player = Player::new("alpha", json!({})).settings(json!({ "command": ["server-of-a-venv"] }));
    let stage = Stage::new(&[player]);
    let venv = stage.world.path().join("venv/bin");
    fs::create_dir_all(&venv).unwrap();
    let script = format!(
        "#!/bin/sh\nexec '{}' --script '{}'\n",
        fault_server().display(),
        stage.path("alpha", "script").display()
    );
    fs::write(venv.join("server-of-a-venv"), script).unwrap();
    fs::set_permissions(venv.join("server-of-a-venv"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", venv.display(), std::env::var("PATH").unwrap());
    (stage, path)
}

#[test]
fn a_server_is_found_where_the_caller_has_it() {
    for what in ["hover", "start"] {
        let (stage, path) = with_a_venv();
        let file = stage.file("alpha").display().to_string();
        let place = if what == "hover" {
            format!("{file}:1:1")
        } else {
            file
        };
        let before = stage.world.run(&["lsp", what, &place]);
        assert_ne!(before.code, Some(0), "{before:?}");
        let mut command = stage.world.command(&["lsp", what, &place]);
        command.env("PATH", path);
        finish(command).expect(0);
        assert_eq!(stage.server("alpha")["state"], "ready", "{what}");
    }
}

#[test]
fn an_agent_finds_servers_where_it_was_started() {
    let (stage, path) = with_a_venv();
    let hover = json!({ "at": format!("{}:1:1", stage.file("alpha").display()) });
    let mut outside = Agent::started(stage.world.command(&["mcp"])).introduced("outside", &json!({}));
    let told = outside.call("lsp_hover", &hover);
    assert!(told.failed, "{told:?}");
    let mut command = stage.world.command(&["mcp"]);
    command.env("PATH", path);
    let mut inside = Agent::started(command).introduced("inside", &json!({}));
    inside.done("lsp_hover", &hover);
    // One whose path is too long to be told joins all the same.
    let mut command = stage.world.command(&["mcp"]);
    let long = format!("{}:{}", "/long".repeat(4000), std::env::var("PATH").unwrap());
    command.env("PATH", long);
    Agent::started(command)
        .introduced("far", &json!({}))
        .done("job_status", &json!({}));
}
