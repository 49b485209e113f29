//! The log is tidied up and measured, at the start and every few hours.

use std::sync::Arc;
use std::time::Duration;

use daemon::Upkeep;
use kernel::{Clock, ManualClock};

use crate::running::{Running, until};

async fn events(running: &Running) -> Option<String> {
    let metrics = running.unix().get("/metrics").send().await.body;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("tidelock_log_events "));
    line.map(str::to_owned)
}

#[tokio::test]
async fn the_log_is_looked_after_at_the_start_and_then_by_the_clock() {
    let clock = ManualClock::new();
    let six_hours = Duration::from_secs(6 * 3600);
    let running = Running::start_with(Arc::clone(&clock) as Arc<dyn Clock>, |options| {
        assert_eq!(
            daemon::Options::new(options.home.clone()).upkeep,
            Upkeep::AtStartAndEvery(six_hours)
        );
        options.upkeep = Upkeep::AtStartAndEvery(six_hours);
    })
    .await;
    let at_start = loop {
        // It is measured at the end of the upkeep.
        if let Some(events) = events(&running).await {
            break events;
        }
        tokio::task::yield_now().await;
    };
    until("it waits for the next time", || clock.pending_alarms() == 1).await;
    for _ in 0..5 {
        let client = running.unix();
        let force = client.post("/v1/breakers/a/force");
        assert_eq!(force.json(r#"{"state":"open"}"#).send().await.status, 200);
    }
    clock.advance(six_hours - Duration::from_secs(1));
    until("idle connections are gone", || clock.pending_alarms() == 1).await;
    assert_eq!(
        events(&running).await.as_ref(),
        Some(&at_start),
        "nothing is counted in between"
    );
    clock.advance(Duration::from_secs(1));
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    until("it waits for the next time", || clock.pending_alarms() == 1).await;
    let mut later = at_start.clone();
    for _ in 0..1000 {
        later = events(&running).await.unwrap();
        if later != at_start {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(count(&later) >= count(&at_start) + 5, "{at_start} {later}");
}
