//! What `tidelock lsp` takes, and what it refuses before it asks anybody.

use std::fs;

use serde_json::{Value, json};

use crate::harness::World;

#[test]
fn what_is_wrong_with_a_place_is_said_and_no_daemon_is_started_for_it() {
    let world = World::new();
    fs::write(world.path().join("a.rs"), "").unwrap();
    for (arguments, code, expected) in [
        (
            &["hover", "a.rs"] as &[&str],
            2,
            "the line is missing; write FILE:LINE:COL",
        ),
        (&["hover", "a.rs:0:1"], 2, "lines count from 1"),
        (&["hover", "a.rs:1:0"], 2, "columns count from 1"),
        (&["hover", "a.rs:1:x"], 2, "`x` is not a column number"),
        (&["hover", "b.rs:1:1"], 4, "`b.rs` does not exist"),
        (&["hover", ".:1:1"], 4, "`.` is a directory, not a file"),
        (&["symbols", "b.rs"], 4, "`b.rs` does not exist"),
        (
            &["diagnostics", "a.rs", "--workspace", "b"],
            4,
            "`b` does not exist",
        ),
        (
            &["workspace-symbols", "x", "--in", "a.rs"],
            4,
            "`a.rs` is not a directory",
        ),
        (
            &["code-actions", "a.rs:3:1-2:1"],
            2,
            "the end is before the beginning",
        ),
        (&["start", "b.rs"], 4, "`b.rs` does not exist"),
        (&["start", "ruff", "--in", "b"], 4, "`b` does not exist"),
        (&["trust", "b.json", "3f"], 4, "`b.json` does not exist"),
        (&["config", "b"], 4, "`b` does not exist"),
        (&["request", "ruff", "m", "{"], 2, "this is not JSON"),
        (
            &["hover", "a.rs:1:1", "--wait-ready", "--no-wait"],
            2,
            "cannot be used with",
        ),
        (
            &["hover", "a.rs:1:1", "--timeout", "soon"],
            2,
            "`soon` is not a duration",
        ),
        (&["stop"], 2, "required arguments"),
        (&["stop", "ruff", "--all"], 2, "cannot be used with"),
        (&["rename", "a.rs:1:1"], 2, "required arguments"),
    ] {
        let arguments: Vec<&str> = ["lsp"].iter().chain(arguments).copied().collect();
        let outcome = world.run(&arguments).expect(code);
        assert!(outcome.stderr.contains(expected), "{arguments:?}: {outcome:?}");
        assert_eq!(outcome.stdout, "");
        let json_arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let error = world.run(&json_arguments).expect(code).json();
        let expected_code = if code == 2 { "usage" } else { "path_unusable" };
        assert_eq!(error["error"]["code"], expected_code, "{arguments:?}: {error}");
    }
    assert!(!world.path().join("home").exists(), "a daemon was started");
}

#[test]
fn a_server_that_was_never_used_is_not_there() {
    let world = World::new();
    for arguments in [
        &["stop", "ruff"] as &[&str],
        &["restart", "ruff"],
        &["restart", "ruff", "--generation", "3"],
        &["health", "ruff"],
        &["log", "ruff"],
        &["request", "ruff", "textDocument/hover", "{}"],
        &["start", "ruff"],
    ] {
        let arguments: Vec<&str> = ["lsp"].iter().chain(arguments).copied().collect();
        let outcome = world.run(&arguments).expect(4);
        assert!(
            outcome
                .stderr
                .starts_with("error: no language server with the id or name `ruff` has been used\nhint: "),
            "{arguments:?}: {outcome:?}"
        );
        let json_arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let error = world.run(&json_arguments).expect(4).json();
        assert_eq!(error["error"]["code"], "server_not_found");
    }
}

#[test]
fn with_no_server_there_is_nothing_to_list_or_to_stop() {
    let world = World::new();
    for (arguments, text) in [
        (
            &["lsp", "list"] as &[&str],
            "No language servers have been used yet. A query starts the ones it needs.\n",
        ),
        (&["lsp", "stop", "--all"], "No language servers were running.\n"),
    ] {
        assert_eq!(world.run(arguments).expect(0).stdout, text);
        let json_arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        assert_eq!(
            world.run(&json_arguments).expect(0).json(),
            json!({ "servers": [] })
        );
    }
    let config = world.run(&["lsp", "config", "--json"]).expect(0).json();
    let directory = world.path().canonicalize().unwrap();
    assert_eq!(config["workspace"], Value::from(directory.to_str().unwrap()));
}
