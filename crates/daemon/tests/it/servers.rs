//! Language servers over HTTP and on the page, as long as none has been used.

use http::Method;
use kernel::Cause;
use protocol::{ErrorCode, LspConfig, ServerList};
use std::time::Duration;

use crate::page::Browser;
use crate::running::{Raw, Running, until, within};

fn follow(running: &Running) -> Raw {
    running.raw(&format!("{}\r\n", running.head("GET /v1/lsp/events HTTP/1.1")))
}

/// The list that the next event carries.
async fn event(raw: &mut Raw) -> ServerList {
    raw.up_to("event: servers\ndata: ").await;
    serde_json::from_str(raw.up_to("\n\n").await.trim()).unwrap()
}

#[tokio::test]
async fn nothing_is_listed_before_it_is_used() {
    let running = Running::start().await;
    for client in [running.tcp(), running.unix()] {
        let list: ServerList = client.get("/v1/lsp/servers").send().await.json();
        assert_eq!(list, ServerList { servers: Vec::new() });
        let stopped = client.post("/v1/lsp/stop").send().await;
        assert_eq!((stopped.status, stopped.json::<ServerList>()), (200, list));
    }
    let config = running.unix().get("/v1/lsp/config?workspace=%2F").send().await;
    assert_eq!(config.json::<LspConfig>().workspace, "/");
}

#[tokio::test]
async fn what_is_asked_must_make_sense() {
    let running = Running::start().await;
    let client = running.unix();
    let start = r#"{"path":"src/main.rs"}"#;
    let start_in = r#"{"path":"/a","workspace":"b"}"#;
    let trust = r#"{"path":".lsp.json","hash":"3f"}"#;
    let seen = r#"{"generation":1}"#;
    for (method, path, body, expected) in [
        (
            Method::POST,
            "/v1/lsp/servers",
            start,
            (422, ErrorCode::InvalidRequest, Some("path")),
        ),
        (
            Method::POST,
            "/v1/lsp/servers",
            start_in,
            (422, ErrorCode::InvalidRequest, Some("workspace")),
        ),
        (
            Method::POST,
            "/v1/lsp/servers",
            "{}",
            (422, ErrorCode::InvalidRequest, Some("path")),
        ),
        (
            Method::POST,
            "/v1/lsp/config/trust",
            trust,
            (422, ErrorCode::InvalidRequest, Some("path")),
        ),
        (
            Method::GET,
            "/v1/lsp/config?workspace=a",
            "",
            (400, ErrorCode::InvalidQuery, Some("workspace")),
        ),
        (
            Method::GET,
            "/v1/lsp/config",
            "",
            (400, ErrorCode::InvalidQuery, None),
        ),
        (
            Method::GET,
            "/v1/lsp/servers/%FF",
            "",
            (400, ErrorCode::InvalidName, None),
        ),
        (
            Method::GET,
            "/v1/lsp/servers/a",
            "",
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::GET,
            "/v1/lsp/servers/a/health",
            "",
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::GET,
            "/v1/lsp/servers/a/log",
            "",
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::POST,
            "/v1/lsp/servers/a/stop",
            "",
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::POST,
            "/v1/lsp/servers/a/stop",
            seen,
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::POST,
            "/v1/lsp/servers/a/restart",
            "",
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::POST,
            "/v1/lsp/servers/a/restart",
            seen,
            (404, ErrorCode::ServerNotFound, None),
        ),
        (
            Method::POST,
            "/v1/lsp/servers/a/restart",
            r#"{"generation":"x"}"#,
            (422, ErrorCode::InvalidRequest, Some("generation")),
        ),
    ] {
        let call = client.call(method, path);
        let call = if body.is_empty() { call } else { call.json(body) };
        let problem = call.send().await.problem();
        assert_eq!(
            (problem.status, problem.code, problem.field.as_deref()),
            expected,
            "{path} {body}"
        );
    }
}

#[tokio::test]
async fn a_stream_tells_the_whole_list_at_once_and_ends_with_the_daemon() {
    let running = Running::start().await;
    let mut raw = follow(&running);
    let head = raw.up_to("\r\n\r\n").await;
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    raw.up_to("retry: 1000\n\n").await;
    assert_eq!(event(&mut raw).await, ServerList { servers: Vec::new() });
    running.handle.stop(Cause::new("the test", "it is over"));
    let ended = within(running.ended).await.unwrap();
    assert_eq!(ended.connections, daemon::Connections::Finished);
    assert_eq!(raw.rest().await, "\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_silent_stream_has_heartbeats_and_takes_one_of_the_places() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let mut first = follow(&running);
    event(&mut first).await;
    for _ in 0..3 {
        until("the silence is timed", || clock.pending_alarms() >= 1).await;
        clock.advance(Duration::from_secs(15));
        first.up_to(": nothing new\n\n").await;
    }
    let mut open = vec![first];
    for _ in 1..128 {
        let mut raw = follow(&running);
        event(&mut raw).await;
        open.push(raw);
    }
    let refused = within(running.unix().get("/v1/lsp/events").send()).await;
    assert_eq!(refused.problem().code, ErrorCode::StreamLimitReached);
}

#[tokio::test]
async fn the_page_of_servers_says_what_to_do_and_may_follow_them() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    let page = browser.get("/servers").await;
    assert_eq!(page.status, 200);
    for part in [
        "<a href=\"/servers\" aria-current=\"page\">Servers</a>",
        "data-live=\"/live/servers\" data-events=\"/v1/lsp/events\"",
        "<code>tidelock lsp hover FILE:LINE:COL</code>",
    ] {
        assert!(page.body.contains(part), "{part}: {}", page.body);
    }
    assert!(
        browser
            .get("/")
            .await
            .body
            .contains("<a href=\"/servers\" data-key=\"tile Ready servers\">")
    );
    assert!(!browser.get("/breakers").await.body.contains("data-events"));

    // The script follows the stream with the cookie of the page, and with nothing else.
    let mut raw = running.raw(&format!(
        "GET /v1/lsp/events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n",
        browser.host, browser.cookie
    ));
    assert_eq!(event(&mut raw).await, ServerList { servers: Vec::new() });
    let stranger = running.raw("GET /v1/lsp/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(stranger.rest().await.starts_with("HTTP/1.1 401 "));

    let missing = browser.get("/servers/%3Cb%3E").await;
    assert_eq!(missing.status, 404);
    assert!(
        missing.body.contains("<code>&lt;b&gt;</code>"),
        "{}",
        missing.body
    );
}

#[tokio::test]
async fn a_form_about_a_server_that_is_not_there_changes_nothing_and_says_so() {
    let running = Running::start().await;
    let browser = Browser::sign_in(&running).await;
    running.breakers.force_open("a");
    let token = browser.form_token().await;
    let fields = [("id", "<a>"), ("generation", "1"), ("action", "restart")];
    let own: Vec<_> = [("form_token", token.as_str())]
        .into_iter()
        .chain(fields)
        .collect();
    let answer = browser.post("/servers/change", &own).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/servers"))
    );
    let page = browser.get("/servers").await.body;
    assert!(page.contains("“&lt;a&gt;” could not be changed: "), "{page}");
    assert!(
        !browser
            .get("/servers")
            .await
            .body
            .contains("could not be changed")
    );

    let detail: Vec<_> = own.iter().copied().chain([("origin", "detail")]).collect();
    let answer = browser.post("/servers/change", &detail).await;
    assert_eq!(answer.header("location"), Some("/servers/%3Ca%3E"));
    assert_eq!(browser.post("/servers/change", &fields).await.status, 403);
    let strange: Vec<_> = own
        .iter()
        .copied()
        .map(|(name, value)| (name, if name == "action" { "eat" } else { value }))
        .collect();
    assert_eq!(browser.post("/servers/change", &strange).await.status, 422);
}
