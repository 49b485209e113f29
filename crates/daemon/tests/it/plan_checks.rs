//! Checks of plans, and children of plans: what runs as a job, and what becomes of it.

use http::Method;
use protocol::{CheckState, ErrorCode, Job, JobState, OutcomeKind, Plan, PlanState};
use serde_json::{Value, json};

use crate::plans::{apply, command, ended, get, open, post, run, send, show, start, submit, workspace};
use crate::running::{Running, within};

async fn check(running: &Running, plan: &Plan, body: &Value) -> Plan {
    let answer = post(running, &format!("/v1/plans/{}/check", plan.id), body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// The states of a plan's checks when the jobs of all of them have ended.
async fn checked(running: &Running, plan: &Plan, body: &Value) -> Vec<CheckState> {
    let plan = check(running, plan, body).await;
    for check in &plan.checks {
        ended(running, check.job.as_deref().unwrap()).await;
    }
    let plan = show(running, &plan.id).await;
    plan.checks.iter().map(|check| check.state).collect()
}

/// Waits until a plan's only check is in a state.
async fn until_state(running: &Running, plan: &str, state: CheckState) {
    within(async {
        while show(running, plan).await.checks[0].state != state {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

async fn set_workers(running: &Running, count: u16) {
    let answer = send(
        running,
        Method::PUT,
        "/v1/jobs/workers",
        &json!({ "max_workers": count }),
    )
    .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn nothing_is_applied_before_its_checks_have_passed_for_what_is_in_it() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(
        &running,
        workspace.path(),
        &json!({ "checks": ["test -e made.txt"] }),
    )
    .await;
    let job = run(&running, &plan, "echo x > other.txt").await;
    assert_eq!(job.state, JobState::Succeeded, "{job:?}");
    let refused = async || {
        let problem = post(&running, "/v1/plans/apply", &json!({ "plans": [plan.id] }))
            .await
            .problem();
        assert_eq!((problem.status, problem.code), (409, ErrorCode::ChecksNotPassed));
        problem.detail
    };
    assert_eq!(
        refused().await,
        "Not all checks have passed: `test -e made.txt` has not run."
    );
    assert_eq!(checked(&running, &plan, &json!({})).await, [CheckState::Failed]);
    assert_eq!(
        refused().await,
        "Not all checks have passed: `test -e made.txt` has failed."
    );
    run(&running, &plan, "echo x > made.txt").await;
    assert_eq!(
        refused().await,
        "Not all checks have passed: `test -e made.txt` ran before the last change."
    );
    assert_eq!(checked(&running, &plan, &json!({})).await, [CheckState::Passed]);
    // What has passed is not run again unless that is wanted, and another one is added by asking for it.
    let before = show(&running, &plan.id).await.checks[0].job.clone();
    let add = json!({ "add": ["true"] });
    assert_eq!(
        checked(&running, &plan, &add).await,
        [CheckState::Passed, CheckState::Passed]
    );
    assert_eq!(show(&running, &plan.id).await.checks[0].job, before);
    checked(&running, &plan, &json!({ "all": true })).await;
    assert_ne!(show(&running, &plan.id).await.checks[0].job, before);
    assert_eq!(apply(&running, &[&plan.id]).await.outcome, OutcomeKind::Done);
    assert_eq!(show(&running, &plan.id).await.state, PlanState::Applied);
}

#[tokio::test]
async fn a_check_that_changes_the_plan_is_outdated_and_says_so() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(
        &running,
        workspace.path(),
        &json!({ "checks": ["date +%N > made.txt"] }),
    )
    .await;
    assert_eq!(checked(&running, &plan, &json!({})).await, [CheckState::Outdated]);
    let check = show(&running, &plan.id).await.checks.remove(0);
    let text = "it changed a file of the plan itself, so it has to run again";
    assert_eq!(check.text.as_deref(), Some(text));
    let job: Job = get(&running, &format!("/v1/jobs/{}", check.job.unwrap()))
        .await
        .json();
    assert_eq!(
        (job.handler.as_str(), job.title.as_str()),
        ("check", "check: date +%N > made.txt")
    );
    assert_eq!(job.lane.unwrap().name, format!("plan-check/{}", plan.id));
}

#[tokio::test]
async fn a_check_that_never_ran_has_failed() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(&running, workspace.path(), &json!({ "checks": ["true"] })).await;
    set_workers(&running, 0).await;
    let queued = check(&running, &plan, &json!({})).await;
    assert_eq!(queued.checks[0].state, CheckState::Running);
    let job = queued.checks[0].job.clone().unwrap();
    let cancelled = post(&running, &format!("/v1/jobs/{job}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    until_state(&running, &plan.id, CheckState::Failed).await;
    let text = show(&running, &plan.id).await.checks[0].text.clone();
    assert_eq!(text.as_deref(), Some("its job was cancelled"));

    // One whose daemon dies has failed when the next one, which serves meanwhile, has looked at it.
    set_workers(&running, 4).await;
    let plan = open(&running, workspace.path(), &json!({ "checks": ["sleep 600"] })).await;
    check(&running, &plan, &json!({})).await;
    within(async {
        while show(&running, &plan.id).await.running.is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let running = running.crash().await;
    until_state(&running, &plan.id, CheckState::Failed).await;
    let plan = show(&running, &plan.id).await;
    assert_eq!(plan.running, []);
}

#[tokio::test]
async fn when_one_child_fails_the_others_stop_if_the_parent_says_so() {
    let running = start().await;
    let workspace = workspace();
    for (wish, expected) in [("carry_on", None), ("stop", Some(JobState::Cancelled))] {
        let wishes = json!({ "if_child_fails": wish, "max_parallel": 2 });
        let parent = open(&running, workspace.path(), &wishes).await;
        let mut children = Vec::new();
        for _ in 0..3 {
            let child = post(&running, "/v1/plans", &json!({ "parent": parent.id })).await;
            assert_eq!(child.status, 201, "{child:?}");
            children.push(child.json::<Plan>());
        }
        let slow = submit(&running, &command(&children[0], "sleep 600")).await;
        let lane = slow.lane.clone().unwrap();
        assert_eq!(
            (lane.name, lane.limit),
            (format!("plan-children/{}", parent.id), 2)
        );
        within(async {
            while show(&running, &children[0].id).await.running.is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
        let line = "until test -e go; do sleep 0.02; done; exit 1";
        let failing = submit(&running, &command(&children[1], line)).await;
        let queued = submit(&running, &command(&children[2], "sleep 600")).await;
        let body = json!({ "operations": [{ "do": "write", "path": "go", "text": "" }] });
        let answer = post(&running, &format!("/v1/plans/{}/changes", children[1].id), &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(ended(&running, &failing.id).await.state, JobState::Failed);
        match expected {
            Some(state) => {
                for job in [&slow, &queued] {
                    let job = ended(&running, &job.id).await;
                    assert_eq!(job.state, state, "{job:?}");
                }
            }
            None => {
                // The place in the lane is free, so the one that waited runs.
                within(async {
                    while show(&running, &children[2].id).await.running.is_empty() {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    }
                })
                .await;
                for job in [&slow, &queued] {
                    let path = format!("/v1/jobs/{}/cancel", job.id);
                    assert_eq!(post(&running, &path, &json!({})).await.status, 200);
                    ended(&running, &job.id).await;
                }
            }
        }
    }
}
