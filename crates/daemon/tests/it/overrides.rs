//! Breakers that are held by hand: what is acknowledged is on disk, and memory and log say the same.

use protocol::{Breaker, BreakerEventList, BreakerList, BreakerState, ErrorCode};

use crate::client::{Answer, Client};
use crate::running::{Running, is_own, own_breakers, within};

async fn force(client: &Client, name: &str, state: &str) -> Answer {
    let path = format!("/v1/breakers/{name}/force");
    let body = format!(r#"{{"state":"{state}"}}"#);
    client.post(&path).json(&body).send().await
}

async fn events(client: &Client, name: &str) -> BreakerEventList {
    let path = format!("/v1/breakers/{name}/events?limit=1000");
    let answer = client.get(&path).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn kinds(client: &Client, name: &str) -> Vec<String> {
    let list = events(client, name).await;
    list.events.into_iter().map(|event| event.kind).collect()
}

async fn states(client: &Client) -> Vec<(String, BreakerState)> {
    let mut list: BreakerList = client.get("/v1/breakers").send().await.json();
    list.breakers.retain(|breaker| !is_own(breaker));
    let state = |breaker: Breaker| (breaker.id, breaker.state);
    list.breakers.into_iter().map(state).collect()
}

#[tokio::test]
async fn what_is_held_by_hand_is_held_by_the_next_daemon_too() {
    let mut running = Running::start().await;
    let client = running.unix();
    for (name, state) in [("a%2Fb", "open"), ("b", "open"), ("b", "closed"), ("c", "open")] {
        assert_eq!(force(&client, name, state).await.status, 200);
    }
    assert_eq!(client.post("/v1/breakers/c/reset").send().await.status, 200);
    // What a breaker does by itself is not kept.
    for _ in 0..3 {
        let record = client.post("/v1/breakers/d/record");
        record.json(r#"{"outcome":"failure"}"#).send().await;
    }
    let held = [
        ("a/b".to_owned(), BreakerState::ForcedOpen),
        ("b".to_owned(), BreakerState::ForcedClosed),
    ];

    running = running.restart().await;
    assert_eq!(states(&running.unix()).await, held);
    running = running.crash().await;
    assert_eq!(states(&running.unix()).await, held);
    assert_eq!(
        kinds(&running.unix(), "c").await,
        ["forced_open", "reset"],
        "the history is that of all daemons"
    );
}

#[tokio::test]
async fn a_change_that_is_refused_is_not_in_the_history() {
    // With a clock that stands still, an open breaker stays as it was shown.
    let (running, _clock) = Running::start_with_manual_clock().await;
    let client = running.unix();
    let forced: Breaker = force(&client, "a", "open").await.json();
    let reset = |generation: u64| {
        let body = format!(r#"{{"generation":{generation}}}"#);
        client.post("/v1/breakers/a/reset").json(&body)
    };
    let refused = reset(forced.generation + 1).send().await;
    assert_eq!(refused.problem().code, ErrorCode::StaleGeneration);
    let unknown = client.post("/v1/breakers/b/reset").send().await;
    assert_eq!(unknown.problem().code, ErrorCode::BreakerUnknown);
    assert_eq!(kinds(&client, "a").await, ["forced_open"]);
    assert_eq!(kinds(&client, "b").await, [] as [String; 0]);

    assert_eq!(reset(forced.generation).send().await.status, 200);
    assert_eq!(kinds(&client, "a").await, ["forced_open", "reset"]);

    // The same for a breaker that decides by itself.
    let failed = client.post("/v1/breakers/a/record");
    let failed = failed.json(r#"{"outcome":"failure","retry_after_ms":60000}"#);
    let opened: Breaker = failed.send().await.json();
    assert_eq!(opened.state, BreakerState::Open);
    let refused = reset(forced.generation).send().await;
    assert_eq!(refused.problem().current, Some(opened.clone().into()));
    assert_eq!(kinds(&client, "a").await, ["forced_open", "reset"]);
    let closed: Breaker = reset(opened.generation).send().await.json();
    assert_eq!(closed.state, BreakerState::Closed);
    assert_eq!(kinds(&client, "a").await, ["forced_open", "reset", "reset"]);
}

#[tokio::test]
async fn there_is_no_trace_of_a_change_that_found_no_room() {
    let clock = kernel::SystemClock::shared();
    let own = own_breakers().await;
    let running = Running::start_with(clock, |options| options.breaker.max_names = own + 1).await;
    let client = running.unix();
    assert_eq!(force(&client, "a", "open").await.status, 200);
    let refused = force(&client, "b", "open").await;
    assert_eq!(refused.problem().code, ErrorCode::BreakerLimitReached);
    assert_eq!(kinds(&client, "b").await, [] as [String; 0]);
}

#[tokio::test]
async fn all_are_reset_together_and_each_has_it_in_its_history() {
    let running = Running::start().await;
    let client = running.unix();
    for name in ["a", "b", "c"] {
        force(&client, name, "open").await;
    }
    let reset = client.post("/v1/breakers/reset").send().await;
    let own = own_breakers().await as u64;
    assert_eq!(reset.json::<protocol::ResetBreakers>().reset, 3 + own);
    let request_id = reset.header("x-request-id").unwrap();
    let mut times = Vec::new();
    for name in ["a", "b", "c"] {
        let list = events(&client, name).await;
        let last = list.events.last().unwrap();
        assert_eq!((last.sequence, last.kind.as_str()), (2, "reset"));
        assert_eq!(last.by.as_ref().unwrap().request_id, request_id);
        times.push(last.at.clone());
    }
    times.dedup();
    assert_eq!(times.len(), 1, "one commit has one time");
    let running = running.restart().await;
    assert_eq!(states(&running.unix()).await, []);
}

#[tokio::test]
async fn concurrent_changes_are_in_the_history_once_each_and_the_last_one_stands() {
    let running = Running::start().await;
    let changes: Vec<_> = (0..60)
        .map(|number| {
            let client = if number % 2 == 0 {
                running.tcp()
            } else {
                running.unix()
            };
            tokio::spawn(async move {
                let answer = match number % 3 {
                    0 => force(&client, "a", "open").await,
                    1 => force(&client, "a", "closed").await,
                    // Refused if it comes first of all.
                    _ => client.post("/v1/breakers/a/reset").send().await,
                };
                let id = answer.header("x-request-id").unwrap().to_owned();
                (answer.status == 200).then_some(id)
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for change in changes {
        acknowledged.extend(within(change).await.unwrap());
    }
    let list = events(&running.unix(), "a").await;
    let sequence: Vec<u64> = list.events.iter().map(|event| event.sequence).collect();
    assert_eq!(sequence, (1..=acknowledged.len() as u64).collect::<Vec<_>>());
    let mut written: Vec<_> = list
        .events
        .iter()
        .map(|event| event.by.as_ref().unwrap().request_id.clone())
        .collect();
    written.sort();
    acknowledged.sort();
    assert_eq!(written, acknowledged);
    let expected = match list.events.last().unwrap().kind.as_str() {
        "forced_open" => BreakerState::ForcedOpen,
        "forced_closed" => BreakerState::ForcedClosed,
        _ => BreakerState::Closed,
    };
    let breaker: Breaker = running.unix().get("/v1/breakers/a").send().await.json();
    assert_eq!(breaker.state, expected);
}
