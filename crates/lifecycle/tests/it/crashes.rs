//! Servers that end without being asked to.

use std::time::Duration;

use kernel::Deadline;
use lifecycle::{AfterCrash, LifecycleError, LifecycleSettings, Patience, ServerState};

use crate::{
    stage::{Stage, key, settings},
    subjects::scripted::{AtHandshake, AtStop, Manners, POLITE, failure},
};

const HANGING: Manners = Manners {
    at_handshake: AtHandshake::Hangs,
    ..POLITE
};

fn wait() -> Patience {
    Patience::Wait(Deadline::never())
}

fn state(stage: &Stage) -> (&'static str, u64, u64) {
    let status = stage.health(&key("ruff")).unwrap();
    (status.state.name(), status.generation.get(), status.crashes)
}

fn crash(stage: &Stage) {
    assert!(stage.script.newest().crash("out of memory"));
    stage.scheduler.run();
}

#[test]
fn a_crash_restarts_at_once_then_ever_more_slowly_and_then_not_at_all() {
    let stage = Stage::new();
    let lease = stage.client(&key("ruff"));
    crash(&stage);
    assert_eq!(state(&stage), ("ready", 2, 1), "the first retry comes at once");
    for (crashes, pause_ms) in [(2, 250), (3, 500), (4, 1_000), (5, 2_000)] {
        crash(&stage);
        assert_eq!(state(&stage), ("restarting", crashes, crashes));
        stage.clock.advance(Duration::from_millis(pause_ms - 1));
        stage.scheduler.run();
        assert_eq!(state(&stage), ("restarting", crashes, crashes));
        stage.clock.advance(Duration::from_millis(1));
        stage.scheduler.run();
        assert_eq!(state(&stage), ("ready", crashes + 1, crashes));
    }
    crash(&stage);
    assert_eq!(state(&stage), ("failed", 6, 6));
    assert_eq!(stage.script.alive().len(), 0);
    assert_eq!((stage.scheduler.tasks(), stage.clock.pending_alarms()), (0, 0));

    // Until its time has come nobody gets it by just wanting it.
    let refused = stage.get(&key("ruff"), wait()).done();
    let Err(LifecycleError::ServerFailed { reason, attempts, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((&*reason, attempts), (&failure("out of memory"), 6));
    stage.clock.advance(settings().given_up_for);
    drop(stage.client(&key("ruff")));
    assert_eq!(state(&stage), ("ready", 7, 6));
    // It was let in on trial: one more crash within the window, and that was it.
    crash(&stage);
    assert_eq!(state(&stage), ("failed", 7, 7));
    // Whoever asks for it by name gets it at once, with a clean slate.
    stage.start(&key("ruff")).done().unwrap();
    crash(&stage);
    assert_eq!(state(&stage), ("ready", 9, 8));
    drop(lease);
}

#[test]
fn a_server_that_waits_for_a_wish_stays_down_after_a_crash_and_comes_back_ever_more_slowly() {
    let settings = LifecycleSettings {
        after_crash: AfterCrash::WaitForRequest,
        ..settings()
    };
    let stage = Stage::with(settings);
    let lease = stage.client(&key("ruff"));
    crash(&stage);
    assert_eq!(state(&stage), ("failed", 1, 1), "nothing is launched");
    let refused = stage.get(&key("ruff"), wait()).done();
    assert!(matches!(
        refused,
        Err(LifecycleError::ServerFailed { attempts: 1, .. })
    ));
    for (crashes, pause_ms) in [(1, 250), (2, 250), (3, 500)] {
        stage.clock.advance(Duration::from_millis(pause_ms - 1));
        assert!(stage.get(&key("ruff"), wait()).done().is_err(), "{crashes}");
        stage.clock.advance(Duration::from_millis(1));
        drop(stage.client(&key("ruff")));
        assert_eq!(state(&stage), ("ready", crashes + 1, crashes));
        crash(&stage);
        assert_eq!(state(&stage), ("failed", crashes + 1, crashes + 1));
    }
    drop(lease);
}

#[test]
fn crashes_that_are_long_ago_do_not_count() {
    let stage = Stage::new();
    let _lease = stage.client(&key("ruff"));
    for round in 1..20 {
        crash(&stage);
        assert_eq!(state(&stage), ("ready", round + 1, round));
        stage.clock.advance(settings().failure_window);
    }
}

#[test]
fn a_caller_waits_through_a_crash_and_its_failed_retries() {
    let stage = Stage::new();
    drop(stage.client(&key("ruff")));
    stage.script.behave(HANGING);
    crash(&stage);
    let client = stage.get(&key("ruff"), wait());
    assert!(stage.script.newest().refuse("not yet"));
    stage.scheduler.run();
    assert_eq!(state(&stage), ("restarting", 2, 1));
    assert!(client.is_under_way());
    stage.script.behave(POLITE);
    stage.clock.advance(Duration::from_millis(250));
    stage.scheduler.run();
    drop(client.done().unwrap());
    assert_eq!(state(&stage), ("ready", 3, 1));
}

#[test]
fn an_explicit_start_ends_the_pause_and_learns_of_the_failure() {
    let stage = Stage::new();
    drop(stage.client(&key("ruff")));
    crash(&stage);
    crash(&stage);
    assert_eq!(state(&stage), ("restarting", 2, 2));
    stage.script.behave(HANGING);
    let start = stage.restart(&key("ruff"));
    assert_eq!(state(&stage), ("restarting", 3, 2));
    assert!(stage.script.newest().refuse("still broken"));
    stage.scheduler.run();
    assert!(matches!(
        start.done(),
        Err(LifecycleError::ServerFailed { attempts: 1, .. })
    ));
    // The pause that was cut short is over, and nobody starts anything.
    stage.clock.advance(Duration::from_secs(3600));
    stage.scheduler.run();
    assert_eq!(state(&stage), ("failed", 3, 2));
    assert_eq!(stage.scheduler.tasks(), 0);
}

#[test]
fn a_dead_server_is_never_handed_out_and_its_leases_do_not_keep_it() {
    let stage = Stage::new();
    let lease = stage.client(&key("ruff"));
    // It dies, and the watch has not run yet: the next client comes in that very instant.
    assert!(stage.script.newest().crash("killed"));
    let (manager, scope) = (stage.manager.clone(), stage.scope());
    let client = stage.begin(async move {
        let client = manager.get_client(&key("ruff"), &wait(), &scope).await?;
        client
            .server(&Patience::NoWait, &scope)
            .await
            .map(|current| (current.generation.get(), client))
    });
    assert!(
        stage.scheduler.step(|ready| ready - 1),
        "the client is the newest"
    );
    stage.scheduler.run();
    let (generation, client) = client.done().unwrap();
    assert_eq!(generation, 2);
    let status = stage.health(&key("ruff")).unwrap();
    assert_eq!(
        (status.leases, status.crashes, status.state),
        (2, 1, ServerState::Ready)
    );
    assert_eq!(stage.script.alive().len(), 1, "the dead one is cleaned up");
    drop((lease, client));
    assert_eq!(stage.health(&key("ruff")).unwrap().leases, 0);
}

#[test]
fn a_crashed_server_is_stopped_before_the_next_is_launched() {
    let stage = Stage::new();
    stage.script.behave(Manners {
        at_stop: AtStop::Hangs,
        ..POLITE
    });
    drop(stage.client(&key("ruff")));
    crash(&stage);
    assert_eq!(state(&stage), ("restarting", 1, 1));
    assert!(stage.script.newest().let_go());
    stage.scheduler.run();
    assert_eq!(state(&stage), ("ready", 2, 1));
    assert_eq!(stage.script.most_at_once(), 1);
}

#[test]
fn a_late_report_changes_nothing_and_is_counted() {
    let stage = Stage::new();
    stage.start(&key("ruff")).done().unwrap();
    let old = stage.script.newest();
    let (manager, scope) = (stage.manager.clone(), stage.scope());
    let restart = stage.begin(async move {
        manager
            .restart_server(&key("ruff"), &Deadline::never(), &scope)
            .await
    });
    // The restart is decided, and the watch over the old process is woken by its end before it looks.
    assert!(stage.scheduler.step(|ready| ready - 1));
    assert!(old.crash("at the worst moment"));
    stage.scheduler.run();
    restart.done().unwrap();
    let status = stage.health(&key("ruff")).unwrap();
    assert_eq!(
        (status.generation.get(), status.crashes, status.late_events),
        (2, 0, 1)
    );
}
