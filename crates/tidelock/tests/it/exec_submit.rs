//! The plan of `exec` and its job are made in one act: after a kill both are there, or neither.

use std::fs;

use serde_json::{Value, json};

use crate::plan_fire::Died;
use crate::plan_stage::Project;

const BEFORE: [(&str, &str); 2] = [("a.txt", "one\n"), ("b.txt", "two\n")];

fn plans(project: &Project) -> Vec<Value> {
    let list = project.run(&["plan", "list", "--all", "--json"]).expect(0).json();
    list["plans"].as_array().unwrap().clone()
}

/// Our refs in the repository of the project.
fn refs(project: &Project) -> String {
    project.git(&["for-each-ref", "--format=%(refname)", "refs/tidelock"])
}

#[test]
fn a_daemon_that_dies_before_the_job_is_submitted_leaves_no_plan() {
    let project = Project::with_git(&BEFORE);
    let died = project.die_at(
        "Submitting",
        &["exec", "--apply", "--", "sh", "-c", "echo new > a.txt"],
    );
    assert!(matches!(died, Died::Yes(_)), "{died:?}");
    project.run(&["up"]).expect(0);
    assert_eq!(plans(&project), Vec::<Value>::new());
    let jobs = project.run(&["job", "list", "--all", "--json"]).expect(0).json();
    assert_eq!(jobs["jobs"], json!([]));
    assert_eq!(refs(&project), "");
    // The next one works.
    project
        .run(&["exec", "--apply", "--", "sh", "-c", "echo new > a.txt"])
        .expect(0);
    assert_eq!(project.tree()["a.txt"], "new\n");
}

#[test]
fn a_command_that_is_refused_leaves_no_plan() {
    let project = Project::new(&BEFORE);
    let refused = project.run(&["exec", "--", ""]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!(plans(&project), Vec::<Value>::new());
}

#[test]
fn a_second_request_with_the_same_key_is_the_same_plan_and_job() {
    let project = Project::new(&BEFORE);
    project.run(&["up"]).expect(0);
    let request = json!({
        "command": { "argv": ["true"], "directory": project.root },
        "open": { "directory": project.root, "title": "once" },
        "finish": { "then": "seal", "discard_unchanged": true },
        "idempotency_key": "once",
    });
    let first = project.ask("POST", "/v1/jobs", &request, 201);
    let second = project.ask("POST", "/v1/jobs", &request, 200);
    assert_eq!(first["job"]["id"], second["job"]["id"]);
    assert_eq!(first["plan"]["id"], second["plan"]["id"]);
}

#[test]
fn refs_of_a_plan_that_was_never_in_the_log_go_at_the_next_start() {
    let project = Project::with_git(&BEFORE);
    project.run(&["exec", "--", "true"]).expect(0);
    project.run(&["down"]).expect(0);
    // What a kill leaves that comes when the sandbox is made and the plan is not in the log: the log is as it was.
    let state = project.world.home().state;
    let logs = || -> Vec<std::path::PathBuf> {
        let entries = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
        let is_log =
            |path: &std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("log.");
        entries.filter(is_log).collect()
    };
    let before = logs();
    let kept = project.world.path().join("kept");
    fs::create_dir(&kept).unwrap();
    for path in &before {
        fs::copy(path, kept.join(path.file_name().unwrap())).unwrap();
    }
    let plan = project.open(&[]);
    assert!(refs(&project).contains(&plan), "{}", refs(&project));
    project.world.kill();
    for path in logs() {
        fs::remove_file(path).unwrap();
    }
    for path in &before {
        fs::copy(kept.join(path.file_name().unwrap()), path).unwrap();
    }
    // A second home has a plan in the same repository, which is no business of this one.
    let other = project.git(&["rev-parse", "HEAD"]);
    project.git(&["update-ref", "refs/tidelock/plan_of_another/1/0", other.trim()]);
    project.run(&["up"]).expect(0);
    crate::harness::wait_for("the refs to be gone", || !refs(&project).contains(&plan));
    assert_eq!(refs(&project).trim(), "refs/tidelock/plan_of_another/1/0");
}
