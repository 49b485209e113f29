//! Questions that nobody waits for any more.

use std::fs;

use serde_json::json;

use crate::context::{repository, start_with};
use crate::plans::get;
use crate::running::until;

/// A command that says that it has begun, and then takes for ever.
fn endless(mark: &std::path::Path) -> String {
    format!(
        "[[context.commands]]\nname = \"endless\"\ntimeout_ms = 120000\n\
         command = [\"sh\", \"-c\", \"echo > '{}'; exec sleep 1000\"]\n",
        mark.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_goes_away_cancels_its_question() {
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("mark");
    let (running, _configuration) = start_with(&endless(&mark)).await;
    let workspace = repository();
    let body = json!({
        "directory": workspace.path(), "query": "a", "only": ["endless"], "deadline_ms": 120_000,
    });
    let body = body.to_string();
    let head = running.head("POST /v1/context HTTP/1.1");
    let raw = running.raw(&format!(
        "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    until("the command runs", || mark.exists()).await;
    let owned = async || {
        let numbers = get(&running, "/metrics").await.body;
        let line = |name: &str| numbers.lines().any(|line| line == name);
        (
            line("tidelock_processes_owned 0"),
            line(r#"tidelock_context_questions_total{outcome="cancelled"} 1"#),
        )
    };
    assert_eq!(owned().await, (false, false));
    drop(raw);
    // Nobody waits: the question is over, and so is the command.
    let began = std::time::Instant::now();
    while owned().await != (true, true) {
        assert!(began.elapsed().as_secs() < 30, "{:?}", owned().await);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_ends_waits_for_no_question() {
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("mark");
    let (running, _configuration) = start_with(&endless(&mark)).await;
    let workspace = repository();
    let body = json!({
        "directory": workspace.path(), "query": "a", "only": ["endless"], "deadline_ms": 120_000,
    });
    let client = running.unix();
    let call = client.post("/v1/context").json(&body.to_string()).send();
    let stop = async {
        until("the command runs", || mark.exists()).await;
        running.stop().await;
    };
    let (answer, ()) = tokio::join!(call, stop);
    assert_eq!(
        answer.problem().code,
        protocol::ErrorCode::ShuttingDown,
        "{answer:?}"
    );
    fs::remove_file(mark).unwrap();
}
