//! Plans over HTTP: what all tests of them need, and what is refused and how.

use std::fs;
use std::path::Path;

use http::Method;
use kernel::SystemClock;
use protocol::{ErrorCode, Job, JobSubmitted, Plan, PlanList, PlanOutcome, StrategyList};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Answer;
use crate::running::{Raw, Running, within};

const UNKNOWN: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";

pub(crate) async fn start() -> Running {
    Running::start_with(SystemClock::shared(), |options| {
        options.languages.environment = vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    })
    .await
}

/// A workspace with two files in it.
pub(crate) fn workspace() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("src")).unwrap();
    fs::write(directory.path().join("src/a.txt"), "one\ntwo\nthree\n").unwrap();
    fs::write(directory.path().join("b.txt"), "b\n").unwrap();
    directory
}

pub(crate) async fn send(running: &Running, method: Method, path: &str, body: &Value) -> Answer {
    let client = running.unix();
    let call = client.call(method, path).header("tidelock-actor", "an agent");
    within(call.json(&body.to_string()).send()).await
}

pub(crate) async fn post(running: &Running, path: &str, body: &Value) -> Answer {
    send(running, Method::POST, path, body).await
}

pub(crate) async fn get(running: &Running, path: &str) -> Answer {
    within(running.unix().get(path).send()).await
}

pub(crate) async fn open(running: &Running, workspace: &Path, more: &Value) -> Plan {
    let mut body = json!({ "directory": workspace, "title": "a piece of work" });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let answer = post(running, "/v1/plans", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

pub(crate) async fn show(running: &Running, id: &str) -> Plan {
    get(running, &format!("/v1/plans/{id}")).await.json()
}

/// A command in a plan, at the root of its workspace.
pub(crate) fn command(plan: &Plan, line: &str) -> Value {
    json!({ "command": { "shell": line, "directory": plan.root, "plan": plan.id } })
}

pub(crate) async fn submit(running: &Running, body: &Value) -> Job {
    let answer = post(running, "/v1/jobs", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json::<JobSubmitted>().job
}

/// The job when it has ended.
pub(crate) async fn ended(running: &Running, id: &str) -> Job {
    let job: Job = get(running, &format!("/v1/jobs/{id}?wait_ms=15000")).await.json();
    assert!(job.ended_at.is_some(), "{job:?}");
    job
}

pub(crate) async fn run(running: &Running, plan: &Plan, line: &str) -> Job {
    let job = submit(running, &command(plan, line)).await;
    ended(running, &job.id).await
}

pub(crate) async fn apply(running: &Running, plans: &[&str]) -> PlanOutcome {
    let answer = post(running, "/v1/plans/apply", &json!({ "plans": plans })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

pub(crate) fn read(workspace: &TempDir, path: &str) -> Option<String> {
    fs::read_to_string(workspace.path().join(path)).ok()
}

/// The plan that a problem is about.
pub(crate) fn current(problem: &protocol::Problem) -> &Plan {
    match &problem.current {
        Some(protocol::Current::Plan(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

/// The name, the place and the data of the next event.
pub(crate) async fn event(raw: &mut Raw) -> (String, Option<u64>, Value) {
    loop {
        let block = raw.up_to("\n\n").await;
        let field = |name: &str| {
            let fields = block.lines().filter_map(|line| line.split_once(": "));
            fields
                .filter(|(found, _)| *found == name)
                .map(|(_, value)| value)
                .next()
        };
        if let Some(kind) = field("event") {
            let data = serde_json::from_str(field("data").unwrap()).unwrap();
            return (
                kind.to_owned(),
                field("id").map(|id| id.split('-').next().unwrap().parse().unwrap()),
                data,
            );
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found_under_any_path() {
    let running = start().await;
    for id in [UNKNOWN, "last", "%3Cb%3E", "%FF"] {
        for path in ["", "/diff", "/file", "/changesets", "/history", "/events"] {
            let problem = get(&running, &format!("/v1/plans/{id}{path}")).await.problem();
            let found = (problem.status, problem.code);
            assert_eq!(found, (404, ErrorCode::PlanNotFound), "{id}{path}");
        }
        for path in ["/seal", "/discard", "/refresh", "/undo", "/check", "/changesets"] {
            let problem = post(&running, &format!("/v1/plans/{id}{path}"), &json!({}))
                .await
                .problem();
            let found = (problem.status, problem.code);
            assert_eq!(found, (404, ErrorCode::PlanNotFound), "{id}{path}");
        }
    }
    let problem = post(&running, "/v1/plans/apply", &json!({ "plans": [UNKNOWN] }))
        .await
        .problem();
    assert_eq!((problem.status, problem.code), (404, ErrorCode::PlanNotFound));
    let workspace = "/v1/workspaces/workspace_01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for path in [workspace, "/v1/workspaces/x"] {
        let problem = send(&running, Method::DELETE, path, &json!({})).await.problem();
        let found = (problem.status, problem.code);
        assert_eq!(found, (404, ErrorCode::WorkspaceNotFound), "{path}");
    }
    for query in [
        "?limit=0",
        "?state=lazy",
        "?before=x",
        "?workspace=x",
        "?directory=x",
        "?more=1",
    ] {
        let problem = get(&running, &format!("/v1/plans{query}")).await.problem();
        let found = (problem.status, problem.code);
        assert_eq!(found, (400, ErrorCode::InvalidQuery), "{query}");
    }
    let list: PlanList = get(&running, "/v1/plans").await.json();
    assert_eq!(list.plans, []);
    let strategies: StrategyList = get(&running, "/v1/plans/strategies").await.json();
    assert_eq!(strategies.strategies.len(), 3, "{strategies:?}");
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_the_field() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(&running, workspace.path(), &json!({})).await;
    let with = |name: &str, value: Value| {
        let mut body = json!({ "directory": workspace.path() });
        body[name] = value;
        body
    };
    let changes = format!("/v1/plans/{}/changes", plan.id);
    let change = |operation: Value| json!({ "operations": [{ "do": "delete", "path": "b.txt" }, operation] });
    let mut elsewhere = command(&plan, "true");
    elsewhere["command"]["directory"] = json!("/");
    let mut anywhere = command(&plan, "true");
    anywhere["anywhere"] = json!(true);
    let mut unknown = command(&plan, "true");
    unknown["command"]["plan"] = json!(UNKNOWN);
    use ErrorCode::{InvalidRequest, PathNotAllowed, PlanNotFound};
    for (path, body, code, field) in [
        ("/v1/plans", json!({}), InvalidRequest, "directory"),
        (
            "/v1/plans",
            with("parent", json!(plan.id)),
            InvalidRequest,
            "directory",
        ),
        (
            "/v1/plans",
            with("directory", json!("a")),
            InvalidRequest,
            "directory",
        ),
        (
            "/v1/plans",
            with("max_parallel", json!(0)),
            InvalidRequest,
            "max_parallel",
        ),
        (
            "/v1/plans",
            with("checks", json!(["true", " "])),
            InvalidRequest,
            "checks.1",
        ),
        ("/v1/plans", with("title", json!("a\nb")), InvalidRequest, "title"),
        (
            "/v1/plans",
            with("nonsense", json!(1)),
            InvalidRequest,
            "nonsense",
        ),
        ("/v1/plans", json!({ "parent": "x" }), PlanNotFound, "parent"),
        ("/v1/plans/apply", json!({ "plans": [] }), InvalidRequest, "plans"),
        (
            "/v1/plans/apply",
            json!({ "plans": [plan.id], "seen": ["x"] }),
            InvalidRequest,
            "seen.0",
        ),
        (
            "/v1/plans/apply",
            json!({ "plans": [plan.id], "seen": ["x", "y"] }),
            InvalidRequest,
            "seen",
        ),
        (
            "/v1/plans/apply",
            json!({ "plans": [plan.id, plan.id] }),
            InvalidRequest,
            "plans.1",
        ),
        (
            &changes,
            json!({ "operations": [] }),
            InvalidRequest,
            "operations",
        ),
        (
            &changes,
            change(json!({ "do": "delete", "path": "../x" })),
            PathNotAllowed,
            "operations.1.path",
        ),
        (
            &changes,
            change(json!({ "do": "rename", "from": ".git/config", "path": "x" })),
            PathNotAllowed,
            "operations.1.from",
        ),
        (
            &changes,
            change(json!({ "do": "write", "path": "x" })),
            InvalidRequest,
            "operations.1.text",
        ),
        (
            &changes,
            change(json!({ "do": "write", "path": "x", "base64": "?" })),
            InvalidRequest,
            "operations.1.base64",
        ),
        (
            &changes,
            change(json!({ "do": "write", "path": "x", "text": "", "if_hash": "?" })),
            InvalidRequest,
            "operations.1.if_hash",
        ),
        ("/v1/jobs", elsewhere, InvalidRequest, "command.directory"),
        ("/v1/jobs", anywhere, InvalidRequest, "anywhere"),
        ("/v1/jobs", unknown, PlanNotFound, "command.plan"),
    ] {
        let problem = post(&running, path, &body).await.problem();
        let found = (problem.code, problem.field.as_deref());
        assert_eq!(found, (code, Some(field)), "{path} {body}: {problem:?}");
    }
    // Nothing of all that was done.
    let plan = show(&running, &plan.id).await;
    assert_eq!((plan.entries, plan.summary.files), (0, 0));
    let list: PlanList = get(&running, "/v1/plans").await.json();
    assert_eq!(list.plans.len(), 1);
}
