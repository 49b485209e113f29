//! The history of a breaker: in pages, and as a stream.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use eventlog::{Commit, Head, Log, NewEvent, RetentionPolicy, SqliteOptions, StreamId, Version, Write};
use kernel::{Cause, Clock, ManualClock, SystemClock};
use protocol::{Actor, BreakerEventList, ErrorCode, HomeId};
use tempfile::TempDir;

use crate::running::{Raw, Running, until, within};

async fn force(running: &Running, state: &str) {
    let body = format!(r#"{{"state":"{state}"}}"#);
    let answer = running
        .unix()
        .post("/v1/breakers/a/force")
        .json(&body)
        .send()
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn follow(running: &Running, more: &str) -> Raw {
    let head = running.head("GET /v1/breakers/a/events HTTP/1.1");
    running.raw(&format!("{head}Accept: text/event-stream\r\n{more}\r\n"))
}

/// A log with a breaker `a` that was forced open so many times, before the first daemon.
async fn seed(directory: &TempDir, events: usize) -> Log {
    let home = crate::running::options(directory).home;
    home.prepare().unwrap();
    let home_id = HomeId::generate();
    fs::write(home.home_id_file(), format!("{home_id}\n")).unwrap();
    let path = home.log_database();
    let log = Log::open_sqlite(&SqliteOptions { path }, SystemClock::shared()).unwrap();
    let event = NewEvent {
        kind: "forced_open".into(),
        body: Arc::from(&b"what is this"[..]),
        blobs: Vec::new(),
    };
    let head = Head {
        kind: "breaker".into(),
        status: "forced_open".into(),
        body: Arc::from(&b"{}"[..]),
        blobs: Vec::new(),
    };
    let (mut left, mut expected) = (events, Version::NONE);
    while left > 0 {
        let count = left.min(1000);
        let write = Write {
            stream: StreamId::new(&format!("breaker/{home_id}/a")).unwrap(),
            expected,
            head: Some(head.clone()),
            events: vec![event.clone(); count],
        };
        expected = log.commit(Commit::one(write)).await.unwrap()[0].version;
        left -= count;
    }
    log
}

async fn event(raw: &mut Raw) -> (u64, String) {
    raw.up_to("\nid: ").await;
    let id = raw.up_to("\n").await.trim().parse().unwrap();
    raw.up_to("event: ").await;
    let kind = raw.up_to("\n").await.trim().to_owned();
    raw.up_to("data: ").await;
    let data: serde_json::Value = serde_json::from_str(raw.up_to("\n\n").await.trim()).unwrap();
    if kind == "resync" {
        assert_eq!(data, serde_json::json!({ "after": id }));
    } else {
        assert_eq!(
            (data["sequence"].as_u64(), data["kind"].as_str()),
            (Some(id), Some(kind.as_str()))
        );
    }
    (id, kind)
}

#[tokio::test]
async fn a_history_comes_in_pages_and_says_who_did_what() {
    let running = Running::start().await;
    let mut actors = Vec::new();
    for (client, transport) in [(running.unix(), "unix"), (running.tcp(), "tcp")] {
        let answer = client
            .post("/v1/breakers/a/force")
            .json(r#"{"state":"open"}"#)
            .send()
            .await;
        actors.push(Some(Actor {
            request_id: answer.header("x-request-id").unwrap().to_owned(),
            transport: transport.to_owned(),
        }));
    }
    force(&running, "closed").await;
    let list = async |query: &str| -> BreakerEventList {
        let path = format!("/v1/breakers/a/events{query}");
        running.unix().get(&path).send().await.json()
    };
    let all = list("").await;
    assert_eq!((all.first, all.last), (1, 3));
    let told: Vec<_> = all
        .events
        .iter()
        .map(|event| (event.sequence, event.kind.as_str()))
        .collect();
    assert_eq!(
        told,
        [(1, "forced_open"), (2, "forced_open"), (3, "forced_closed")]
    );
    let by: Vec<_> = all.events[..2].iter().map(|event| event.by.clone()).collect();
    assert_eq!(by, actors);
    let time = &all.events[0].at;
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");

    for (query, expected) in [
        ("?limit=2", &all.events[..2]),
        ("?after=2", &all.events[2..]),
        ("?after=1&limit=1", &all.events[1..2]),
        ("?after=3", &[]),
        ("?after=99", &[]),
    ] {
        let page = list(query).await;
        assert_eq!((page.events.as_slice(), page.last), (expected, 3), "{query}");
    }
    let nothing: BreakerEventList = running.unix().get("/v1/breakers/b/events").send().await.json();
    assert_eq!((nothing.events.len(), nothing.last), (0, 0));
}

#[tokio::test]
async fn a_stream_tells_what_was_and_then_what_comes() {
    let running = Running::start().await;
    force(&running, "open").await;
    let mut raw = follow(&running, "");
    let head = raw.up_to("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    assert!(head.contains("cache-control: no-store\r\n"), "{head}");
    raw.up_to("retry: 1000\n\n").await;
    assert_eq!(event(&mut raw).await, (1, "forced_open".to_owned()));
    force(&running, "closed").await;
    assert_eq!(event(&mut raw).await, (2, "forced_closed".to_owned()));

    // Where a reader left off is where it goes on, whatever its address says.
    let mut again = follow(&running, "Last-Event-ID: 1\r\n");
    assert_eq!(event(&mut again).await, (2, "forced_closed".to_owned()));
    let bad = follow(&running, "Connection: close\r\nLast-Event-ID: x\r\n")
        .rest()
        .await;
    assert!(
        bad.starts_with("HTTP/1.1 400 ") && bad.contains("\"invalid_query\""),
        "{bad}"
    );

    // The next daemon goes on with the same numbers.
    let ended = tokio::spawn(raw.rest());
    drop(again);
    let running = running.restart().await;
    let rest = within(ended).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "the stream has no end: {rest:?}");
    let mut next = follow(&running, "Last-Event-ID: 2\r\n");
    force(&running, "open").await;
    assert_eq!(event(&mut next).await, (3, "forced_open".to_owned()));
}

#[tokio::test]
async fn a_silent_stream_has_heartbeats_and_outlives_every_time_limit() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let mut raw = follow(&running, "");
    raw.up_to("retry: 1000\n\n").await;
    for _ in 0..20 {
        until("the silence is timed", || clock.pending_alarms() == 1).await;
        clock.advance(Duration::from_secs(15));
        raw.up_to(": nothing new\n\n").await;
    }
    force(&running, "open").await;
    assert_eq!(event(&mut raw).await, (1, "forced_open".to_owned()));
}

#[tokio::test]
async fn a_reader_that_does_not_read_holds_up_nobody_and_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    // More than the buffers of a socket take.
    drop(seed(&directory, 5000).await);
    let clock = ManualClock::new();
    let running = Running::start_in(directory, Arc::clone(&clock) as Arc<dyn Clock>, |_| {}).await;
    let deaf = follow(&running, "");
    let mut other = follow(&running, "Last-Event-ID: 5000\r\n");
    other.up_to("retry: 1000\n\n").await;
    force(&running, "closed").await;
    assert_eq!(event(&mut other).await, (5001, "forced_closed".to_owned()));

    until("it is cut off", || {
        clock.advance(Duration::from_secs(30));
        deaf.is_cut_off()
    })
    .await;
    let told = deaf.rest().await;
    assert!(
        told.contains("id: 1\n") && !told.contains("id: 5000\n"),
        "{}",
        told.len()
    );
    assert!(
        !told.ends_with("0\r\n\r\n"),
        "it was taken for the end of the stream"
    );
}

#[tokio::test]
async fn there_is_room_for_so_many_streams_and_one_that_goes_away_makes_room() {
    let running = Running::start().await;
    let mut open = Vec::new();
    for _ in 0..128 {
        let mut raw = follow(&running, "");
        raw.up_to("retry: 1000\n\n").await;
        open.push(raw);
    }
    let client = running.unix();
    let one_more = client
        .get("/v1/breakers/a/events")
        .header("accept", "text/html, text/event-stream;q=0.9");
    let refused = within(one_more.send()).await;
    assert_eq!(refused.problem().code, ErrorCode::StreamLimitReached);
    drop(open.pop());
    let has_room = async || {
        let mut raw = follow(&running, "Connection: close\r\n");
        raw.up_to("\r\n").await.starts_with("HTTP/1.1 200 ")
    };
    for attempt in 0.. {
        if has_room().await {
            break;
        }
        assert!(attempt < 1000, "the place was not given back");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_drain_does_not_wait_for_streams() {
    let running = Running::start().await;
    let mut raw = follow(&running, "");
    raw.up_to("retry: 1000\n\n").await;
    running.handle.stop(Cause::new("the test", "it is over"));
    let ended = within(running.ended).await.unwrap();
    assert_eq!(ended.connections, daemon::Connections::Finished);
    assert_eq!(raw.rest().await, "\r\n0\r\n\r\n");
}

#[tokio::test]
async fn a_reader_whose_place_is_gone_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let log = seed(&directory, 10).await;
    let policy = RetentionPolicy {
        max_age: None,
        max_bytes_per_stream: Some(4 * 12),
    };
    log.trim("breaker", policy).await.unwrap();
    drop(log);

    let running = Running::start_in(directory, SystemClock::shared(), |_| {}).await;
    let mut raw = follow(&running, "Last-Event-ID: 2\r\n");
    assert_eq!(self::event(&mut raw).await, (6, "resync".to_owned()));
    for sequence in 7..=10 {
        assert_eq!(self::event(&mut raw).await, (sequence, "forced_open".to_owned()));
    }
    let page = running.unix().get("/v1/breakers/a/events?after=2").send().await;
    let page: BreakerEventList = page.json();
    assert_eq!((page.first, page.last, page.events.len()), (7, 10, 4));
    assert_eq!(
        page.events[0].by, None,
        "a body that is not understood is left out"
    );
    let breaker = running.unix().get("/v1/breakers/a").send().await;
    assert_eq!(
        breaker.json::<protocol::Breaker>().state,
        protocol::BreakerState::ForcedOpen
    );
}
