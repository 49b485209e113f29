//! Questions about the sandbox of a plan.

use std::fs;
use std::path::Path;

use protocol::{ErrorCode, Plan};
use serde_json::{Value, json};

use crate::context::{ask, files, ready_index, repository, write};
use crate::plans::{command, get, open, post, run, start, submit};
use crate::running::{Running, within};

/// The files in which a word is found, in a plan or on disk.
async fn found(running: &Running, ground: &Value, word: &str) -> Vec<String> {
    let mut question = json!({ "query": word, "only": ["keyword"] });
    question
        .as_object_mut()
        .unwrap()
        .extend(ground.as_object().unwrap().clone());
    let answer = ask(running, question).await;
    files(&answer).into_iter().map(str::to_owned).collect()
}

fn in_plan(plan: &Plan) -> Value {
    json!({ "plan": plan.id })
}

fn on_disk(directory: &Path) -> Value {
    json!({ "directory": directory })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_looked_at_as_its_actor_sees_it() {
    let (running, workspace) = (start().await, repository());
    let root = workspace.path();
    write(&workspace, "src/old.rs", "pub fn heronold() {}\n");
    write(&workspace, "src/moving.rs", "pub fn otterbefore() {}\n");
    write(&workspace, "src/gone.rs", "pub fn badgergone() {}\n");
    // An index that is older than the plan, one that is made while it is open, and none.
    found(&running, &on_disk(root), "anything").await;
    ready_index(&running, root).await;
    let plan = open(&running, root, &json!({})).await;
    let line = "echo 'pub fn lynxnew() {}' > src/new.rs; rm src/old.rs; \
                echo 'pub fn heronnew() {}' >> src/parse.rs";
    run(&running, &plan, line).await;
    // Meanwhile somebody works on the workspace.
    write(&workspace, "src/moving.rs", "pub fn otterafter() {}\n");
    write(&workspace, "src/later.rs", "pub fn martenlater() {}\n");
    fs::remove_file(root.join("src/gone.rs")).unwrap();
    for index in ["an old one", "a new one", "none"] {
        match index {
            "an old one" => {}
            other => {
                let removed = post(&running, "/v1/context/indexes/remove", &on_disk(root)).await;
                assert_eq!(removed.status, 200, "{removed:?}");
                if other == "a new one" {
                    found(&running, &on_disk(root), "anything").await;
                    ready_index(&running, root).await;
                }
            }
        }
        let cases: [(&str, &[&str], &[&str]); 8] = [
            ("lynxnew", &["src/new.rs"], &[]),
            ("heronold", &[], &["src/old.rs"]),
            ("heronnew", &["src/parse.rs"], &[]),
            ("otterbefore", &["src/moving.rs"], &[]),
            ("otterafter", &[], &["src/moving.rs"]),
            ("martenlater", &[], &["src/later.rs"]),
            ("badgergone", &["src/gone.rs"], &[]),
            ("interest", &["notes.md"], &["notes.md"]),
        ];
        for (word, there, here) in cases {
            let context = format!("{word} with {index}");
            assert_eq!(
                found(&running, &in_plan(&plan), word).await,
                there,
                "{context}, plan"
            );
            assert_eq!(
                found(&running, &on_disk(root), word).await,
                here,
                "{context}, disk"
            );
        }
    }
    let answer = ask(&running, json!({ "plan": plan.id, "query": "otterbefore" })).await;
    assert_eq!(answer.plan.as_deref(), Some(plan.id.as_str()));
    assert_eq!(answer.root, plan.root);
    let focus = json!({ "plan": plan.id, "focus": ["src/new.rs"] });
    ask(&running, focus).await;
    let gone = json!({ "plan": plan.id, "focus": ["src/old.rs"] });
    let problem = post(&running, "/v1/context", &gone).await.problem();
    assert_eq!(problem.code, ErrorCode::FocusNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_has_written_so_far_is_seen() {
    let (running, workspace) = (start().await, repository());
    let plan = open(&running, workspace.path(), &json!({})).await;
    let line = "echo 'pub fn ibexnow() {}' > src/now.rs; rm notes.md; echo > written; exec sleep 1000";
    let job = submit(&running, &command(&plan, line)).await;
    let written = format!("/v1/plans/{}/file?path=written", plan.id);
    let began = std::time::Instant::now();
    while get(&running, &written).await.status != 200 {
        assert!(began.elapsed().as_secs() < 30, "the command does not run");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let shown: Plan = get(&running, &format!("/v1/plans/{}", plan.id)).await.json();
    assert_eq!(shown.entries, 0, "it is recorded when the command ends");
    let sandbox = in_plan(&plan);
    assert_eq!(found(&running, &sandbox, "ibexnow").await, ["src/now.rs"]);
    assert_eq!(found(&running, &sandbox, "interest").await, [""; 0]);
    let cancel = format!("/v1/jobs/{}/cancel", job.id);
    let cancelled = within(post(&running, &cancel, &json!({}))).await;
    assert!(cancelled.status < 300, "{cancelled:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_on_a_plan_sees_what_its_parent_had() {
    let (running, workspace) = (start().await, repository());
    let root = workspace.path();
    found(&running, &on_disk(root), "anything").await;
    ready_index(&running, root).await;
    let parent = open(&running, root, &json!({})).await;
    run(
        &running,
        &parent,
        "echo 'pub fn stoatparent() {}' > src/parent.rs",
    )
    .await;
    let body = json!({ "parent": parent.id, "title": "a part of it" });
    let child: Plan = post(&running, "/v1/plans", &body).await.json();
    run(&running, &child, "echo 'pub fn stoatchild() {}' > src/child.rs").await;
    run(&running, &parent, "echo 'pub fn stoatlater() {}' > src/parent.rs").await;
    for (plan, word, expected) in [
        (&child, "stoatparent", &["src/parent.rs"][..]),
        (&child, "stoatchild", &["src/child.rs"]),
        (&child, "stoatlater", &[]),
        (&parent, "stoatchild", &[]),
        (&parent, "stoatlater", &["src/parent.rs"]),
    ] {
        assert_eq!(found(&running, &in_plan(plan), word).await, expected, "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_without_a_sandbox_is_refused() {
    let (running, workspace) = (start().await, repository());
    let plan = open(&running, workspace.path(), &json!({})).await;
    let discard = format!("/v1/plans/{}/discard", plan.id);
    assert_eq!(post(&running, &discard, &json!({})).await.status, 200);
    let collected = post(&running, "/v1/plans/gc", &json!({ "older_than_ms": 0 })).await;
    assert_eq!(collected.status, 200, "{collected:?}");
    let question = json!({ "plan": plan.id, "query": "a" });
    let problem = post(&running, "/v1/context", &question).await.problem();
    assert_eq!(problem.code, ErrorCode::SandboxGone);
}
