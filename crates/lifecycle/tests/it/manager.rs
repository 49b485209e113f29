//! Starts, stops, restarts and leases, one at a time and on top of each other.

use std::time::Duration;

use kernel::{Cause, Deadline};
use lifecycle::{LifecycleError, Patience, Probe, ProbeResult, ServerGeneration, ServerState, StoppedBy};

use crate::{
    stage::{Stage, key, settings},
    subjects::scripted::{AtHandshake, AtProbe, AtStop, Manners, POLITE, UNKNOWN, WhenCancelled, failure},
};

const HANGING: Manners = Manners {
    at_handshake: AtHandshake::Hangs,
    ..POLITE
};

fn generation(number: u64) -> ServerGeneration {
    ServerGeneration::from_u64(number)
}

fn wait() -> Patience {
    Patience::Wait(Deadline::never())
}

/// A result in short: the generation, or the name of the error.
fn short<T: std::fmt::Debug>(result: Result<T, LifecycleError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => {
            let debug = format!("{error:?}");
            let end = debug.find([' ', '{', '(']).unwrap_or(debug.len());
            debug[..end].to_owned()
        }
    }
}

fn state(stage: &Stage, name: &str) -> (String, u64, usize) {
    let status = stage.health(&key(name)).unwrap();
    (
        status.state.name().to_owned(),
        status.generation.get(),
        status.leases,
    )
}

fn stands(name: &str, generation: u64, leases: usize) -> (String, u64, usize) {
    (name.to_owned(), generation, leases)
}

#[test]
fn a_server_is_found_if_it_is_configured_whatever_it_does() {
    let stage = Stage::new();
    assert_eq!(short(stage.health(&key(UNKNOWN))), "ServerNotFound");
    assert_eq!(short(stage.start(&key(UNKNOWN)).done()), "ServerNotFound");
    assert_eq!(short(stage.stop(&key(UNKNOWN)).done()), "ServerNotFound");
    assert_eq!(short(stage.get(&key(UNKNOWN), wait()).done()), "ServerNotFound");
    let status = stage.health(&key("ruff")).unwrap();
    let by = StoppedBy::NeverStarted;
    assert_eq!((status.state, status.since), (ServerState::Stopped { by }, None));
    assert_eq!(stage.manager.list(), [], "to be asked about is not to be wanted");
}

#[test]
fn concurrent_first_starts_make_one_process() {
    let stage = Stage::new();
    stage.script.behave(HANGING);
    let starts: Vec<_> = (0..10).map(|_| stage.start(&key("ruff"))).collect();
    let clients: Vec<_> = (0..5).map(|_| stage.get(&key("ruff"), wait())).collect();
    assert_eq!(state(&stage, "ruff"), stands("starting", 1, 5));
    assert!(stage.script.newest().answer());
    stage.scheduler.run();
    assert!(starts.iter().all(|start| start.done().unwrap() == generation(1)));
    assert_eq!(stage.script.processes().len(), 1);
    drop(clients);
    assert_eq!(state(&stage, "ruff"), stands("ready", 1, 0));
}

#[test]
fn during_a_restart_everything_is_visible_and_joins_it() {
    let stage = Stage::new();
    let lease = stage.client(&key("ruff"));
    stage.script.behave(HANGING);
    let restarts: Vec<_> = (0..3).map(|_| stage.restart(&key("ruff"))).collect();
    assert_eq!(state(&stage, "ruff"), stands("restarting", 2, 1));
    let start = stage.start(&key("ruff"));
    let client = stage.get(&key("ruff"), wait());
    let hasty = stage.get(&key("ruff"), Patience::NoWait);
    assert_eq!(short(hasty.done()), "ServerRestarting");
    assert!(client.is_under_way() && start.is_under_way());
    assert!(stage.script.newest().answer());
    stage.scheduler.run();
    for call in restarts.iter().chain([&start]) {
        assert_eq!(call.done().unwrap(), generation(2));
    }
    let (processes, at_once) = (stage.script.processes().len(), stage.script.most_at_once());
    assert_eq!((processes, at_once), (2, 1));
    let client = client.done().unwrap();
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 2));
    // The lease that was taken before the restart leads to the new process.
    let scope = stage.scope();
    let current =
        stage.call(async move { lease.server(&Patience::NoWait, &scope).await.unwrap().generation });
    assert_eq!(current.done(), generation(2));
    drop(client);
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 0));
}

#[test]
fn leases_taken_and_returned_during_a_restart_are_kept() {
    let stage = Stage::new();
    let (first, second) = (stage.client(&key("ruff")), stage.client(&key("ruff")));
    stage.script.behave(HANGING);
    let restart = stage.restart(&key("ruff"));
    drop(first);
    let third = stage.get(&key("ruff"), wait());
    let given_up = stage.get(&key("ruff"), wait());
    assert_eq!(state(&stage, "ruff"), stands("restarting", 2, 3));
    stage.scheduler.drop_task(given_up.task);
    assert_eq!(state(&stage, "ruff"), stands("restarting", 2, 2));
    assert!(stage.script.newest().answer());
    stage.scheduler.run();
    drop((restart, second));
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 1));
    drop(third.done().unwrap());
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 0));
}

#[test]
fn the_old_process_is_gone_before_the_new_one_is_launched() {
    let stage = Stage::new();
    stage.script.behave(Manners {
        at_stop: AtStop::Hangs,
        ..POLITE
    });
    stage.start(&key("ruff")).done().unwrap();
    let restart = stage.restart(&key("ruff"));
    assert_eq!(state(&stage, "ruff"), stands("restarting", 1, 0));
    assert_eq!(stage.script.processes().len(), 1);
    assert!(stage.script.newest().let_go());
    stage.scheduler.run();
    assert_eq!(restart.done().unwrap(), generation(2));
    assert_eq!(stage.script.most_at_once(), 1);
}

#[test]
fn a_restart_that_fails_wakes_everybody_with_its_reason() {
    let stage = Stage::new();
    let lease = stage.client(&key("ruff"));
    stage.script.behave(HANGING);
    let restart = stage.restart(&key("ruff"));
    let start = stage.start(&key("ruff"));
    let client = stage.get(&key("ruff"), wait());
    assert!(stage.script.newest().refuse("no licence"));
    stage.scheduler.run();
    let client = client.done().map(|_| generation(0));
    for result in [restart.done(), start.done(), client] {
        match result {
            Err(LifecycleError::ServerFailed { reason, attempts, .. }) => {
                assert_eq!((&*reason, attempts), (&failure("no licence"), 1));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stage.script.alive().len(), 0);
    assert_eq!(state(&stage, "ruff"), stands("failed", 2, 1));
    drop(lease);
    let last_error = stage.health(&key("ruff")).unwrap().last_error.unwrap();
    let text = "no licence (exit code 3): cannot read the configuration";
    assert_eq!(last_error.to_string(), text);
}

#[test]
fn a_stop_during_a_restart_wins_and_kills_the_new_process() {
    for when_cancelled in [WhenCancelled::Goes, WhenCancelled::Ignores] {
        let stage = Stage::new();
        let lease = stage.client(&key("ruff"));
        stage.script.behave(Manners {
            when_cancelled,
            ..HANGING
        });
        let (restart, client) = (stage.restart(&key("ruff")), stage.get(&key("ruff"), wait()));
        let stop = stage.stop(&key("ruff"));
        assert_eq!(short(restart.done()), "ServerStopped");
        assert_eq!(short(client.done()), "ServerStopped");
        let newest = stage.script.newest();
        if when_cancelled == WhenCancelled::Ignores {
            // It may have a process, so it is not stopped yet, and it says so.
            assert!(stop.is_under_way());
            assert_eq!(state(&stage, "ruff"), stands("stopping", 2, 1));
            assert!(newest.answer(), "it hands out a server after all");
            stage.scheduler.run();
        }
        assert_eq!(short(stop.done()), "()");
        assert!(newest.is_gone());
        assert_eq!(state(&stage, "ruff"), stands("stopped", 2, 1));
        let refused = stage.get(&key("ruff"), wait());
        assert_eq!(short(refused.done()), "ServerStopped", "a stop by request lasts");
        let scope = stage.scope();
        let by_lease = stage.call(async move { lease.server(&wait(), &scope).await.map(|_| ()) });
        assert_eq!(short(by_lease.done()), "ServerStopped");
        stage.script.behave(POLITE);
        assert_eq!(stage.start(&key("ruff")).done().unwrap(), generation(3));
    }
}

#[test]
fn a_stop_that_takes_too_long_is_an_error_and_goes_on() {
    let stage = Stage::new();
    stage.script.behave(Manners {
        at_stop: AtStop::Hangs,
        ..POLITE
    });
    stage.start(&key("ruff")).done().unwrap();
    let (manager, scope, deadline) = (stage.manager.clone(), stage.scope(), stage.deadline(5));
    let stop = stage.call(async move { manager.stop_server(&key("ruff"), &deadline, &scope).await });
    stage.clock.advance(Duration::from_secs(5));
    stage.scheduler.run();
    match stop.done() {
        Err(LifecycleError::RequestTimeout { state }) => assert_eq!(state, ServerState::Stopping),
        other => panic!("{other:?}"),
    }
    // A start that comes now waits for the old process to go.
    let start = stage.start(&key("ruff"));
    assert_eq!(state(&stage, "ruff"), stands("restarting", 1, 0));
    assert!(stage.script.newest().let_go());
    stage.scheduler.run();
    assert_eq!(start.done().unwrap(), generation(2));
}

#[test]
fn stopping_many_that_hang_takes_one_deadline() {
    let stage = Stage::new();
    stage.script.behave(Manners {
        at_stop: AtStop::Hangs,
        ..POLITE
    });
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        stage.start(&key(name)).done().unwrap();
    }
    stage.script.behave(POLITE);
    stage.start(&key("f")).done().unwrap();
    let (manager, scope, deadline) = (stage.manager.clone(), stage.scope(), stage.deadline(5));
    let all = stage.call(async move { manager.stop_all(&deadline, &scope).await });
    assert!(all.is_under_way());
    stage.clock.advance(Duration::from_secs(5));
    stage.scheduler.run();
    let all = all.done().unwrap();
    assert_eq!(
        (all.stopped, all.still_stopping),
        (vec![key("f")], names.map(key).to_vec())
    );
    let states: Vec<_> = stage
        .manager
        .list()
        .iter()
        .map(|status| status.state.name())
        .collect();
    assert_eq!(states, [["stopping"; 5].as_slice(), &["stopped"]].concat());
    for process in stage.script.alive() {
        assert!(process.let_go());
    }
    stage.scheduler.run();
    assert_eq!(stage.script.alive().len(), 0);
}

#[test]
fn a_closed_manager_starts_nothing_not_even_what_was_just_asked_for() {
    let stage = Stage::new();
    stage.start(&key("up")).done().unwrap();
    let (manager, scope) = (stage.manager.clone(), stage.scope());
    let wish = stage.begin(async move {
        manager
            .start_server(&key("late"), &Deadline::never(), &scope)
            .await
    });
    // The wish is taken in, and its launch has not begun.
    assert!(stage.scheduler.step(|ready| ready - 1));
    let (manager, scope) = (stage.manager.clone(), stage.scope());
    let close = stage.begin(async move { manager.close(&Deadline::never(), &scope).await });
    assert!(stage.scheduler.step(|ready| ready - 1));
    stage.scheduler.run();
    close.done().unwrap();
    assert_eq!(short(wish.done()), "ServerStopped");
    assert_eq!(short(stage.start(&key("up")).done()), "ServerStopped");
    assert_eq!(short(stage.get(&key("new"), wait()).done()), "ServerStopped");
    let launched: Vec<_> = stage
        .script
        .processes()
        .into_iter()
        .map(|process| process.key)
        .collect();
    assert_eq!(launched, [key("up")]);
    assert_eq!((stage.script.alive().len(), stage.scheduler.tasks()), (0, 0));
}

#[test]
fn health_is_answered_at_once_and_a_probe_within_its_deadline() {
    let check = |at_probe, expected| {
        let stage = Stage::new();
        stage.script.behave(Manners { at_probe, ..POLITE });
        stage.start(&key("ruff")).done().unwrap();
        let (manager, probe) = (stage.manager.clone(), Probe::Within(stage.deadline(2)));
        let health = stage.call(async move { manager.health_check(&key("ruff"), &probe).await });
        stage.clock.advance(Duration::from_secs(2));
        stage.scheduler.run();
        let health = health.done().unwrap();
        assert_eq!(
            (health.probe, health.status.state),
            (expected, ServerState::Ready)
        );
    };
    let took = Duration::ZERO;
    check(AtProbe::Answers, ProbeResult::Answered { took });
    let message = "an error".to_owned();
    check(AtProbe::Refuses, ProbeResult::Failed { message });
    let message = "no answer before the deadline".to_owned();
    check(AtProbe::Hangs, ProbeResult::Failed { message });

    // A launch that hangs is not asked and holds nobody up.
    let stage = Stage::new();
    stage.script.behave(HANGING);
    let start = stage.start(&key("ruff"));
    let (manager, probe) = (stage.manager.clone(), Probe::Within(stage.deadline(2)));
    let health = stage.call(async move { manager.health_check(&key("ruff"), &probe).await });
    let health = health.done().unwrap();
    assert_eq!(
        (health.probe, health.status.state),
        (ProbeResult::NotAsked, ServerState::Starting)
    );
    assert!(start.is_under_way());
}

#[test]
fn waits_end_by_deadline_and_by_cancel_and_leave_no_lease() {
    let stage = Stage::new();
    stage.script.behave(HANGING);
    let client = stage.get(&key("ruff"), Patience::Wait(stage.deadline(3)));
    stage.clock.advance(Duration::from_secs(3));
    stage.scheduler.run();
    assert_eq!(short(client.done()), "RequestTimeout");
    let client = stage.get(&key("ruff"), wait());
    assert!(stage.token.cancel(Cause::new("test", "enough")));
    stage.scheduler.run();
    assert_eq!(short(client.done()), "Cancelled");
    assert_eq!(state(&stage, "ruff"), stands("starting", 1, 0));
}

#[test]
fn an_idle_server_stops_and_is_started_by_the_next_who_wants_it() {
    let stage = Stage::new();
    let lease = stage.client(&key("ruff"));
    stage.clock.advance(settings().idle_after * 2);
    stage.scheduler.run();
    assert_eq!(state(&stage, "ruff"), stands("ready", 1, 1), "it is in use");
    drop(lease);
    stage.scheduler.run();
    stage
        .clock
        .advance(settings().idle_after - Duration::from_millis(1));
    stage.scheduler.run();
    // A short use in between begins the time anew.
    drop(stage.client(&key("ruff")));
    stage.clock.advance(Duration::from_millis(1));
    stage.scheduler.run();
    assert_eq!(state(&stage, "ruff"), stands("ready", 1, 0));
    stage.clock.advance(settings().idle_after);
    stage.scheduler.run();
    let status = stage.health(&key("ruff")).unwrap();
    let by = StoppedBy::Idleness;
    assert_eq!(status.state, ServerState::Stopped { by });
    assert_eq!((stage.scheduler.tasks(), stage.clock.pending_alarms()), (0, 0));
    drop(stage.client(&key("ruff")));
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 0));
}

#[test]
fn a_rest_stops_what_nobody_uses_whatever_it_is_doing_and_any_wish_takes_it_back() {
    let stage = Stage::new();
    let rest = |name: &'static str| {
        let (manager, scope) = (stage.manager.clone(), stage.scope());
        stage.call(async move {
            manager
                .stop_if_unused(&key(name), &Deadline::never(), &scope)
                .await
        })
    };
    rest("ruff").done().unwrap();
    let lease = stage.client(&key("ruff"));
    rest("ruff").done().unwrap();
    assert_eq!(state(&stage, "ruff"), stands("ready", 1, 1), "it is in use");
    drop(lease);
    rest("ruff").done().unwrap();
    let stopped = ServerState::Stopped {
        by: StoppedBy::Idleness,
    };
    assert_eq!(stage.health(&key("ruff")).unwrap().state, stopped);
    assert_eq!(stage.script.alive().len(), 0);
    drop(stage.client(&key("ruff")));
    assert_eq!(state(&stage, "ruff"), stands("ready", 2, 0));

    // One that is on its way up is given up, and whoever waits for it is told.
    stage.script.behave(HANGING);
    let starting = stage.start(&key("gopls"));
    assert!(starting.is_under_way());
    rest("gopls").done().unwrap();
    assert_eq!(short(starting.done()), "ServerStopped");
    assert_eq!(stage.health(&key("gopls")).unwrap().state, stopped);
}

#[test]
fn of_an_idle_stop_and_a_lease_at_the_same_instant_one_wins_and_the_lease_has_a_server() {
    for at_stop in [AtStop::Goes, AtStop::Hangs] {
        for lease_is_first in [false, true] {
            let stage = Stage::new();
            stage.script.behave(Manners { at_stop, ..POLITE });
            stage.start(&key("ruff")).done().unwrap();
            stage.clock.advance(settings().idle_after);
            let (manager, scope) = (stage.manager.clone(), stage.scope());
            let client = stage.begin(async move { manager.get_client(&key("ruff"), &wait(), &scope).await });
            // Both are ready: the watch that found the time over, and the client.
            assert!(
                stage
                    .scheduler
                    .step(|ready| if lease_is_first { ready - 1 } else { 0 })
            );
            stage.scheduler.run();
            for process in stage.script.alive() {
                process.let_go();
            }
            stage.scheduler.run();
            let expected = if lease_is_first { 1 } else { 2 };
            assert_eq!(state(&stage, "ruff"), stands("ready", expected, 1), "{at_stop:?}");
            assert_eq!(stage.script.most_at_once(), 1);
            drop(client.done().unwrap());
        }
    }
}

#[test]
fn a_launch_that_panics_is_a_failure() {
    let stage = Stage::new();
    stage.script.behave(Manners {
        at_handshake: AtHandshake::Panics,
        ..POLITE
    });
    assert_eq!(short(stage.start(&key("ruff")).done()), "ServerFailed");
    assert_eq!(state(&stage, "ruff"), stands("failed", 1, 0));
}

#[test]
fn changes_are_told_and_none_piles_up() {
    let stage = Stage::new();
    let mut changes = stage.manager.changes();
    let (mut watched, scope) = (changes.clone(), stage.scope());
    let told = stage.call(async move { watched.changed(&scope).await.map(|()| watched) });
    assert!(told.is_under_way());
    stage.start(&key("ruff")).done().unwrap();
    stage.stop(&key("ruff")).done().unwrap();
    assert!(told.done().is_ok());
    let scope = stage.scope();
    let once = stage.call(async move { changes.changed(&scope).await.map(|()| changes) });
    let mut changes = once.done().unwrap();
    let scope = stage.scope();
    let twice = stage.call(async move { changes.changed(&scope).await });
    assert!(twice.is_under_way(), "all that happened was one wake-up");
    stage.token.cancel(Cause::new("test", "the reader has gone"));
    stage.scheduler.run();
    assert_eq!(short(twice.done()), "Cancelled");
}

#[test]
fn entries_that_rest_make_room_and_those_in_use_do_not() {
    let stage = Stage::new();
    let leases: Vec<_> = (0..200)
        .map(|number| stage.client(&key(&format!("used-{number}"))))
        .collect();
    for number in 0..100 {
        let name = key(&format!("stopped-{number}"));
        let by_hand = stage.stop(&name).done();
        let expected = if number < 56 { "()" } else { "TooManyServers" };
        assert_eq!(short(by_hand), expected, "{number}");
    }
    drop(leases);
    stage.scheduler.run();
    stage.clock.advance(settings().idle_after);
    stage.scheduler.run();
    assert_eq!(stage.manager.list().len(), 256);
    drop(stage.client(&key("new")));
    assert_eq!(
        stage.manager.list().len(),
        57,
        "those stopped by hand, and the new one"
    );
    // One that was forgotten does not begin from one again: somebody may have seen its first process.
    drop(stage.client(&key("used-7")));
    assert_eq!(state(&stage, "used-7"), stands("ready", 2, 0));
}
