//! Breakers from end to end.

use kernel::SystemClock;
use protocol::{
    Breaker, BreakerList, BreakerState, BreakerSummary, ErrorCode, Problem, ResetBreakers, Status,
};
use std::time::Duration;

use crate::client::Client;
use crate::running::{Running, is_own, own_breakers};

/// A closed breaker that nothing has happened to.
fn closed(name: &str, generation: u64) -> Breaker {
    Breaker {
        id: name.to_owned(),
        state: BreakerState::Closed,
        generation,
        retry_after_ms: None,
        probing: false,
        consecutive_failures: 0,
        failures: 0,
        refused: 0,
        late_reports: 0,
        times_opened: 0,
    }
}

async fn fail(client: &Client, name: &str) -> Breaker {
    let path = format!("/v1/breakers/{name}/record");
    let answer = client.post(&path).json(r#"{"outcome":"failure"}"#).send().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn three_failures_open_a_breaker_and_everybody_sees_it() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let (one, other) = (running.tcp(), running.unix());
    let first = fail(&one, "a%2Fb").await;
    assert_eq!(
        first,
        Breaker {
            consecutive_failures: 1,
            failures: 1,
            ..closed("a/b", first.generation)
        }
    );
    fail(&other, "a%2Fb").await;
    let opened = fail(&one, "a%2Fb").await;
    let remaining_ms = opened.retry_after_ms.unwrap();
    assert!((1..=60_000).contains(&remaining_ms), "{opened:?}");
    let expected = Breaker {
        state: BreakerState::Open,
        retry_after_ms: Some(remaining_ms),
        failures: 3,
        times_opened: 1,
        ..closed("a/b", first.generation + 1)
    };
    assert_eq!(opened, expected);
    assert_eq!(
        other.get("/v1/breakers/a%2Fb").send().await.json::<Breaker>(),
        expected
    );
    let mut list: BreakerList = other.get("/v1/breakers").send().await.json();
    list.breakers.retain(|breaker| !is_own(breaker));
    assert_eq!(
        list,
        BreakerList {
            breakers: vec![expected],
            untracked: 0
        }
    );
    assert!(running.breakers.is_open("a/b"));
    let status: Status = one.get("/v1/status").send().await.json();
    let total = 1 + own_breakers().await as u64;
    assert_eq!(status.breakers, BreakerSummary { total, open: 1 });

    clock.advance(Duration::from_millis(remaining_ms));
    let tried_again: Breaker = one.get("/v1/breakers/a%2Fb").send().await.json();
    assert_eq!(tried_again.state, BreakerState::HalfOpen);
    let answer = one
        .post("/v1/breakers/a%2Fb/record")
        .json(r#"{"outcome":"success"}"#)
        .send()
        .await;
    assert_eq!(answer.json::<Breaker>().state, BreakerState::Closed);
}

#[tokio::test]
async fn a_reset_that_names_a_generation_applies_to_that_one_only() {
    let (running, _clock) = Running::start_with_manual_clock().await;
    let client = running.tcp();
    for _ in 0..2 {
        fail(&client, "a").await;
    }
    let seen = fail(&client, "a").await;
    // Somebody else is faster, and it breaks again.
    assert_eq!(client.post("/v1/breakers/a/reset").send().await.status, 200);
    for _ in 0..2 {
        fail(&client, "a").await;
    }
    let current = fail(&client, "a").await;

    let body = format!("{{\"generation\":{}}}", seen.generation);
    let refused = client.post("/v1/breakers/a/reset").json(&body).send().await;
    let found = refused.problem();
    let detail = format!(
        "You saw generation {}, and it is {} now.",
        seen.generation, current.generation
    );
    let expected = Problem {
        current: Some(current.clone().into()),
        ..Problem::new(ErrorCode::StaleGeneration, detail, found.request_id.clone())
    };
    assert_eq!(found, expected);
    assert!(
        running.breakers.is_open("a"),
        "a stale reset has changed something"
    );

    let body = format!("{{\"generation\":{}}}", current.generation);
    let reset = client.post("/v1/breakers/a/reset").json(&body).send().await;
    let expected = Breaker {
        failures: 6,
        times_opened: 2,
        ..closed("a", current.generation + 1)
    };
    assert_eq!(reset.json::<Breaker>(), expected);
}

#[tokio::test]
async fn breakers_can_be_held_and_reset_all_at_once() {
    let running = Running::start().await;
    let client = running.tcp();
    for (name, body, expected) in [
        ("a", r#"{"state":"open"}"#, BreakerState::ForcedOpen),
        ("b", r#"{"state":"closed"}"#, BreakerState::ForcedClosed),
        ("reset", r#"{"state":"open"}"#, BreakerState::ForcedOpen),
    ] {
        let path = format!("/v1/breakers/{name}/force");
        let forced: Breaker = client.post(&path).json(body).send().await.json();
        assert_eq!(
            forced,
            Breaker {
                state: expected,
                ..closed(name, forced.generation)
            }
        );
        let shown: Breaker = client.get(&format!("/v1/breakers/{name}")).send().await.json();
        assert_eq!(shown, forced);
    }
    let reset: ResetBreakers = client.post("/v1/breakers/reset").send().await.json();
    let count = 3 + own_breakers().await as u64;
    assert_eq!(reset, ResetBreakers { reset: count });
    let list: BreakerList = client.get("/v1/breakers").send().await.json();
    let states: Vec<BreakerState> = list.breakers.iter().map(|breaker| breaker.state).collect();
    assert_eq!(states, vec![BreakerState::Closed; count as usize]);
}

#[tokio::test]
async fn a_pause_that_the_other_side_asks_for_is_kept() {
    let (running, _clock) = Running::start_with_manual_clock().await;
    let body = r#"{"outcome":"failure","retry_after_ms":120000}"#;
    let opened: Breaker = running
        .tcp()
        .post("/v1/breakers/a/record")
        .json(body)
        .send()
        .await
        .json();
    assert_eq!(opened.state, BreakerState::Open);
    assert!(opened.retry_after_ms.unwrap() >= 120_000, "{opened:?}");
}

#[tokio::test]
async fn a_full_table_is_said() {
    let own = own_breakers().await;
    let change = |options: &mut daemon::Options| options.breaker.max_names = own + 1;
    let running = Running::start_with(SystemClock::shared(), change).await;
    let client = running.tcp();
    let body = r#"{"state":"open"}"#;
    assert_eq!(
        client.post("/v1/breakers/a/force").json(body).send().await.status,
        200
    );
    for (path, body) in [
        ("/v1/breakers/b/force", body),
        ("/v1/breakers/b/record", r#"{"outcome":"failure"}"#),
        ("/v1/breakers/b/record", r#"{"outcome":"success"}"#),
    ] {
        let problem = client.post(path).json(body).send().await.problem();
        assert_eq!(
            (problem.status, problem.code),
            (503, ErrorCode::BreakerLimitReached)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_report_of_64_clients_is_lost() {
    const CLIENTS: u64 = 64;
    const REPORTS: u64 = 20;
    let running = Running::start_with(SystemClock::shared(), |options| {
        options.breaker.failure_threshold = u32::MAX;
    })
    .await;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|index| {
            let client = if index % 2 == 0 {
                running.tcp()
            } else {
                running.unix()
            };
            tokio::spawn(async move {
                for _ in 0..REPORTS {
                    fail(&client, "shared").await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let shared = running.breakers.get("shared").unwrap();
    assert_eq!(
        (shared.failures, u64::from(shared.consecutive_failures)),
        (CLIENTS * REPORTS, CLIENTS * REPORTS)
    );
}
