//! Numbers for monitoring.

use crate::running::{Running, own_breakers};

#[tokio::test]
async fn the_numbers_tell_what_happened() {
    let running = Running::start().await;
    let client = running.tcp();
    client.get("/v1/breakers/anything").send().await;
    client.get("/nowhere/at/all").send().await;
    client
        .call(http::Method::from_bytes(b"BREW").unwrap(), "/healthz")
        .send()
        .await;
    client
        .post("/v1/breakers/say%20%22hi%22%5C/record")
        .json(r#"{"outcome":"failure"}"#)
        .send()
        .await;
    client
        .post("/v1/breakers/held/force")
        .json(r#"{"state":"open"}"#)
        .send()
        .await;

    let answer = client.get("/metrics").send().await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    for line in [
        &format!(
            "tidelock_build_info{{version=\"{}\"}} 1",
            env!("CARGO_PKG_VERSION")
        ),
        "tidelock_phase{phase=\"ready\"} 1",
        "tidelock_http_requests_total{method=\"GET\",route=\"/v1/breakers/{name}\",status=\"4xx\"} 1",
        "tidelock_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"4xx\"} 1",
        "tidelock_http_requests_total{method=\"other\",route=\"/healthz\",status=\"4xx\"} 1",
        "tidelock_http_requests_total{method=\"POST\",route=\"/v1/breakers/{name}/record\",status=\"2xx\"} 1",
        "tidelock_http_requests_in_flight 1",
        "tidelock_http_request_duration_seconds_count{route=\"/v1/breakers/{name}\"} 1",
        "tidelock_breaker_state{name=\"held\",state=\"forced_open\"} 1",
        "tidelock_breaker_state{name=\"say \\\"hi\\\"\\\\\",state=\"closed\"} 1",
        "tidelock_breaker_failures_total{name=\"say \\\"hi\\\"\\\\\"} 1",
        "tidelock_breaker_failures_total{name=\"held\"} 0",
        "tidelock_breaker_refused_total{name=\"held\"} 0",
        "tidelock_breaker_late_reports_total{name=\"held\"} 0",
        "tidelock_breaker_opened_total{name=\"held\"} 0",
        "tidelock_breaker_untracked_total 0",
        "tidelock_processes_owned 0",
        "tidelock_processes_reclaimed{outcome=\"killed\"} 0",
        "tidelock_jobs_queued 0",
        "tidelock_jobs_running 0",
        "tidelock_jobs_claimed_total 0",
        "tidelock_jobs_fenced_total 0",
        "# EOF",
    ] {
        assert!(
            answer.body.lines().any(|found| found == line),
            "{line} is not in\n{}",
            answer.body
        );
    }
    assert!(answer.body.contains("\ntidelock_uptime_seconds "));
}

#[tokio::test]
async fn the_status_is_that_of_this_process() {
    let running = Running::start().await;
    let found: protocol::Status = running.unix().get("/v1/status").send().await.json();
    let expected = protocol::Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        phase: protocol::Phase::Ready,
        address: running.address.to_string(),
        socket: running.home.socket().display().to_string(),
        breakers: protocol::BreakerSummary {
            total: own_breakers().await as u64,
            open: 0,
        },
        ..found.clone()
    };
    assert_eq!(found, expected);
    assert!(found.boot_id.parse::<protocol::BootId>().is_ok());
    assert!(
        found.started_at.ends_with('Z') && found.started_at.len() == 20,
        "{}",
        found.started_at
    );
    assert!(found.rss_bytes.is_some());
}
