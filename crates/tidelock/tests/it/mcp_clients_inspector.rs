//! The command line of the MCP inspector as a client.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{finish, program};
use crate::mcp_clients_stage::installed;
use crate::plan_stage::{Project, files};

const BEFORE: [(&str, &str); 1] = [("a.txt", "one\n")];

/// What the inspector says to one method.
#[track_caller]
fn inspect(project: &Project, inspector: &Path, arguments: &[&str]) -> Value {
    let home = project.world.path();
    let mut command = Command::new(inspector);
    command
        .args(["--cli", "-e"])
        .arg(format!("TIDELOCK_HOME={}", home.join("home").display()))
        .arg("--cwd")
        .arg(&project.root)
        .args(arguments)
        .arg("--")
        .arg(program())
        .args(["mcp", "--allow-apply"])
        .env("HOME", home)
        .stdin(Stdio::null())
        .current_dir(home);
    let outcome = finish(command).expect(0);
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
}

#[test]
fn the_inspector_lists_calls_and_reads() {
    let Some(inspector) = installed("mcp-inspector") else {
        return;
    };
    let project = Project::with_git(&BEFORE);
    project.run(&["up"]).expect(0);
    let inspect = |arguments: &[&str]| inspect(&project, &inspector, arguments);

    // With `--strict` it ends with an error for a schema that some client could not use.
    let listed = inspect(&["--method", "tools/list", "--strict"]);
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "plan_open"), "{listed}");

    let call = |tool: &str, arguments: &[&str]| {
        let mut all = vec!["--method", "tools/call", "--tool-name", tool];
        for argument in arguments {
            all.extend(["--tool-arg", argument]);
        }
        let answer = inspect(&all);
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
        answer
    };
    let opened = call("plan_open", &["title=inspected"]);
    let id = opened["structuredContent"]["plan"].as_str().unwrap().to_owned();
    // Each call is a client of its own, so the plan is named.
    let plan = format!("plan={id}");
    call("plan_edit", &["path=a.txt", "find=one", "replace=two", &plan]);
    let diff = call("plan_diff", &[&plan]);
    assert!(
        diff["content"][0]["text"].as_str().unwrap().contains("+two"),
        "{diff}"
    );

    let resources = inspect(&["--method", "resources/list"]);
    let uri = format!("tidelock://plans/{id}/diff");
    let has = |uri: &str| {
        resources["resources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|found| found["uri"] == *uri)
    };
    assert!(has("tidelock://overview") && has(&uri), "{resources}");
    let read = inspect(&["--method", "resources/read", "--uri", &uri]);
    assert!(
        read["contents"][0]["text"].as_str().unwrap().contains("+two"),
        "{read}"
    );

    call("plan_apply", &[&plan]);
    assert_eq!(project.tree(), files(&[("a.txt", "two\n")]));
}
