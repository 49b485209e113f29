//! Readers that wait for something to happen, in numbers, and everybody else meanwhile.

use daemon::StreamLimit;
use kernel::SystemClock;
use rustix::process::{Resource, getrlimit};

use crate::running::{Raw, Running, within};

/// How many readers there are, if the limits of the machine allow it: many more than a listener has connections.
const READERS: usize = 2000;

/// How many descriptors the rest of the test may need.
const FOR_THE_REST: usize = 512;

/// As many as this process can hold both ends of.
fn readers() -> usize {
    let open_files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
    READERS.min(open_files.saturating_sub(FOR_THE_REST) / 4)
}

async fn reader(running: &Running) -> Raw {
    let head = running.head("GET /v1/breakers/a/events HTTP/1.1");
    let mut raw = running.raw(&format!("{head}Accept: text/event-stream\r\n\r\n"));
    raw.up_to("retry: 1000\n\n").await;
    raw
}

#[tokio::test]
async fn idle_readers_keep_nobody_from_being_answered() {
    let running = Running::start_with(SystemClock::shared(), |options| {
        options.streams = StreamLimit::ByDescriptors;
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..readers() {
        open.push(reader(&running).await);
    }
    for client in [running.unix(), running.tcp()] {
        for path in ["/healthz", "/v1/status", "/v1/breakers"] {
            let answer = within(client.get(path).send()).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        }
    }
    // All of them are still there, and hear of what happens.
    let client = running.unix();
    let force = client.post("/v1/breakers/a/force").json(r#"{"state":"open"}"#);
    let forced = within(force.send()).await;
    assert_eq!(forced.status, 200, "{}", forced.body);
    for raw in &mut open {
        raw.up_to("event: forced_open\n").await;
    }
}
