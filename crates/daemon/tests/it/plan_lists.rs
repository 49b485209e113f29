//! Plans over HTTP: listed, counted, followed, and opened once for each key.

use http::Method;
use protocol::{ErrorCode, Plan, PlanList, PlanState, WorkspaceList};
use serde_json::json;

use crate::client::percent_encode;
use crate::plans::{current, event, get, open, post, send, show, start, workspace};

#[tokio::test]
async fn plans_are_listed_by_what_they_are_and_where() {
    let running = start().await;
    let (one, other) = (workspace(), workspace());
    let first = open(
        &running,
        &one.path().join("src"),
        &json!({ "directory": one.path() }),
    )
    .await;
    let second = open(&running, other.path(), &json!({})).await;
    let wish = json!({ "parent": second.id, "title": "a child" });
    let child: Plan = post(&running, "/v1/plans", &wish).await.json();
    let sealed: Plan = post(&running, &format!("/v1/plans/{}/seal", first.id), &json!({}))
        .await
        .json();
    assert_eq!(sealed.state, PlanState::Sealed);
    let directory = format!(
        "?directory={}",
        percent_encode(&other.path().join("src").display().to_string())
    );
    let parent = format!("?parent={}", second.id);
    let workspace = format!("?workspace={}", first.workspace);
    for (query, expected) in [
        ("", vec![&child.id, &second.id, &first.id]),
        ("?state=sealed", vec![&first.id]),
        ("?state=open,applied", vec![&child.id, &second.id]),
        (&directory, vec![&child.id, &second.id]),
        ("?directory=/proc", vec![]),
        (&parent, vec![&child.id]),
        (&workspace, vec![&first.id]),
    ] {
        let list: PlanList = get(&running, &format!("/v1/plans{query}")).await.json();
        let found: Vec<&String> = list.plans.iter().map(|plan| &plan.id).collect();
        assert_eq!(found, expected, "{query}");
    }
    let (mut found, mut path) = (Vec::new(), "/v1/plans?limit=2".to_owned());
    loop {
        let list: PlanList = get(&running, &path).await.json();
        found.extend(list.plans.into_iter().map(|plan| plan.id));
        match list.next_before {
            Some(before) => path = format!("/v1/plans?limit=2&before={before}"),
            None => break,
        }
    }
    assert_eq!(found, [child.id.clone(), second.id.clone(), first.id.clone()]);
    let children = show(&running, &second.id).await.children;
    assert_eq!(children, std::slice::from_ref(&child.id));

    let workspaces: WorkspaceList = get(&running, "/v1/workspaces").await.json();
    assert_eq!(workspaces.workspaces.len(), 2);
    let path = format!("/v1/workspaces/{}", first.workspace);
    let problem = send(&running, Method::DELETE, &path, &json!({})).await.problem();
    assert_eq!((problem.status, problem.code), (409, ErrorCode::WorkspaceInUse));
    let discarded = post(&running, &format!("/v1/plans/{}/discard", first.id), &json!({})).await;
    assert_eq!(discarded.status, 200, "{discarded:?}");
    let forgotten = send(&running, Method::DELETE, &path, &json!({})).await;
    assert_eq!(forgotten.status, 204, "{forgotten:?}");

    let status: protocol::Status = get(&running, "/v1/status").await.json();
    let counts = status.plans.unwrap();
    assert_eq!((counts.open, counts.sealed), (2, 0));
    // The list as a stream is told at once, and again when something has changed.
    let head = running.head("GET /v1/plans/events HTTP/1.1");
    let mut raw = running.raw(&format!("{head}\r\n"));
    let (kind, _, data) = event(&mut raw).await;
    assert_eq!(
        (kind.as_str(), data["plans"][0]["state"].as_str()),
        ("plans", Some("open"))
    );
    let sealed = post(&running, &format!("/v1/plans/{}/seal", child.id), &json!({})).await;
    assert_eq!(sealed.status, 200);
    while event(&mut raw).await.2["plans"][0]["state"] != "sealed" {}
}

#[tokio::test]
async fn a_key_is_one_plan() {
    let running = start().await;
    let workspace = workspace();
    let send = async |title: &str| {
        let body = json!({ "directory": workspace.path(), "title": title });
        let client = running.unix();
        let call = client.post("/v1/plans").header("idempotency-key", "k");
        call.json(&body.to_string()).send().await
    };
    let first = send("a").await;
    assert_eq!(first.status, 201, "{first:?}");
    let first: Plan = first.json();
    let again = send("a").await;
    assert_eq!((again.status, again.json::<Plan>().id), (200, first.id.clone()));
    let problem = send("b").await.problem();
    let found = (problem.status, problem.code);
    assert_eq!(found, (409, ErrorCode::IdempotencyKeyReused));
    assert_eq!(current(&problem).id, first.id);
}
