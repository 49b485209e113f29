//! How a daemon stops: what is in flight is finished, what is new is refused, and nothing takes for ever.

use std::time::Duration;

use daemon::{Connections, Signals};
use kernel::{Cause, Clock, ManualClock};
use std::sync::Arc;

use crate::running::{Raw, Running, until, within};

/// A request whose handler waits for the last byte of its body.
fn in_flight(running: &Running) -> Raw {
    let head = running.head("POST /v1/breakers/a/force HTTP/1.1");
    running.raw(&format!(
        "{head}Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{{\"state\":\"open\""
    ))
}

#[tokio::test]
async fn a_request_in_flight_is_finished_and_a_new_one_refused() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let mut working = in_flight(&running);
    let mut asking = running.raw("GET /readyz HTTP/1.1\r\nHost: localhost\r\n");
    let mut late = running.raw(&running.head("GET /v1/status HTTP/1.1"));
    let idle = running.raw("");
    until("all four are waited for", || clock.pending_alarms() == 4).await;

    let answer = running.tcp().post("/v1/shutdown").send().await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert!(
        answer
            .json::<protocol::ShutdownAccepted>()
            .boot_id
            .starts_with("boot_")
    );
    until("the listener is gone", || !running.listens()).await;
    assert_eq!(idle.rest().await, "");

    // Heads that were under way are answered, so that their senders know.
    asking.send("\r\n").await;
    let answer = asking.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"not_ready\""),
        "{answer}"
    );
    late.send("\r\n").await;
    let answer = late.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"shutting_down\""),
        "{answer}"
    );
    assert!(
        answer.contains("(POST /v1/shutdown: a client asked for it)"),
        "{answer}"
    );

    assert!(
        !running.ended.is_finished(),
        "it did not wait for the request in flight"
    );
    working.send("}").await;
    let answer = working.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"forced_open\""),
        "{answer}"
    );

    let ended = within(running.ended).await.unwrap();
    assert_eq!(
        ended.cause.to_string(),
        "POST /v1/shutdown: a client asked for it"
    );
    assert_eq!(ended.connections, Connections::Finished);
    assert!(!running.home.socket().exists(), "the socket was left behind");
}

#[tokio::test]
async fn what_takes_longer_than_the_grace_is_cut_off() {
    let (running, clock) = Running::start_with_manual_clock().await;
    let stuck = in_flight(&running);
    until("the body is waited for", || clock.pending_alarms() == 1).await;
    running.handle.stop(Cause::new("the test", "it is over"));
    until("the grace has begun", || clock.pending_alarms() == 2).await;
    clock.advance(Duration::from_secs(10));
    let ended = within(running.ended).await.unwrap();
    assert_eq!(ended.connections, Connections::Cut { count: 1 });
    assert_eq!(stuck.rest().await, "");
}

#[tokio::test]
async fn the_first_signal_drains_and_the_second_cuts() {
    let clock = ManualClock::new();
    let running = Running::start_with(Arc::clone(&clock) as Arc<dyn Clock>, |options| {
        options.signals = Signals::Stop;
    })
    .await;
    until("nothing is waited for", || clock.pending_alarms() == 0).await;
    let terminate = || {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
    };
    let stuck = in_flight(&running);
    until("the body is waited for", || clock.pending_alarms() == 1).await;
    terminate();
    until("the grace has begun", || clock.pending_alarms() == 2).await;
    assert!(!running.ended.is_finished());
    terminate();
    let ended = within(running.ended).await.unwrap();
    assert_eq!(ended.cause.to_string(), "SIGTERM: the process was told to end");
    assert_eq!(ended.connections, Connections::Cut { count: 1 });
    assert_eq!(stuck.rest().await, "");
}

#[tokio::test]
async fn a_stopped_daemon_leaves_its_home_to_the_next() {
    let mut running = Running::start().await;
    let home = running.home.clone();
    assert_eq!(running.unix().get("/v1/status").send().await.status, 200);
    let directory = tempfile::tempdir().unwrap();
    let mut options = crate::running::options(&directory);
    options.home = home.clone();
    let refused = daemon::Daemon::start(options.clone(), kernel::SystemClock::shared()).await;
    assert!(refused.is_err_and(|error| error.is_taken()));
    // The refused one has not harmed the first.
    assert_eq!(running.unix().get("/v1/status").send().await.status, 200);

    running.handle.stop(Cause::new("the test", "it is over"));
    within(&mut running.ended).await.unwrap();
    let next = daemon::Daemon::start(options, kernel::SystemClock::shared())
        .await
        .unwrap();
    assert!(home.socket().exists());
    drop(next);
    assert!(!home.socket().exists());
}
