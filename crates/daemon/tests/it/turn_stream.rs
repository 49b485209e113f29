//! A turn as its readers get it over HTTP.

use protocol::{
    ErrorCode, TurnEnd, TurnEvent, TurnEventBody, TurnItem, TurnResync, TurnState, TurnTranscript,
};
use serde_json::{Value, json};

use crate::running::{Raw, Running, within};

/// Says some words, with a pause in the middle, so that there is something to come.
const SCRIPT: &str =
    "steps:\n- say: {text: \"one two three \"}\n- sleep: 200ms\n- say: {text: \"four five\"}\n";

/// A turn that follows a script: the path of its events.
async fn turn(running: &Running, script: &str) -> String {
    let client = running.unix();
    let directory = env!("CARGO_MANIFEST_DIR");
    let body = json!({"directory": directory}).to_string();
    let opened = within(client.post("/v1/sessions").json(&body).send()).await;
    assert_eq!(opened.status, 201, "{}", opened.body);
    let session = opened.json::<Value>()["id"].as_str().unwrap().to_owned();
    let body = json!({"prompt": "go", "agent": {"name": "rehearsal", "script": script}}).to_string();
    let path = format!("/v1/sessions/{session}/turns");
    let accepted = within(client.post(&path).json(&body).send()).await;
    assert_eq!(accepted.status, 202, "{}", accepted.body);
    let turn = accepted.json::<protocol::TurnAccepted>().turn.id;
    format!("{path}/{turn}")
}

fn follow(running: &Running, path: &str, more: &str) -> Raw {
    let head = running.head(&format!("GET {path} HTTP/1.1"));
    running.raw(&format!("{head}Accept: text/event-stream\r\n{more}\r\n"))
}

/// What came: the id, if there is one, the name and the data of each event.
async fn read(raw: Raw) -> Vec<(Option<u64>, String, String)> {
    let text = raw.rest().await;
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    assert!(text.ends_with("0\r\n\r\n"), "the stream has an end: {text}");
    let (mut events, mut id, mut name) = (Vec::new(), None, String::new());
    for line in text.lines() {
        if let Some(given) = line.strip_prefix("id: ") {
            id = Some(given.split('-').next().unwrap().parse().unwrap());
        } else if let Some(given) = line.strip_prefix("event: ") {
            name = given.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((id.take(), std::mem::take(&mut name), data.to_owned()));
        }
    }
    events
}

async fn transcript(running: &Running, path: &str) -> TurnTranscript {
    let client = running.unix();
    let answer = within(client.get(&format!("{path}/transcript")).send()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

#[tokio::test]
async fn a_reader_gets_everything_in_order_and_then_the_end() {
    let running = Running::start().await;
    let path = turn(&running, SCRIPT).await;
    let mut events = read(follow(&running, &format!("{path}/events"), "")).await;
    let (_, name, end) = events.pop().unwrap();
    assert_eq!(name, "end");
    let end: TurnEnd = serde_json::from_str(&end).unwrap();
    assert_eq!((end.sequence, end.state), (events.len() as u64, TurnState::Done));
    let mut said = String::new();
    for (place, (id, name, data)) in (1..).zip(&events) {
        let event: TurnEvent = serde_json::from_str(data).unwrap();
        assert_eq!((*id, event.sequence), (Some(place), place));
        let body: Value = serde_json::from_str(data).unwrap();
        assert_eq!(body["data"]["kind"], **name);
        if let TurnEventBody::Text { delta, .. } = event.data {
            said += &delta;
        }
    }
    let transcript = transcript(&running, &path).await;
    let texts = transcript.items.iter().map(|item| match item {
        TurnItem::Text { text } => text.as_str(),
        _ => "",
    });
    assert_eq!(said, texts.collect::<String>());
    assert_eq!(said, "one two three four five");

    // Whoever comes back gets what is missing, and nothing twice.
    let last = end.sequence;
    for (query, more, expected) in [
        (String::new(), "Last-Event-ID: 3\r\n".to_owned(), 4),
        (format!("?after={}", last - 1), String::new(), last),
        (format!("?after={last}"), String::new(), last + 1),
        ("?tail=2".to_owned(), String::new(), last - 1),
        (
            "?after=1".to_owned(),
            format!("Last-Event-ID: {last}\r\n"),
            last + 1,
        ),
    ] {
        let raw = follow(&running, &format!("{path}/events{query}"), &more);
        let mut again = read(raw).await;
        assert_eq!(again.pop().unwrap().1, "end", "{query} {more}");
        let first = usize::try_from(expected - 1).unwrap();
        assert_eq!(again, events[first..], "{query} {more}");
    }
}

#[tokio::test]
async fn a_place_that_cannot_be_gone_on_from_is_answered_with_a_snapshot() {
    let running = Running::start().await;
    let path = turn(&running, SCRIPT).await;
    let beyond = "Last-Event-ID: 1000000\r\n";
    let events = read(follow(&running, &format!("{path}/events"), beyond)).await;
    let (id, name, data) = &events[0];
    let resync: TurnResync = serde_json::from_str(data).unwrap();
    assert_eq!((name.as_str(), *id), ("resync", Some(resync.after)));
    // Whatever was said after the snapshot follows it.
    for (place, (id, ..)) in (resync.after + 1..).zip(&events[1..events.len() - 1]) {
        assert_eq!(*id, Some(place));
    }
    assert_eq!(events.last().unwrap().1, "end");
    let again = read(follow(&running, &format!("{path}/events"), beyond)).await;
    let resync: TurnResync = serde_json::from_str(&again[0].2).unwrap();
    assert_eq!(resync.snapshot, transcript(&running, &path).await);
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused() {
    let running = Running::start().await;
    let path = turn(&running, SCRIPT).await;
    let (session, _) = path.rsplit_once('/').unwrap();
    let client = running.unix();
    let turn = protocol::TurnId::generate();
    for (path, expected) in [
        (format!("{path}/events?after=1&tail=1"), ErrorCode::InvalidQuery),
        (format!("{path}/events?before=1"), ErrorCode::InvalidQuery),
        (format!("{session}/{turn}/events"), ErrorCode::TurnNotFound),
    ] {
        let call = client.get(&path).header("accept", "text/event-stream");
        assert_eq!(within(call.send()).await.problem().code, expected, "{path}");
    }
}
