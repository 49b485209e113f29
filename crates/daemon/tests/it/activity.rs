//! What happened lately, over all of the daemon.

use http::Method;
use protocol::{Activity, ActivityKind, ActivityList};
use serde_json::json;

use crate::page::Browser;
use crate::running::Running;

async fn activity(running: &Running, query: &str) -> Vec<Activity> {
    let answer = running.unix().get(&format!("/v1/activity{query}")).send().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json::<ActivityList>().activity
}

fn told(events: &[Activity]) -> Vec<(ActivityKind, &str, &str)> {
    events
        .iter()
        .map(|event| (event.kind, event.title.as_str(), event.event.as_str()))
        .collect()
}

async fn make_a_session(running: &Running, directory: &std::path::Path, title: &str) {
    let body = json!({ "directory": directory, "title": title });
    let made = running
        .unix()
        .call(Method::POST, "/v1/sessions")
        .json(&body.to_string())
        .send()
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
}

async fn force(running: &Running, name: &str) {
    let body = json!({ "state": "open" });
    let path = format!("/v1/breakers/{name}/force");
    let forced = running
        .unix()
        .call(Method::POST, &path)
        .json(&body.to_string())
        .send()
        .await;
    assert_eq!(forced.status, 200, "{}", forced.body);
}

#[tokio::test]
async fn what_happened_is_told_newest_first_and_outlives_the_daemon() {
    let running = Running::start().await;
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(
        activity(&running, "")
            .await
            .iter()
            .map(|event| event.event.as_str())
            .collect::<Vec<_>>(),
        ["started"]
    );
    make_a_session(&running, directory.path(), "one").await;
    force(&running, "model").await;
    make_a_session(&running, directory.path(), "two").await;
    force(&running, "model").await;

    use ActivityKind::{Breaker, Daemon, Session};
    let expected = [
        (Breaker, "model", "forced_open"),
        (Session, "two", "opened"),
        (Breaker, "model", "forced_open"),
        (Session, "one", "opened"),
    ];
    let events = activity(&running, "").await;
    assert_eq!(told(&events)[..4], expected);
    assert_eq!((events[4].kind, events.len()), (Daemon, 5));
    assert_eq!(
        told(&activity(&running, "?kind=session").await),
        [expected[1], expected[3]]
    );
    // Side by side they are the same in a row.
    let breakers = activity(&running, "?kind=breaker").await;
    assert_eq!((told(&breakers), breakers[0].count), (vec![expected[0]], 2));
    assert_eq!(told(&activity(&running, "?limit=2").await), expected[..2]);
    assert_eq!(activity(&running, "?kind=plan").await, []);

    let running = running.restart().await;
    let events = activity(&running, "").await;
    assert_eq!((events[0].kind, events[0].event.as_str()), (Daemon, "started"));
    let again: Vec<Activity> = events.into_iter().filter(|event| event.kind != Daemon).collect();
    assert_eq!(told(&again), expected);
    let page = Browser::sign_in(&running).await.get("/events").await.body;
    for part in [
        "data-event=\"forced_open\"",
        "data-live=\"/live/events\" data-events=\"/v1/activity/events\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_explained() {
    let running = Running::start().await;
    for (query, part) in [
        ("?kind=weather", "In `kind`"),
        ("?limit=0", "`limit` is 0"),
        ("?limit=201", "`limit` is 201"),
        ("?before=x", "before"),
    ] {
        let answer = running.unix().get(&format!("/v1/activity{query}")).send().await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.body.contains(part), "{query}: {}", answer.body);
    }
    let page = Browser::sign_in(&running).await.get("/events?kind=weather").await;
    assert_eq!(page.status, 400);
    assert!(page.body.contains("which events to show"), "{}", page.body);
}

#[tokio::test]
async fn a_stream_tells_of_every_change() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    let mut stream = running.raw(&format!(
        "GET /v1/activity/events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        browser.host, browser.cookie
    ));
    stream.up_to("event: activity").await;
    force(&running, "model").await;
    stream.up_to("\"event\":\"forced_open\"").await;
    let directory = tempfile::tempdir().unwrap();
    make_a_session(&running, directory.path(), "heard").await;
    stream.up_to("\"title\":\"heard\"").await;
}
