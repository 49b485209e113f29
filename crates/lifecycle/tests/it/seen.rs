//! Wishes that name the process they saw: taken in if it is still the newest one, and refused otherwise.

use std::time::Duration;

use kernel::Deadline;
use lifecycle::{ExpectedProcess, LifecycleError, ServerGeneration, ServerStatus};

use crate::{
    stage::{Call, Stage, key},
    subjects::scripted::{AtHandshake, AtStop, Manners, POLITE},
};

const HANGS_AT_HANDSHAKE: Manners = Manners {
    at_handshake: AtHandshake::Hangs,
    ..POLITE
};

const HANGS_AT_STOP: Manners = Manners {
    at_stop: AtStop::Hangs,
    ..POLITE
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wish {
    Start,
    Restart,
    Stop,
}

const WISHES: [Wish; 3] = [Wish::Start, Wish::Restart, Wish::Stop];

type Outcome = Result<Option<ServerGeneration>, LifecycleError>;

fn exactly(number: u64) -> ExpectedProcess {
    ExpectedProcess::Exactly(ServerGeneration::from_u64(number))
}

fn ask(stage: &Stage, wish: Wish, seen: ExpectedProcess) -> Call<Outcome> {
    let (manager, scope) = (stage.manager.clone(), stage.scope());
    stage.call(async move {
        let (key, deadline) = (key("ruff"), Deadline::never());
        match wish {
            Wish::Start => manager
                .start_server_if(&key, seen, &deadline, &scope)
                .await
                .map(Some),
            Wish::Restart => manager
                .restart_server_if(&key, seen, &deadline, &scope)
                .await
                .map(Some),
            Wish::Stop => manager
                .stop_server_if(&key, seen, &deadline, &scope)
                .await
                .map(|()| None),
        }
    })
}

fn status(stage: &Stage) -> ServerStatus {
    stage.health(&key("ruff")).unwrap()
}

fn start(stage: &Stage) {
    stage.start(&key("ruff")).done().unwrap();
}

fn crash(stage: &Stage) {
    assert!(stage.script.newest().crash("by itself"));
    stage.scheduler.run();
}

/// A server in one of the states that it can be in.
struct Case {
    name: &'static str,
    bring_about: fn(&Stage),
    state: &'static str,
    generation: u64,
}

const CASES: [Case; 11] = [
    Case {
        name: "never started",
        bring_about: |_| {},
        state: "stopped",
        generation: 0,
    },
    Case {
        name: "on its way up",
        bring_about: |stage| {
            stage.script.behave(HANGS_AT_HANDSHAKE);
            stage.start(&key("ruff"));
        },
        state: "starting",
        generation: 1,
    },
    Case {
        name: "up",
        bring_about: start,
        state: "ready",
        generation: 1,
    },
    Case {
        name: "a restart takes the old process down",
        bring_about: |stage| {
            stage.script.behave(HANGS_AT_STOP);
            start(stage);
            stage.restart(&key("ruff"));
        },
        state: "restarting",
        generation: 1,
    },
    Case {
        name: "a restart brings the new process up",
        bring_about: |stage| {
            start(stage);
            stage.script.behave(HANGS_AT_HANDSHAKE);
            stage.restart(&key("ruff"));
        },
        state: "restarting",
        generation: 2,
    },
    Case {
        name: "up again",
        bring_about: |stage| {
            start(stage);
            stage.restart(&key("ruff"));
        },
        state: "ready",
        generation: 2,
    },
    Case {
        name: "a pause after crashes",
        bring_about: |stage| {
            start(stage);
            crash(stage);
            crash(stage);
        },
        state: "restarting",
        generation: 2,
    },
    Case {
        name: "being stopped",
        bring_about: |stage| {
            stage.script.behave(HANGS_AT_STOP);
            start(stage);
            stage.stop(&key("ruff"));
        },
        state: "stopping",
        generation: 1,
    },
    Case {
        name: "stopped",
        bring_about: |stage| {
            start(stage);
            stage.stop(&key("ruff"));
        },
        state: "stopped",
        generation: 1,
    },
    Case {
        name: "idle",
        bring_about: |stage| {
            start(stage);
            stage.clock.advance(Duration::from_secs(3600));
            stage.scheduler.run();
        },
        state: "stopped",
        generation: 1,
    },
    Case {
        name: "failed",
        bring_about: |stage| {
            stage.script.behave(HANGS_AT_HANDSHAKE);
            stage.start(&key("ruff"));
            assert!(stage.script.newest().refuse("by itself"));
            stage.scheduler.run();
        },
        state: "failed",
        generation: 1,
    },
];

impl Case {
    fn stage(&self) -> Stage {
        let stage = Stage::new();
        (self.bring_about)(&stage);
        let status = status(&stage);
        let stands = (status.state.name(), status.generation.get());
        assert_eq!(stands, (self.state, self.generation), "{}", self.name);
        stage
    }

    /// A stop by hand that a restart did not see is not taken back by it.
    fn refuses(&self, wish: Wish) -> bool {
        wish == Wish::Restart && ["being stopped", "stopped"].contains(&self.name)
    }
}

#[test]
fn who_saw_another_process_changes_nothing_and_gets_the_current_status() {
    for case in &CASES {
        for wish in WISHES {
            for other in [case.generation.checked_sub(1), Some(case.generation + 1)] {
                let Some(other) = other else { continue };
                let stage = case.stage();
                let (before, processes) = (status(&stage), stage.script.processes().len());
                let context = format!("{wish:?} of generation {other}, {}", case.name);
                let answer = ask(&stage, wish, exactly(other)).done();
                let Err(LifecycleError::ServerMoved { seen, current }) = answer else {
                    panic!("{context}: {answer:?}");
                };
                assert_eq!((seen.get(), *current), (other, before.clone()), "{context}");
                assert_eq!(status(&stage), before, "{context}");
                assert_eq!(stage.script.processes().len(), processes, "{context}");
            }
        }
    }
}

#[test]
fn who_saw_the_newest_process_is_heard_as_if_none_was_named() {
    /// What came of a wish, without what differs from run to run.
    fn after(case: &Case, wish: Wish, seen: ExpectedProcess) -> (Option<String>, &'static str, u64, usize) {
        let stage = case.stage();
        let answer = ask(&stage, wish, seen).take();
        let status = status(&stage);
        let processes = stage.script.processes().len();
        (
            answer.map(|answer| format!("{answer:?}")),
            status.state.name(),
            status.generation.get(),
            processes,
        )
    }
    for case in &CASES {
        for wish in WISHES {
            let named = after(case, wish, exactly(case.generation));
            if case.refuses(wish) {
                let processes = case.stage().script.processes().len();
                let stopped = Some("Err(ServerStopped)".to_owned());
                let expected = (stopped, case.state, case.generation, processes);
                assert_eq!(named, expected, "{wish:?}, {}", case.name);
            } else {
                let expected = after(case, wish, ExpectedProcess::Any);
                assert_eq!(named, expected, "{wish:?}, {}", case.name);
            }
        }
    }
}

#[test]
fn of_two_who_saw_the_same_process_the_second_joins_or_is_refused_and_replaces_no_other() {
    let stage = Stage::new();
    stage.script.behave(HANGS_AT_STOP);
    start(&stage);
    let first = ask(&stage, Wish::Restart, exactly(1));
    let joins = ask(&stage, Wish::Restart, exactly(1));
    assert!(first.is_under_way() && joins.is_under_way());
    stage.script.behave(HANGS_AT_HANDSHAKE);
    assert!(stage.script.newest().let_go());
    stage.scheduler.run();
    // The next process is on its way up: that is no longer what was seen.
    let while_launching = ask(&stage, Wish::Restart, exactly(1)).done();
    assert!(stage.script.newest().answer());
    stage.scheduler.run();
    let when_ready = ask(&stage, Wish::Restart, exactly(1)).done();
    let stop = ask(&stage, Wish::Stop, exactly(1)).done();
    for (late, state) in [
        (while_launching, "restarting"),
        (when_ready, "ready"),
        (stop, "ready"),
    ] {
        let Err(LifecycleError::ServerMoved { current, .. }) = late else {
            panic!("{late:?}");
        };
        assert_eq!((current.state.name(), current.generation.get()), (state, 2));
    }
    for restart in [first, joins] {
        assert_eq!(restart.done().unwrap(), Some(ServerGeneration::from_u64(2)));
    }
    assert_eq!(stage.script.processes().len(), 2);
    assert_eq!(stage.script.alive().len(), 1);
}
