//! Plans over HTTP: worked in, looked at, applied, taken back, and given up.

use protocol::{
    Changeset, ChangesetList, ErrorCode, FilesChanged, OutcomeKind, Plan, PlanDiff, PlanFile, PlanHistory,
    PlanOutcome, PlanState, PlansCollected,
};
use serde_json::json;

use crate::client::percent_encode;
use crate::plans::{apply, command, current, event, get, open, post, read, run, show, start, workspace};

const CHANGESET: &str = "changeset_01ARZ3NDEKTSV4RRFFQ69G5FAV";

#[tokio::test]
async fn what_a_command_changes_is_seen_applied_and_taken_back() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(&running, workspace.path(), &json!({})).await;
    assert_eq!(
        (plan.state, plan.opened_by.as_str()),
        (PlanState::Open, "an agent")
    );
    let job = run(
        &running,
        &plan,
        "sed -i s/two/2/ src/a.txt && rm b.txt && echo made > made.txt",
    )
    .await;
    assert_eq!(job.state, protocol::JobState::Succeeded, "{job:?}");
    assert_eq!(job.plan.as_deref(), Some(plan.id.as_str()));
    assert_eq!(job.changed_files, Some(3), "{job:?}");
    assert_eq!(read(&workspace, "made.txt"), None, "the workspace was changed");

    let path = format!("/v1/plans/{}", plan.id);
    let changesets: ChangesetList = get(&running, &format!("{path}/changesets")).await.json();
    let [changeset] = changesets.changesets.as_slice() else {
        panic!("{changesets:?}");
    };
    assert_eq!(Some(changeset.id.as_str()), job.changeset.as_deref());
    assert_eq!(
        (changeset.actor.as_str(), changeset.tool.as_str()),
        ("an agent", "shell")
    );
    assert_eq!(changeset.job.as_deref(), Some(job.id.as_str()));
    let whole: Changeset = get(&running, &format!("{path}/changesets/{}", changeset.id))
        .await
        .json();
    let mut kinds: Vec<(&str, &str)> = whole
        .changes
        .iter()
        .map(|change| (change.path.as_str(), change.kind.as_str()))
        .collect();
    kinds.sort_unstable();
    let expected = [
        ("b.txt", "delete"),
        ("made.txt", "create"),
        ("src/a.txt", "modify"),
    ];
    assert_eq!(kinds, expected);

    let diff: PlanDiff = get(&running, &format!("{path}/diff")).await.json();
    let summary = diff.summary;
    assert_eq!(
        (summary.files, summary.added_lines, summary.removed_lines),
        (3, Some(2), Some(2))
    );
    let seen = show(&running, &plan.id).await;
    assert_eq!((seen.summary, seen.entries), (summary, 3));
    let client = running.unix();
    let accepting = client
        .get(&format!("{path}/diff"))
        .header("accept", "text/x-diff");
    for patch in [
        accepting.send().await,
        get(&running, &format!("{path}/diff?format=patch")).await,
    ] {
        assert_eq!(patch.header("content-type"), Some("text/x-diff"));
        assert!(patch.body.starts_with("diff --git "), "{}", patch.body);
        assert!(patch.body.contains("\n-two\n+2\n"), "{}", patch.body);
    }
    let one = format!("{path}/diff?changeset={}", changeset.id);
    assert_eq!(get(&running, &one).await.json::<PlanDiff>().files, diff.files);
    let problem = get(&running, &format!("{path}/diff?changeset={CHANGESET}"))
        .await
        .problem();
    assert_eq!(
        (problem.status, problem.code),
        (404, ErrorCode::ChangesetNotFound)
    );

    let dry = json!({ "plans": [plan.id], "dry_run": true });
    let dry = post(&running, "/v1/plans/apply", &dry).await;
    assert_eq!(dry.json::<PlanOutcome>().outcome, OutcomeKind::WouldBeDone);
    assert_eq!(
        read(&workspace, "made.txt"),
        None,
        "a dry run changed the workspace"
    );
    let outcome = apply(&running, &[&plan.id]).await;
    assert_eq!(outcome.outcome, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(outcome.plans[0].state, PlanState::Applied);
    let files = || {
        [
            read(&workspace, "src/a.txt"),
            read(&workspace, "b.txt"),
            read(&workspace, "made.txt"),
        ]
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(files(), [text("one\n2\nthree\n"), None, text("made\n")]);
    let undo = format!("{path}/undo");
    let outcome: PlanOutcome = post(&running, &undo, &json!({})).await.json();
    assert_eq!(outcome.outcome, OutcomeKind::Done, "{outcome:?}");
    assert_eq!(files(), [text("one\ntwo\nthree\n"), text("b\n"), None]);

    let history: PlanHistory = get(&running, &format!("{path}/history")).await.json();
    let events: Vec<&str> = history
        .moments
        .iter()
        .map(|moment| moment.event.as_str())
        .collect();
    for event in ["opened", "command_started", "changed", "applied", "undone"] {
        assert!(events.contains(&event), "{event}: {events:?}");
    }
    let later: PlanHistory = get(&running, &format!("{path}/history?after=1&limit=2"))
        .await
        .json();
    assert_eq!(later.moments, history.moments[1..3]);
    // A reader of the stream sees the same, and one that comes back sees the rest.
    let head = running.head(&format!("GET {path}/events HTTP/1.1"));
    for (header, expected) in [
        ("", &history.moments[..]),
        ("Last-Event-ID: 2\r\n", &history.moments[2..]),
    ] {
        let mut raw = running.raw(&format!("{head}{header}\r\n"));
        for moment in expected {
            let (kind, place, data) = event(&mut raw).await;
            assert_eq!(
                (kind.as_str(), place),
                (moment.event.as_str(), Some(moment.sequence))
            );
            assert_eq!(data, serde_json::to_value(moment).unwrap());
        }
    }
    let metrics = get(&running, "/metrics").await.body;
    for line in [
        r#"tidelock_plan_attempts_total{what="apply",outcome="done"} 1"#,
        r#"tidelock_plan_attempts_total{what="undo",outcome="done"} 1"#,
        r#"tidelock_plans{state="open"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[tokio::test]
async fn files_are_written_and_read_and_what_was_done_before_a_refusal_stays() {
    let running = start().await;
    let workspace = workspace();
    let plan = open(&running, workspace.path(), &json!({ "strategy": "copy" })).await;
    assert_eq!(plan.strategy, protocol::SandboxStrategy::Copy);
    let changes = format!("/v1/plans/{}/changes", plan.id);
    let file = async |path: &str| {
        let path = format!("/v1/plans/{}/file?path={}", plan.id, percent_encode(path));
        get(&running, &path).await
    };
    let started: Changeset = post(
        &running,
        &format!("/v1/plans/{}/changesets", plan.id),
        &json!({ "tool": "editor", "reason": "to see" }),
    )
    .await
    .json();
    let body = json!({ "operations": [
        { "do": "write", "path": "new/x.bin", "base64": "/wA=", "if_hash": "" },
        { "do": "edit", "path": "src/a.txt", "find": "two", "replace": "zwei" },
    ] });
    let done: FilesChanged = post(&running, &changes, &body).await.json();
    assert_eq!(done.changeset, started.id, "it goes to the caller's current one");
    let binary: PlanFile = file("new/x.bin").await.json();
    assert_eq!(
        (binary.kind.as_str(), binary.base64.as_deref()),
        ("file", Some("/wA="))
    );
    let text: PlanFile = file("src/a.txt").await.json();
    assert_eq!(text.text.as_deref(), Some("one\nzwei\nthree\n"));
    let root: PlanFile = file("").await.json();
    assert_eq!(root.names, ["b.txt", "new/", "src/"]);
    assert_eq!(file("nothing").await.problem().code, ErrorCode::FileNotFound);
    assert_eq!(file("../x").await.problem().code, ErrorCode::PathNotAllowed);

    let body = json!({ "operations": [
        { "do": "delete", "path": "b.txt" },
        { "do": "write", "path": "src/a.txt", "text": "", "if_hash": binary.hash },
        { "do": "delete", "path": "src/a.txt" },
    ] });
    let problem = post(&running, &changes, &body).await.problem();
    assert_eq!(
        (problem.status, problem.code),
        (409, ErrorCode::FileStale),
        "{problem:?}"
    );
    assert!(
        problem.detail.contains(text.hash.as_deref().unwrap()),
        "{problem:?}"
    );
    assert!(problem.detail.ends_with("1 change is recorded."), "{problem:?}");
    assert_eq!(file("b.txt").await.status, 404);
    assert_eq!(file("src/a.txt").await.status, 200);

    let close = format!("/v1/plans/{}/changesets/{}/close", plan.id, started.id);
    for _ in 0..2 {
        let closed: Changeset = post(&running, &close, &json!({})).await.json();
        assert_eq!(
            (closed.state, closed.tool.as_str()),
            (protocol::ChangesetState::Closed, "editor")
        );
    }
    let body = json!({ "changeset": started.id, "operations": [{ "do": "delete", "path": "src/a.txt" }] });
    let problem = post(&running, &changes, &body).await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::ChangesetClosed));
    assert_eq!(
        read(&workspace, "b.txt").as_deref(),
        Some("b\n"),
        "the workspace was changed"
    );
}

#[tokio::test]
async fn a_conflict_is_an_answer_and_changes_nothing() {
    let running = start().await;
    let workspace = workspace();
    let (first, second) = (
        open(&running, workspace.path(), &json!({})).await,
        open(&running, workspace.path(), &json!({})).await,
    );
    for (plan, text) in [(&first, "1"), (&second, "2")] {
        let body =
            json!({ "operations": [{ "do": "edit", "path": "src/a.txt", "find": "two", "replace": text }] });
        let answer = post(&running, &format!("/v1/plans/{}/changes", plan.id), &body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(apply(&running, &[&first.id]).await.outcome, OutcomeKind::Done);
    let outcome = apply(&running, &[&second.id]).await;
    assert_eq!(outcome.outcome, OutcomeKind::Conflicted);
    let [conflict] = outcome.conflicts.as_slice() else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (
            conflict.path.as_str(),
            conflict.kind.as_str(),
            conflict.hunks.len()
        ),
        ("src/a.txt", "content", 1)
    );
    assert_eq!(read(&workspace, "src/a.txt").as_deref(), Some("one\n1\nthree\n"));
    let plan = show(&running, &second.id).await;
    assert_eq!(plan.refused.map(|refused| refused.what).as_deref(), Some("apply"));

    // One with work in it is not given up by accident, nor by somebody who saw something else.
    let discard = format!("/v1/plans/{}/discard", second.id);
    for (body, code) in [
        (json!({}), ErrorCode::PlanHasWork),
        (
            json!({ "even_with_work": true, "version": 1 }),
            ErrorCode::StaleGeneration,
        ),
    ] {
        let problem = post(&running, &discard, &body).await.problem();
        assert_eq!((problem.status, problem.code), (409, code), "{problem:?}");
        assert_eq!(current(&problem).id, second.id);
    }
    let discarded: Plan = post(&running, &discard, &json!({ "even_with_work": true }))
        .await
        .json();
    assert_eq!(discarded.state, PlanState::Discarded);
    let problem = post(&running, "/v1/plans/apply", &json!({ "plans": [second.id] }))
        .await
        .problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::PlanWrongState));
    let problem = post(&running, "/v1/jobs", &command(&second, "true"))
        .await
        .problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::PlanWrongState));

    let all = json!({ "older_than_ms": 0, "dry_run": true });
    let collected: PlansCollected = post(&running, "/v1/plans/gc", &all).await.json();
    assert_eq!(collected.sandboxes.len(), 2, "{collected:?}");
}
