//! A plan in the log, and on the wire.

use eventlog::{Sequence, Version};
use plans::{Entry, FileFound, FileOperation, OutcomePath, SeenFile};
use serde_json::{Value, json};

use super::files::{BadOperation, operation_of};
use super::*;

const PLAN: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const PARENT: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAA";
const WORKSPACE: &str = "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const HOME: &str = "home_01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn hash(digit: char) -> String {
    std::iter::repeat_n(digit, 64).collect()
}

fn plan(state: &str) -> Plan {
    let check = |job: &str, fingerprint: char, passed: bool| json!({ "job": job, "fingerprint": hash(fingerprint), "ended": { "passed": passed, "text": "said", "at": 5000 } });
    let record = json!({
        "facts": {
            "workspace": WORKSPACE, "root": "/a project", "title": "a title", "opened_by": "zoë", "opened_at": 1000,
            "parent": PARENT, "depth": 1, "strategy": "git-worktree", "home": HOME,
        },
        "state": state, "changed_at": 2000, "base": hash('a'), "sandbox": 1, "entries": 7, "changesets": 3,
        "files": 2, "fingerprint": hash('b'),
        "running": [{ "stay": "s", "job": "job_1", "actor": "me", "tool": "shell", "reason": "make", "since": 3000 }],
        "checks": [
            { "command": "never" },
            { "command": "runs", "run": { "job": "job_2", "fingerprint": hash('b') } },
            { "command": "passed", "run": check("job_3", 'b', true) },
            { "command": "failed", "run": check("job_4", 'b', false) },
            { "command": "outdated", "run": check("job_5", 'c', true) },
        ],
        "refused": { "what": "apply", "by": "me", "at": 4000, "conflicts": [{
            "path": "a\\\\b\\x0a", "kind": "both_renamed", "other": "c",
            "hunks": [{ "line": 4, "base": "x", "ours": "y", "theirs": "z" }],
        }] },
        "left_out": [{ "path": "vendored", "why": "repository" }],
    });
    Plan {
        id: PLAN.parse().unwrap(),
        version: Version::from_u64(9),
        last_sequence: Sequence::START,
        record: serde_json::from_value(record).unwrap(),
    }
}

#[test]
fn a_plan_is_told_whole() {
    let context = PlanContext {
        machine: None,
        sandbox_root: "/sandbox".to_owned(),
        children: vec!["plan_1".to_owned()],
        overlaps: Vec::new(),
        lines: Some((5, 6)),
        rescued: Vec::new(),
        notice: Some("look".to_owned()),
    };
    let check = |command: &str, state: &str, job: &str| json!({ "command": command, "state": state, "job": job, "text": "said", "at": "1970-01-01T00:00:05.000Z" });
    let expected = json!({
        "id": PLAN, "state": "sealed", "version": 9, "title": "a title", "workspace": WORKSPACE, "root": "/a project",
        "parent": PARENT, "children": ["plan_1"], "opened_by": "zoë", "opened_at": "1970-01-01T00:00:01.000Z",
        "changed_at": "1970-01-01T00:00:02.000Z", "strategy": "git-worktree", "sandbox_root": "/sandbox",
        "base": hash('a'), "fingerprint": hash('b'), "entries": 7, "changesets": 3,
        "summary": { "files": 2, "added_lines": 5, "removed_lines": 6 },
        "running": [{ "job": "job_1", "actor": "me", "since": "1970-01-01T00:00:03.000Z" }],
        "checks": [
            { "command": "never", "state": "missing" },
            { "command": "runs", "state": "running", "job": "job_2" },
            check("passed", "passed", "job_3"),
            check("failed", "failed", "job_4"),
            check("outdated", "outdated", "job_5"),
        ],
        "refused": { "what": "apply", "by": "me", "at": "1970-01-01T00:00:04.000Z", "conflicts": [{
            "path": "a\\\\b\\x0a", "other": "c", "kind": "both_renamed", "text": "both renamed it",
            "hunks": [{ "line": 4, "base": "x", "ours": "y", "theirs": "z" }],
        }] },
        "left_out": [{ "path": "vendored", "why": "repository" }],
        "notice": "look",
    });
    let told = serde_json::to_value(to_wire(&plan("sealed"), context)).unwrap();
    assert_eq!(told, expected);
}

#[test]
fn a_person_is_told_when_the_workspace_of_a_plan_that_is_not_over_is_gone() {
    for (state, presence, expected) in [
        ("open", Some(WorkspaceState::Present), None),
        (
            "open",
            Some(WorkspaceState::Missing),
            Some("its workspace is gone: there is nothing at its path"),
        ),
        (
            "sealed",
            Some(WorkspaceState::Replaced),
            Some("its workspace is gone: another directory is at its path"),
        ),
        (
            "open",
            Some(WorkspaceState::Unreachable),
            Some("its workspace's file system doesn't respond"),
        ),
        ("open", None, Some("its workspace was forgotten")),
        ("applied", Some(WorkspaceState::Missing), None),
    ] {
        let found = notice(&plan(state), presence);
        assert_eq!(found.as_deref(), expected, "{state} {presence:?}");
    }
}

#[test]
fn a_write_is_understood_or_refused_by_its_field() {
    let path = |text: &str| text.parse::<plans::RelPath>().unwrap();
    let write = |content: &[u8], seen| FileOperation::Write {
        path: path("a"),
        content: content.to_vec(),
        executable: None,
        seen,
    };
    let field = |field, why| Err(BadOperation::Field { field, why });
    let bad_path = |field, text: &str| {
        let bad = text.parse::<plans::RelPath>().unwrap_err();
        Err(BadOperation::Path { field, bad })
    };
    let with = |more: Value| {
        let mut operation = json!({ "do": "write", "path": "a" });
        operation
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        operation
    };
    for (operation, expected) in [
        (with(json!({ "text": "é" })), Ok(write("é".as_bytes(), None))),
        (with(json!({ "base64": "/w==" })), Ok(write(&[0xff], None))),
        (
            with(json!({ "text": "", "if_hash": "" })),
            Ok(write(b"", Some(SeenFile::Nothing))),
        ),
        (
            with(json!({ "text": "", "if_hash": hash('a') })),
            Ok(write(b"", Some(SeenFile::File(hash('a').parse().unwrap())))),
        ),
        (
            with(json!({ "text": "", "if_hash": "a" })),
            field("if_hash", "is not a hash, nor empty"),
        ),
        (
            with(json!({ "text": "", "base64": "" })),
            field("base64", "cannot be given together with `text`"),
        ),
        (
            with(json!({})),
            field("text", "is missing, and so is `base64`; give one of them"),
        ),
        (
            json!({ "do": "edit", "path": "a", "find": "", "replace": "" }),
            field("find", "is empty"),
        ),
        (
            json!({ "do": "rename", "from": "/a", "path": "b" }),
            bad_path("from", "/a"),
        ),
        (json!({ "do": "delete", "path": "" }), bad_path("path", "")),
        (
            json!({ "do": "chmod", "path": "a", "executable": true }),
            Ok(FileOperation::Chmod {
                path: path("a"),
                executable: true,
            }),
        ),
    ] {
        let shown = operation.to_string();
        let operation = serde_json::from_value(operation).unwrap();
        assert_eq!(operation_of(operation), expected, "{shown}");
    }
}

#[test]
fn a_file_is_text_if_it_is_text() {
    let entry = Entry::File {
        hash: hash('a').parse().unwrap(),
        size: 2,
        mode: 0o64,
    };
    let file = |content: &[u8]| FileFound::File {
        entry: entry.clone(),
        content: content.to_vec(),
    };
    for (found, expected) in [
        (
            file(b"ab"),
            json!({ "path": "p", "kind": "file", "text": "ab", "hash": hash('a'), "mode": "064" }),
        ),
        (
            file(b"\xff"),
            json!({ "path": "p", "kind": "file", "base64": "/w==", "hash": hash('a'), "mode": "064" }),
        ),
        (
            FileFound::Symlink {
                target: b"there".to_vec(),
            },
            json!({ "path": "p", "kind": "symlink", "target": "there" }),
        ),
        (
            FileFound::Directory {
                names: vec!["a/".to_owned()],
            },
            json!({ "path": "p", "kind": "directory", "names": ["a/"] }),
        ),
    ] {
        assert_eq!(serde_json::to_value(file_to_wire("p", found)).unwrap(), expected);
    }
}

#[test]
fn a_path_of_an_outcome_says_what_became_of_it() {
    let told = |before: Option<Entry>, after: Option<Entry>| {
        outcomes::path_to_wire(&OutcomePath {
            path: "a".parse().unwrap(),
            before,
            after,
            merged: true,
        })
    };
    let there = || Some(Entry::Directory);
    for (before, after, kind) in [
        (None, there(), "create"),
        (there(), there(), "modify"),
        (there(), None, "delete"),
    ] {
        let found = told(before, after);
        assert_eq!((found.kind.as_str(), found.merged), (kind, true));
    }
}
