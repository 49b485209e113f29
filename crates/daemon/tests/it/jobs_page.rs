//! The page of jobs, as long as there is none.

use crate::page::{Browser, field};
use crate::running::Running;

const UNKNOWN: &str = "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX";

/// Sends a form, and loads the page that it leads to.
async fn submit(browser: &Browser, path: &str, fields: &[(&str, &str)], expected: &str) -> String {
    let answer = browser.post(path, fields).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some(expected)),
        "{answer:?}"
    );
    browser.get(expected).await.body
}

#[tokio::test]
async fn the_page_says_what_to_do_and_follows_what_happens() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    let page = browser.get("/jobs").await.body;
    for part in [
        "<title>Jobs · Tidelock</title>",
        "<a href=\"/jobs\" aria-current=\"page\">Jobs</a>",
        "data-live=\"/live/jobs\" data-events=\"/v1/jobs/events\"",
        "<code>tidelock job run -- cargo test</code>",
        "id=\"workers\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let narrowed = browser.get("/jobs?state=failed").await.body;
    for part in [
        "data-live=\"/live/jobs?state=failed\"",
        "aria-current=\"true\">Failed</a>",
        "No matching jobs",
    ] {
        assert!(narrowed.contains(part), "{part}: {narrowed}");
    }
    let overview = browser.get("/").await.body;
    assert!(
        overview
            .contains("data-key=\"tile Running jobs\">Running jobs</a></dt><dd>0 <small>0 queued</small>"),
        "{overview}"
    );
}

#[tokio::test]
async fn an_address_that_makes_no_sense_is_explained() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    for (path, status, part) in [
        ("/jobs?state=lazy", 400, "which jobs to show"),
        ("/live/jobs?state=lazy", 400, "which jobs to show"),
        ("/jobs?before=%3Cb%3E", 400, "which jobs to show"),
        ("/jobs/%3Cb%3E", 404, "<code>&lt;b&gt;</code>"),
        ("/jobs/%FF", 404, "There is no job"),
        ("/jobs/job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", 404, UNKNOWN),
        ("/live/jobs/job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", 404, UNKNOWN),
    ] {
        let answer = browser.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.body.contains(part), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn forms_need_the_token_and_say_what_became_of_them() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    for (path, field) in [
        ("/jobs/cancel", ("id", UNKNOWN)),
        ("/jobs/retry", ("id", UNKNOWN)),
        ("/jobs/workers", ("max_workers", "2")),
    ] {
        assert_eq!(browser.post(path, &[field]).await.status, 403, "{path}");
    }

    let form_token = field(&browser.get("/jobs").await.body, "form_token");
    let token = ("form_token", form_token.as_str());
    let list = "/jobs?state=running";
    let fields = [token, ("id", UNKNOWN), ("origin", "list"), ("state", "running")];
    let page = submit(&browser, "/jobs/cancel", &fields, list).await;
    assert!(
        page.contains("could not be changed: there is no such job"),
        "{page}"
    );
    for (path, fields) in [
        (
            "/jobs/cancel",
            vec![token, ("id", UNKNOWN), ("origin", "detail"), ("why", "enough")],
        ),
        ("/jobs/retry", vec![token, ("id", UNKNOWN)]),
    ] {
        let answer = browser.post(path, &fields).await;
        let expected = format!("/jobs/{UNKNOWN}");
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some(expected.as_str())),
            "{path}"
        );
    }

    let page = submit(&browser, "/jobs/workers", &[token, ("max_workers", "2")], "/jobs").await;
    assert!(page.contains("Now running at most 2 jobs at a time."), "{page}");
    for (count, status) in [("257", 422), ("-1", 422), ("", 422), ("many", 422)] {
        let answer = browser
            .post("/jobs/workers", &[token, ("max_workers", count)])
            .await;
        assert_eq!(answer.status, status, "{count}");
    }
}
