//! The pages of plans and workspaces: what they show, and what their forms do.

use std::fs;

use protocol::{Plan, PlanState};
use serde_json::json;

use crate::page::{Browser, field};
use crate::plans::{apply, open, post, run, show, start, workspace};
use crate::running::Running;

const UNKNOWN: &str = "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const HOSTILE: &str = "<script>alert(1)</script>";

/// Sends a form about a plan, and loads the page that follows.
async fn submit(browser: &Browser, plan: &Plan, fields: &[(&str, &str)]) -> String {
    let path = format!("/plans/{}", plan.id);
    let token = field(&browser.get(&path).await.body, "form_token");
    let version = plan.version.to_string();
    let mut all = vec![
        ("form_token", token.as_str()),
        ("id", &plan.id),
        ("version", &version),
    ];
    all.extend(fields);
    let answer = browser.post("/plans/change", &all).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(path.as_str())),
        "{answer:?}"
    );
    browser.get(&path).await.body
}

async fn sealed(running: &Running, plan: &Plan) -> Plan {
    let answer = post(running, &format!("/v1/plans/{}/seal", plan.id), &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn assert_parts(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<script>alert"), "{page}");
}

#[tokio::test]
async fn the_page_says_what_to_do_and_follows_what_happens() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    assert_parts(
        &browser.get("/plans").await.body,
        &[
            "<title>Plans · Tidelock</title>",
            "<a href=\"/plans\" aria-current=\"page\">Plans</a>",
            "data-live=\"/live/plans\" data-events=\"/v1/plans/events\"",
            "<code>tidelock exec -- claude</code>",
        ],
    );
    assert_parts(
        &browser.get("/plans?show=over").await.body,
        &["data-live=\"/live/plans?show=over\"", "No matching plans"],
    );
    assert_parts(
        &browser.get("/").await.body,
        &["data-key=\"tile Open plans\">Open plans</a></dt><dd>0 <small>0 sealed</small>"],
    );
    assert_parts(&browser.get("/workspaces").await.body, &["No workspaces yet"]);
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_explained() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({})).await;
    let own = |rest: &str| format!("/plans/{}{rest}", plan.id);
    for (path, status, part) in [
        ("/plans?show=lazy".to_owned(), 400, "which plans to show"),
        (
            "/live/plans?before=%3Cb%3E".to_owned(),
            400,
            "which plans to show",
        ),
        ("/plans/%3Cb%3E".to_owned(), 404, "<code>&lt;b&gt;</code>"),
        ("/plans/%FF".to_owned(), 404, "There is no plan"),
        (format!("/plans/{UNKNOWN}"), 404, UNKNOWN),
        (format!("/live/plans/{UNKNOWN}"), 404, UNKNOWN),
        (format!("/plans/{UNKNOWN}/discard"), 404, UNKNOWN),
        (own("?view=sideways"), 400, "which part of the plan to show"),
        (own("?changeset=%3Cb%3E"), 400, "which part of the plan to show"),
        (
            own("?changeset=changeset_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            404,
            "There is no changeset",
        ),
    ] {
        let answer = browser.get(&path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body.contains(part), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_plan_is_looked_at_applied_and_taken_back() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({ "title": HOSTILE })).await;
    let line = format!("printf 'one\\n2\\nthree\\n' > src/a.txt; echo '{HOSTILE}' > '<b>.txt'");
    run(&running, &plan, &line).await;
    let plan = sealed(&running, &show(&running, &plan.id).await).await;

    assert_parts(
        &browser.get("/plans").await.body,
        &[
            "&lt;script&gt;alert(1)&lt;/script&gt;</a>",
            "<span class=\"badge warn\">Sealed</span>",
            "2 files",
        ],
    );
    assert_parts(&browser.get("/").await.body, &["ready for review"]);
    assert_parts(
        &browser.get("/plans?show=over").await.body,
        &["No matching plans"],
    );
    let path = format!("/plans/{}", plan.id);
    let page = browser.get(&path).await.body;
    assert_parts(
        &page,
        &[
            "&lt;script&gt;alert(1)&lt;/script&gt;</h1>",
            "<td class=\"code removed\">two</td>",
            "<td class=\"code added\">2</td>",
            "<td class=\"code added\">&lt;script&gt;alert(1)&lt;/script&gt;</td>",
            ">&lt;b&gt;.txt</a>",
            "<strong>an agent</strong> with shell",
            "data-event=\"sealed\"",
        ],
    );
    assert_parts(
        &browser
            .get(&format!("{path}?view=split&file=src/a.txt"))
            .await
            .body,
        &[
            "<table class=\"diff split\">",
            "<td class=\"code removed\">two</td>",
        ],
    );
    // What is fetched again has all but the changes themselves.
    let live = browser
        .get(&format!("/live{path}?diff={}", plan.fingerprint))
        .await
        .body;
    assert!(
        live.contains("id=\"apply\"") && !live.contains("<table"),
        "{live}"
    );
    let other = browser.get(&format!("/live{path}?diff=other")).await.body;
    assert!(
        !other.contains("id=\"apply\"") && other.contains("id=\"outdated\""),
        "{other}"
    );

    let seen = ("seen", plan.fingerprint.as_str());
    let page = submit(&browser, &plan, &[("action", "apply"), seen]).await;
    assert_parts(&page, &["was applied: 2 paths changed.", "id=\"undo\""]);
    let file = directory.path().join("src/a.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\n2\nthree\n");
    assert_parts(&browser.get("/plans").await.body, &["No open plans"]);
    assert_parts(&browser.get("/plans?show=over").await.body, &[&plan.id]);

    let page = submit(&browser, &show(&running, &plan.id).await, &[("action", "undo")]).await;
    assert_parts(&page, &["was undone: 2 paths changed.", ">Apply again</button>"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn what_its_reader_has_not_seen_is_not_applied() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({})).await;
    run(&running, &plan, "echo seen > new.txt").await;
    let seen = show(&running, &plan.id).await;
    run(&running, &plan, "echo unseen > other.txt").await;

    let fields = [("action", "apply"), ("seen", seen.fingerprint.as_str())];
    let page = submit(&browser, &seen, &fields).await;
    assert_parts(&page, &["has moved since you looked. Nothing was done."]);
    for (action, part) in [
        ("seal", "has moved since you looked"),
        ("discard", "has moved since you looked"),
    ] {
        assert_parts(&submit(&browser, &seen, &[("action", action)]).await, &[part]);
    }
    assert!(!directory.path().join("new.txt").exists());
    assert_eq!(show(&running, &plan.id).await.state, PlanState::Open);
}

#[tokio::test]
async fn a_conflict_is_shown_with_its_three_sides() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({})).await;
    run(&running, &plan, "printf 'one\\nplan\\nthree\\n' > src/a.txt").await;
    fs::write(
        directory.path().join("src/a.txt"),
        format!("one\n{HOSTILE}\nthree\n"),
    )
    .unwrap();
    let plan = show(&running, &plan.id).await;

    let fields = [("action", "apply"), ("seen", plan.fingerprint.as_str())];
    let page = submit(&browser, &plan, &fields).await;
    assert_parts(
        &page,
        &[
            "was not applied: 1 conflict. Nothing was changed.",
            "<span class=\"badge bad\">Conflicted</span>",
            "<h3><code>src/a.txt</code></h3>",
            "<code>two\n</code>",
            "<code>&lt;script&gt;alert(1)&lt;/script&gt;\n</code>",
            "<code>plan\n</code>",
        ],
    );
    assert_parts(&browser.get("/").await.body, &["conflicts with other changes"]);
}

#[tokio::test]
async fn work_is_given_up_only_after_a_second_question() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({})).await;
    run(&running, &plan, "echo a > new.txt").await;
    let plan = show(&running, &plan.id).await;

    let page = submit(&browser, &plan, &[("action", "discard")]).await;
    assert_parts(
        &page,
        &["nothing was done.", "has 1 changed files that are not applied"],
    );
    let question = browser.get(&format!("/plans/{}/discard", plan.id)).await.body;
    assert_parts(
        &question,
        &["Discard this plan?", "name=\"give_up\" value=\"yes\""],
    );
    let plan = show(&running, &plan.id).await;
    let page = submit(&browser, &plan, &[("action", "discard"), ("give_up", "yes")]).await;
    assert_parts(&page, &["was discarded."]);
    // There is nothing more to ask.
    let answer = browser.get(&format!("/plans/{}/discard", plan.id)).await;
    assert_eq!(answer.status, 303, "{answer:?}");
}

#[tokio::test]
async fn checks_are_run_and_stand_in_the_way() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(
        &running,
        directory.path(),
        &json!({ "checks": ["test -e new.txt"] }),
    )
    .await;
    run(&running, &plan, "echo a > new.txt").await;
    let plan = show(&running, &plan.id).await;
    let fields = [("action", "apply"), ("seen", plan.fingerprint.as_str())];
    let page = submit(&browser, &plan, &fields).await;
    assert_parts(
        &page,
        &[
            "Not all checks have passed",
            "You can apply it once all checks have passed.",
            ">Run checks</button>",
        ],
    );

    submit(&browser, &plan, &[("action", "check")]).await;
    let job = show(&running, &plan.id).await.checks[0].job.clone().unwrap();
    crate::plans::ended(&running, &job).await;
    let page = browser.get(&format!("/plans/{}", plan.id)).await.body;
    assert_parts(
        &page,
        &[
            "<span class=\"badge good\">Passed</span><code>test -e new.txt</code>",
            &format!("href=\"/jobs/{job}\""),
            "id=\"apply\"",
        ],
    );
}

#[tokio::test]
async fn workspaces_are_listed_and_forgotten_when_nothing_is_open() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    let directory = workspace();
    let plan = open(&running, directory.path(), &json!({})).await;
    let page = browser.get("/workspaces").await.body;
    let root = directory.path().canonicalize().unwrap().display().to_string();
    assert_parts(&page, &[&root, "<span class=\"badge good\">Present</span>"]);
    assert!(!page.contains(">Forget</button>"), "{page}");

    run(&running, &plan, "echo a > new.txt").await;
    apply(&running, &[&plan.id]).await;
    let token = field(&browser.get("/workspaces").await.body, "form_token");
    let token = ("form_token", token.as_str());
    for (id, part) in [
        (
            plan.workspace.as_str(),
            "was forgotten. Its files were not touched.",
        ),
        (&plan.workspace, "nothing was done."),
        ("<b>", "There is no such workspace."),
    ] {
        let answer = browser.post("/workspaces/forget", &[token, ("id", id)]).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/workspaces"))
        );
        assert_parts(&browser.get("/workspaces").await.body, &[part]);
    }
}

#[tokio::test]
async fn forms_need_the_token() {
    let running = start().await;
    let browser = Browser::sign_in(&running).await;
    for (path, fields) in [
        (
            "/plans/change",
            vec![("id", UNKNOWN), ("version", "1"), ("action", "apply")],
        ),
        (
            "/workspaces/forget",
            vec![("id", "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAV")],
        ),
    ] {
        assert_eq!(browser.post(path, &fields).await.status, 403, "{path}");
    }
}
