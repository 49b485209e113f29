//! What cannot be asked of a server: a clear message, a stable code, and an exit code that says who is to blame.

use std::fs;

use serde_json::json;

use crate::harness::finish;
use crate::lsp_stage::{Player, Stage};

/// More than a document may have.
const TOO_LARGE_BYTES: usize = 8 * 1024 * 1024 + 1;

/// A refused command: what it says to people and to programs.
#[track_caller]
fn check(stage: &Stage, arguments: &[&str], exit: i32, code: &str, message: &str) {
    let command = |more: &[&str]| {
        let mut command = stage.world.command(&["lsp"]);
        command.args(arguments).args(more).current_dir(stage.work());
        finish(command)
    };
    let outcome = command(&[]).expect(exit);
    assert_eq!(outcome.stdout, "", "{arguments:?}: {outcome:?}");
    assert!(
        outcome.stderr.starts_with("error: "),
        "{arguments:?}: {outcome:?}"
    );
    assert!(outcome.stderr.contains(message), "{arguments:?}: {outcome:?}");
    // What to do next is said; the parser of the command line says it in its own words.
    let hint = if exit == 2 { "try '--help'" } else { "\nhint: " };
    assert!(outcome.stderr.contains(hint), "{arguments:?}: {outcome:?}");
    assert!(
        !outcome.stderr.contains("`detail`"),
        "a member of JSON is not for people: {outcome:?}"
    );
    let error = command(&["--json"]).expect(exit).json();
    assert_eq!(error["error"]["code"], code, "{arguments:?}: {error}");
}

#[test]
fn what_is_wrong_with_a_file_or_a_place_is_said() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    let work = stage.work();
    fs::write(work.join("binary.alpha"), b"\x00\xff\xfe\x01").unwrap();
    fs::write(work.join("large.alpha"), "x".repeat(TOO_LARGE_BYTES)).unwrap();
    fs::write(work.join("main.unknown"), "").unwrap();
    fs::create_dir(work.join("directory.alpha")).unwrap();
    fs::write(work.join("outside.txt"), "").unwrap();
    for (arguments, exit, code, message) in [
        (
            &["hover", "main.alpha"] as &[&str],
            2,
            "usage",
            "the line is missing; write FILE:LINE:COL",
        ),
        (&["hover", "main.alpha:0:1"], 2, "usage", "lines count from 1"),
        (&["hover", "main.alpha:1:0"], 2, "usage", "columns count from 1"),
        // A name may have colons in it, so this is taken for one.
        (
            &["hover", "main.alpha:one:1"],
            4,
            "path_unusable",
            "`main.alpha:one` does not exist",
        ),
        (
            &["hover", "missing.alpha:1:1"],
            4,
            "path_unusable",
            "`missing.alpha` does not exist",
        ),
        (
            &["hover", "directory.alpha:1:1"],
            4,
            "path_unusable",
            "`directory.alpha` is a directory",
        ),
        (&["hover", "main.alpha:999:1"], 1, "position_invalid", "999"),
        (&["hover", "main.alpha:1:999"], 1, "position_invalid", "999"),
        (
            &["hover", "binary.alpha:1:1"],
            1,
            "file_not_usable",
            "binary.alpha",
        ),
        (&["hover", "large.alpha:1:1"], 1, "file_not_usable", "large.alpha"),
        (
            &["hover", "main.unknown:1:1"],
            4,
            "no_server_for_file",
            "No language server is configured",
        ),
        (
            &["hover", "main.alpha:1:1", "--server", "nobody"],
            4,
            "server_not_found",
            "`nobody` is not a language server for",
        ),
        (
            &["implementation", "main.alpha:1:1"],
            1,
            "query_unsupported",
            "alpha",
        ),
    ] {
        check(&stage, arguments, exit, code, message);
    }
    // None of it has harmed the server.
    stage.hovered("alpha");
    assert_eq!(stage.pids("alpha", "server").len(), 1);
    assert_eq!(stage.server("alpha")["leases"], 0);
}

#[test]
fn a_server_that_is_unknown_ambiguous_or_stopped_is_not_guessed_at() {
    let stage = Stage::new(&[Player::new("alpha", json!({}))]);
    stage.hovered("alpha");
    // A second repository with a server of the same name.
    let other = stage.world.path().join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    fs::write(other.join("main.alpha"), "text").unwrap();
    let second = other.join("main.alpha");
    let answer = stage.post(
        "/v1/lsp/hover",
        &json!({ "path": second, "line": 1, "column": 1 }),
    );
    assert_eq!(answer.unwrap().status, 200);
    assert_eq!(stage.pids("alpha", "server").len(), 2, "one for each workspace");

    for arguments in [
        &["health", "nobody"] as &[&str],
        &["stop", "nobody"],
        &["restart", "nobody"],
        &["log", "nobody"],
        &["request", "nobody", "fault/echo"],
    ] {
        check(
            &stage,
            arguments,
            4,
            "server_not_found",
            "no language server with the id or name `nobody` has been used",
        );
    }
    // Whoever stands in one of the two means that one; from elsewhere it is not clear.
    let mut command = stage.world.command(&["lsp", "health", "alpha", "--json"]);
    command.current_dir(&other);
    let health = finish(command).expect(0).json();
    assert_eq!(health["root"], other.canonicalize().unwrap().to_str().unwrap());
    let refused = stage
        .world
        .run(&["lsp", "stop", "alpha", "--json"])
        .expect(4)
        .json();
    assert_eq!(refused["error"]["code"], "server_ambiguous", "{refused}");
    let refused = stage.world.run(&["lsp", "stop", "alpha"]).expect(4);
    for part in ["there are 2 servers named `alpha`", "/project", "/other"] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }

    let mut command = stage.world.command(&["lsp", "stop", "alpha"]);
    command.current_dir(stage.work());
    finish(command).expect(0);
    for arguments in [
        &["hover", "main.alpha:1:1"] as &[&str],
        &["references", "main.alpha:1:1"],
    ] {
        check(&stage, arguments, 4, "server_stopped", "alpha");
    }
    assert_eq!(
        stage.pids("alpha", "server").len(),
        2,
        "a question starts nothing that was stopped"
    );
    let mut command = stage.world.command(&["lsp", "health", "alpha", "--json"]);
    command.current_dir(&other);
    assert_eq!(
        finish(command).expect(0).json()["state"],
        "ready",
        "the other one lives"
    );
}

#[test]
fn a_configuration_that_cannot_be_used_is_said_and_the_rest_works() {
    let stage =
        Stage::new(&[Player::new("alpha", json!({})).settings(json!({ "command": ["/nowhere/server"] }))]);
    check(
        &stage,
        &["hover", "main.alpha:1:1"],
        1,
        "server_not_installed",
        "install it, or correct its command",
    );
}
