//! The official Python SDK as a client, over both transports and with both lifecycles.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::{finish, wait_for};
use crate::job_stage::{Beside, NOBODY, left_behind};
use crate::mcp_clients_stage::{PythonClient, Reach, answers, path_with_servers, python_with_sdk};
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 3] = [
    ("a.txt", "one\ntwo\nthree\n"),
    ("b.txt", "b\n"),
    (
        "greet.py",
        "def greet(name: str) -> str:\n    return \"hello \" + name\n\n\nprint(greet(\"you\"))\n",
    ),
];

/// Every tool with what it is called with, in an order that makes sense.
fn every_tool() -> Vec<(&'static str, Value)> {
    let place = || json!({ "at": "greet.py:1:5" });
    vec![
        ("plan_open", json!({ "title": "by the SDK" })),
        ("plan_read", json!({ "path": "a.txt" })),
        (
            "plan_edit",
            json!({ "path": "a.txt", "find": "two", "replace": "2" }),
        ),
        ("plan_write", json!({ "path": "c/new.txt", "text": "new\n" })),
        ("plan_delete", json!({ "path": "b.txt" })),
        (
            "plan_shell",
            json!({ "command": "cat a.txt && echo by shell > shell.txt" }),
        ),
        ("plan_check", json!({ "commands": ["test -e c/new.txt"] })),
        ("plan_diff", json!({})),
        ("overlaps", json!({})),
        ("context", json!({ "query": "greet" })),
        (
            "job_start",
            json!({ "command": "echo from a job", "wait_seconds": 30 }),
        ),
        ("job_status", json!({ "job": "$job" })),
        ("job_logs", json!({ "job": "$job" })),
        ("job_start", json!({ "command": "sleep 600", "wait_seconds": 0 })),
        ("job_cancel", json!({ "job": "$job" })),
        ("lsp_hover", place()),
        ("lsp_definition", json!({ "at": "greet.py:5:7" })),
        ("lsp_declaration", json!({ "at": "greet.py:5:7" })),
        ("lsp_type_definition", json!({ "at": "greet.py:2:23" })),
        ("lsp_implementation", place()),
        ("lsp_references", place()),
        ("lsp_diagnostics", json!({ "path": "greet.py" })),
        ("lsp_symbols", json!({ "path": "greet.py" })),
        (
            "lsp_workspace_symbols",
            json!({ "name": "greet", "path": "greet.py" }),
        ),
        ("lsp_calls", place()),
        ("lsp_signature", json!({ "at": "greet.py:5:13" })),
        ("lsp_completions", json!({ "at": "greet.py:5:8" })),
        (
            "lsp_rename",
            json!({ "at": "greet.py:1:5", "new_name": "welcome" }),
        ),
        ("lsp_code_actions", place()),
        ("lsp_format", json!({ "path": "greet.py" })),
        ("plan_apply", json!({})),
        ("plan_undo", json!({})),
    ]
}

/// Tools that Python's servers may have no answer to. That is an answer too, and is told as one.
const MAY_REFUSE: [&str; 4] = [
    "lsp_implementation",
    "lsp_declaration",
    "lsp_calls",
    "lsp_type_definition",
];

#[test]
fn every_tool_can_be_called_over_stdio_with_a_handshake() {
    check_every_tool(Reach::Stdio, "legacy", "2025-11-25");
}

#[test]
fn every_tool_can_be_called_over_http_without_one() {
    check_every_tool(Reach::Http, "2026-07-28", "2026-07-28");
}

fn check_every_tool(reach: Reach, mode: &'static str, protocol: &str) {
    let Some(python) = python_with_sdk() else { return };
    let project = Project::with_git(&BEFORE);
    fs::create_dir_all(project.world.path().join("home")).unwrap();
    fs::write(
        project.world.path().join("home/config.toml"),
        "[mcp]\napply = \"allow\"\n",
    )
    .unwrap();
    let mut up = project.command(&["up"]);
    up.env("PATH", path_with_servers());
    finish(up).expect(0);
    let client = PythonClient {
        project: &project,
        python,
        reach,
        mode,
        name: "sdk",
    };

    let mut steps = vec![json!({ "tools": {} })];
    let directory = project.root.to_str().unwrap();
    for (tool, mut arguments) in every_tool() {
        // Over HTTP a client has no directory but the one that it names.
        let takes_one = !(tool.starts_with("plan_") || tool.starts_with("job_") && tool != "job_start")
            || tool == "plan_open";
        if reach == Reach::Http && takes_one {
            arguments["directory"] = json!(directory);
        }
        steps.push(json!({ "call": tool, "with": arguments }));
    }
    steps.push(json!({ "resources": {} }));
    let (spoken, results) = client.run(&Value::Array(steps));
    assert_eq!(spoken, protocol);

    let listed: Vec<&str> = results[0]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut called: Vec<&str> = every_tool().iter().map(|(tool, _)| *tool).collect();
    called.sort_unstable();
    called.dedup();
    assert_eq!(listed, called, "every tool that is listed is called here");
    let mut texts = BTreeMap::new();
    for result in &results[1..results.len() - 1] {
        let (tool, text) = (result["tool"].as_str().unwrap(), result["text"].as_str().unwrap());
        println!("== {tool}\n{text}");
        assert!(!text.is_empty(), "{tool} says nothing");
        assert!(
            result["error"] == false || MAY_REFUSE.contains(&tool),
            "{tool}: {text}"
        );
        texts.insert(tool, text);
    }
    for (tool, part) in [
        ("plan_read", "two"),
        ("plan_shell", "one\n2\nthree"),
        ("plan_diff", "+2"),
        ("job_logs", "from a job"),
        ("context", "def greet"),
        ("lsp_hover", "greet"),
        ("lsp_references", "greet.py:5:7"),
        ("lsp_rename", "welcome"),
        ("plan_apply", "was applied: 4 files"),
        ("plan_undo", "was undone: 4 files"),
    ] {
        assert!(
            texts[tool].contains(part),
            "{tool}: {part:?} is not in {}",
            texts[tool]
        );
    }
    let resources = results.last().unwrap();
    let overview = resources["resources"]["tidelock://overview"].as_str().unwrap();
    assert!(!overview.is_empty());
    assert_eq!(
        resources["templates"],
        json!(["tidelock://plans/{id}/diff", "tidelock://jobs/{id}/logs"])
    );
    assert_eq!(project.tree(), files(&BEFORE), "it was applied, and taken back");
}

#[test]
fn who_stops_waiting_stops_the_command_and_who_leaves_keeps_the_plan() {
    let Some(python) = python_with_sdk() else { return };
    for (reach, mode) in [(Reach::Stdio, "legacy"), (Reach::Http, "2026-07-28")] {
        let project = Project::with_git(&BEFORE);
        project.run(&["up"]).expect(0);
        let client = PythonClient {
            project: &project,
            python: python.clone(),
            reach,
            mode,
            name: "sdk",
        };
        let directory = project.root.to_str().unwrap();
        let begun = |name: &str| {
            project
                .world
                .path()
                .join(format!("begun-{name}"))
                .display()
                .to_string()
        };
        let wait = |name: &str| {
            let line = format!("echo {name} > {name}.txt; touch {}; sleep 600", begun(name));
            json!({ "command": line, "wait_seconds": 60 })
        };
        // The files that say that a command has begun are not in the sandbox, so they go through a directory that it sees.
        let open = json!({ "call": "plan_open", "with": { "title": "left", "directory": directory } });
        let steps = json!([
            open,
            { "cancel": "plan_shell", "with": wait("one"), "when": begun("one") },
            { "call": "plan_read", "with": { "path": "a.txt" } },
        ]);
        let (_, results) = client.run(&steps);
        assert_eq!(
            results[1],
            json!({ "tool": "plan_shell", "cancelled": true }),
            "{reach:?}"
        );
        assert_eq!(
            results[2]["error"], false,
            "it goes on after that: {}",
            results[2]
        );

        let steps = json!([open, { "leave": "plan_shell", "with": wait("two"), "when": begun("two") }]);
        assert_eq!(finish(client.command(&steps)).code, Some(0));
        wait_for("both commands to be cancelled", || {
            let listed = project.run(&["job", "list", "--all", "--json"]).expect(0).json();
            let jobs = listed["jobs"].as_array().unwrap();
            jobs.len() == 2 && jobs.iter().all(|job| job["state"] == "cancelled")
        });
        wait_for("nothing to be left behind", || {
            left_behind(&project.world) == NOBODY
        });

        let listed = project.run(&["plan", "list", "--json"]).expect(0).json();
        let plans = listed["plans"].as_array().unwrap();
        let found: Vec<(&str, u64)> = plans
            .iter()
            .map(|plan| {
                (
                    plan["state"].as_str().unwrap(),
                    plan["summary"]["files"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [("open", 1), ("open", 1)],
            "{reach:?}: what they had done is kept"
        );
        assert_eq!(project.tree(), files(&BEFORE));
    }
}

#[test]
fn two_clients_at_once_change_one_repository_and_one_is_taken_back() {
    let Some(python) = python_with_sdk() else { return };
    let project = Project::with_git(&BEFORE);
    project.run(&["up"]).expect(0);
    let mark = |name: &str| project.world.path().join(name).display().to_string();
    let work = |mine: &str, theirs: &str, path: &str, find: &str, replace: &str| {
        json!([
            { "call": "plan_open", "with": { "title": mine } },
            { "call": "plan_edit", "with": { "path": path, "find": find, "replace": replace } },
            { "touch": mark(mine) },
            { "wait": mark(theirs) },
            { "call": "overlaps", "with": {} },
            { "call": "plan_diff", "with": {} },
            { "call": "plan_apply", "with": {} },
        ])
    };
    let client = |name| PythonClient {
        project: &project,
        python: python.clone(),
        reach: Reach::Stdio,
        mode: "legacy",
        name,
    };
    let (one, two) = (client("one"), client("two"));
    let mut first = Beside::start(
        &project.world,
        one.command(&work("one", "two", "a.txt", "one", "1")),
    );
    let mut second = Beside::start(
        &project.world,
        two.command(&work("two", "one", "a.txt", "three", "3")),
    );
    for (client, other, beside) in [("one", "two", &mut first), ("two", "one", &mut second)] {
        let code = beside.wait_code();
        let (stdout, stderr) = beside.said();
        let (_, results) = answers(&crate::harness::Outcome {
            code: Some(code),
            stdout,
            stderr,
        });
        let said = |position: usize| results[position]["text"].as_str().unwrap().to_owned();
        assert!(
            said(4).contains(&format!("({other})")),
            "{client} sees the other one: {}",
            said(4)
        );
        assert!(said(6).contains("was applied: 1 file."), "{client}: {}", said(6));
    }
    let both = files(&[("a.txt", "1\ntwo\n3\n"), BEFORE[1], BEFORE[2]]);
    assert_eq!(project.tree(), both);

    let listed = project.run(&["plan", "list", "--all", "--json"]).expect(0).json();
    let plans = listed["plans"].as_array().unwrap();
    let mut found: Vec<(String, String)> = plans
        .iter()
        .map(|plan| {
            let actor = plan["opened_by"].as_str().unwrap().split('#').next().unwrap();
            (actor.to_owned(), plan["state"].as_str().unwrap().to_owned())
        })
        .collect();
    found.sort();
    let applied = |name: &str| (name.to_owned(), "applied".to_owned());
    assert_eq!(found, [applied("one"), applied("two")]);
    let id = plans.iter().find(|plan| plan["title"] == "one").unwrap()["id"]
        .as_str()
        .unwrap();
    project.run(&["plan", "undo", id]).expect(0);
    assert_eq!(
        project.tree(),
        files(&[("a.txt", "one\ntwo\n3\n"), BEFORE[1], BEFORE[2]])
    );
}
