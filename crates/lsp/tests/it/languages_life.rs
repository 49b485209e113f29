//! Servers that die, hang or never come up, while somebody asks.

use std::{sync::Arc, time::Duration};

use kernel::{Clock, ManualClock};
use lsp::{
    AskError, Detail, LifecycleError, LifecycleSettings, ProbeResult, ServerExit, ServerState, StoppedBy,
    WhenStarting,
};
use serde_json::{Value, json};

use crate::{
    faults_server::{is_alive, kill_pid},
    languages_house::{House, Plan, command, generation, hasty, hover},
    support::{live, soon, until},
};

/// A server whose first starts keep every hover to themselves.
fn silent_at_first(starts: usize) -> Value {
    let silent = json!({"on": {"textDocument/hover": {"fault": "silence"}}});
    let by_start: serde_json::Map<String, Value> = (1..=starts)
        .map(|start| (start.to_string(), silent.clone()))
        .collect();
    json!({"by_start": by_start})
}

/// A service whose server stands behind a shim.
async fn behind_a_shim(flag: &str, script: Value) -> House {
    let tree = crate::servers_tree::Tree::new();
    let mut command = command(&tree);
    command.insert(1, flag.to_owned());
    let plan = Plan {
        configuration: json!({"command": command}),
        lifecycle: hasty(),
        ..Plan::with(script)
    };
    plan.build_in(tree).await
}

/// Waits until so many hovers have reached a server.
async fn asked(house: &House, hovers: usize) {
    until("the question has arrived", || {
        house.heard("textDocument/hover") == hovers
    })
    .await;
}

#[tokio::test]
async fn a_question_outlives_its_server() {
    for flag in [None, Some("--shim")] {
        let house = match flag {
            None => Plan::with(silent_at_first(1)).build().await,
            Some(flag) => behind_a_shim(flag, silent_at_first(1)).await,
        };
        house.write("a.fault", "12345");
        let file = house.file("a.fault");
        let (answered, ()) = tokio::join!(house.ask(hover(&file)), async {
            asked(&house, 1).await;
            house.kill_start(1).await;
        });
        let answered = answered.unwrap();
        assert_eq!(generation(&answered), 2, "{flag:?}");
        let view = house.view();
        assert_eq!(
            (view.status.crashes, view.status.restarts, view.status.leases),
            (1, 1, 0)
        );
        until("the way out of the first one", || {
            house.view().last_exit.is_some()
        })
        .await;
        house.leave().await;
    }
}

#[tokio::test]
async fn a_shim_that_dies_takes_the_server_behind_it_along() {
    let house = behind_a_shim("--shim", silent_at_first(1)).await;
    house.write("a.fault", "12345");
    let file = house.file("a.fault");
    let (answered, first) = tokio::join!(house.ask(hover(&file)), async {
        asked(&house, 1).await;
        let server = house.pids("server")[0];
        let shim = house.view().pid.unwrap();
        assert_ne!(server, shim);
        kill_pid(shim);
        server
    });
    assert_eq!(generation(&answered.unwrap()), 2);
    until("nobody is left of the first start", || !is_alive(first)).await;
    house.leave().await;
}

#[tokio::test]
async fn a_question_outlives_several_servers_in_a_row() {
    let plan = Plan {
        lifecycle: hasty(),
        ..Plan::with(silent_at_first(3))
    };
    let house = plan.build().await;
    house.write("a.fault", "12345");
    let file = house.file("a.fault");
    let (answered, ()) = tokio::join!(house.ask(hover(&file)), async {
        for start in 1..=3 {
            asked(&house, start).await;
            house.kill_start(start).await;
        }
    });
    assert_eq!(generation(&answered.unwrap()), 4);
    let view = house.view();
    assert_eq!((view.status.crashes, view.status.leases), (3, 0));
    house.leave().await;
}

#[tokio::test]
async fn a_question_that_no_server_survives_ends_when_the_server_is_given_up() {
    let plan = Plan {
        lifecycle: LifecycleSettings {
            max_failures: 3,
            ..hasty()
        },
        ..Plan::with(json!({"on": {"textDocument/hover": {"fault": "exit", "code": 9}}}))
    };
    let house = plan.build().await;
    house.write("a.fault", "12345");
    let answered = soon(house.hover("a.fault")).await;
    let is_given_up = matches!(
        answered,
        Err(AskError::Lifecycle {
            source: LifecycleError::ServerFailed { .. },
            ..
        })
    );
    assert!(is_given_up, "{answered:?}");
    assert_eq!(
        house.heard("textDocument/hover"),
        4,
        "each process was asked once"
    );
    house.leave().await;
}

#[tokio::test]
async fn a_question_whose_servers_go_away_ends_with_the_time_of_whoever_asks() {
    let clock = ManualClock::new();
    let plan = Plan {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        // The clock stands still between two starts.
        lifecycle: LifecycleSettings {
            first_pause: Duration::ZERO,
            longest_pause: Duration::ZERO,
            ..hasty()
        },
        ..Plan::with(silent_at_first(3))
    };
    let house = plan.build().await;
    house.write("a.fault", "12345");
    let ask = lsp::Ask {
        timeout: Some(Duration::from_secs(5)),
        ..hover(&house.file("a.fault"))
    };
    let (answered, ()) = tokio::join!(house.ask(ask), async {
        for start in 1..=2 {
            asked(&house, start).await;
            house.kill_start(start).await;
        }
        asked(&house, 3).await;
        clock.advance(Duration::from_secs(5));
    });
    let is_late = matches!(
        answered,
        Err(AskError::Request {
            source: lsp::RequestError::Timeout { .. },
            ..
        })
    );
    assert!(is_late, "{answered:?}");
    house.leave().await;
}

#[tokio::test]
async fn documents_in_use_are_opened_again_at_their_latest_version() {
    let house = Plan::with(silent_at_first(1)).build().await;
    house.write("a.fault", "first");
    house.write("b.fault", "unused");
    house
        .ask(crate::languages_house::definition(&house.file("b.fault"), 1, 1))
        .await
        .unwrap();
    let file = house.file("a.fault");
    let (answered, ()) = tokio::join!(house.ask(hover(&file)), async {
        asked(&house, 1).await;
        // Whoever asks about another file has the new text told.
        house.write("a.fault", "second text");
        house
            .ask(crate::languages_house::definition(&house.file("b.fault"), 1, 1))
            .await
            .unwrap();
        house.kill_start(1).await;
    });
    assert_eq!(generation(&answered.unwrap()), 2);
    // Whoever asks again takes a new lease, and a version is never used twice.
    let documents = house.documents_in_server().await;
    let (version, text) = &documents["a.fault"];
    assert!(*version >= 2 && text == "second text", "{documents:?}");
    assert_eq!(documents.len(), 1, "{documents:?}");
    house.leave().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_is_seen_and_stopped() {
    let house = Plan::with(json!({"initialize": "hang"})).build().await;
    house.write("a.fault", "1");
    let file = house.file("a.fault");
    let refused = house
        .ask(lsp::Ask {
            when_starting: WhenStarting::Refuse,
            ..hover(&file)
        })
        .await;
    let is_restarting = |answer: &Result<_, AskError>| {
        matches!(
            answer,
            Err(AskError::Lifecycle {
                source: LifecycleError::ServerRestarting { .. },
                ..
            })
        )
    };
    assert!(is_restarting(&refused.map(drop)));
    let id = house.view().id;
    // Health is told at once, and the server is not asked.
    let health = soon(house.languages.health(&id)).await.unwrap();
    assert_eq!(
        (health.view.status.state, health.probe),
        (ServerState::Starting, ProbeResult::NotAsked)
    );
    until("it was started", || house.pids("server").len() == 1).await;
    // Somebody waits for it; the stop wins over the start.
    let scope = live();
    let (answered, stopped) = tokio::join!(house.ask(hover(&file)), async {
        until("somebody waits", || house.view().status.leases == 1).await;
        house.languages.stop(&id, lsp::ExpectedProcess::Any, &scope).await
    });
    let by_request = ServerState::Stopped {
        by: StoppedBy::Request,
    };
    assert_eq!(stopped.unwrap().status.state, by_request);
    let is_stopped = matches!(
        answered,
        Err(AskError::Lifecycle {
            source: LifecycleError::ServerStopped,
            ..
        })
    );
    assert!(is_stopped, "{answered:?}");
    assert_eq!(house.processes.count(), 0);
    assert!(!is_alive(house.pids("server")[0]));
    house.leave().await;
}

#[tokio::test]
async fn a_start_that_ends_at_once_says_how() {
    let script = json!({"exit_at_start": 7, "stderr": "no licence for this\n"});
    let plan = Plan {
        lifecycle: LifecycleSettings {
            max_failures: 2,
            ..hasty()
        },
        ..Plan::with(script)
    };
    let house = plan.build().await;
    house.write("a.fault", "1");
    let failed = house.hover("a.fault").await;
    let Err(AskError::Lifecycle {
        source: LifecycleError::ServerFailed { reason, .. },
        ..
    }) = failed
    else {
        panic!("{failed:?}");
    };
    assert_eq!(reason.exit, Some(ServerExit::Code(7)));
    assert_eq!(reason.stderr_tail, "no licence for this\n");
    house.leave().await;
}

#[tokio::test]
async fn a_server_that_never_stays_is_given_up_until_somebody_starts_it() {
    let clock = ManualClock::new();
    let failing = json!({"exit_at_start": 3});
    let by_start: serde_json::Map<String, Value> = (1..=4)
        .map(|start| (start.to_string(), failing.clone()))
        .collect();
    let plan = Plan {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        lifecycle: LifecycleSettings {
            first_pause: Duration::ZERO,
            ..LifecycleSettings::default()
        },
        configuration: json!({"limits": {"max_restarts": 3}}),
        ..Plan::with(json!({"by_start": by_start}))
    };
    let house = plan.build().await;
    house.write("a.fault", "1");
    let mut failures = 0;
    while house.pids("server").len() < 4 {
        let answer = house.hover("a.fault").await;
        assert!(answer.is_err(), "{answer:?}");
        failures += 1;
        assert!(failures < 20, "{:?}", house.view());
    }
    // It is not tried again by asking.
    for _ in 0..3 {
        let refused = house.hover("a.fault").await;
        let is_failed = matches!(
            refused,
            Err(AskError::Lifecycle {
                source: LifecycleError::ServerFailed { .. },
                ..
            })
        );
        assert!(is_failed, "{refused:?}");
    }
    assert_eq!(house.pids("server").len(), 4);
    assert!(matches!(house.view().status.state, ServerState::Failed { .. }));
    let (file, scope) = (house.file("a.fault"), live());
    let caller = lsp::Environment::default();
    let started = house.languages.start(&file, None, None, &caller, &scope);
    let views = soon(started).await.unwrap();
    assert_eq!(views[0].status.state, ServerState::Ready);
    assert!(house.hover("a.fault").await.is_ok());
    house.leave().await;
}

#[tokio::test]
async fn a_question_that_is_given_up_is_cancelled_in_the_server() {
    let house = Plan::with(silent_at_first(1)).build().await;
    house.write("a.fault", "1");
    let file = house.file("a.fault");
    let scope = live();
    tokio::select! {
        answered = house.languages.ask(hover(&file), &scope) => panic!("{answered:?}"),
        () = asked(&house, 1) => {}
    }
    until("the server is told", || house.heard("$/cancelRequest") == 1).await;
    let said = house.recorded();
    let find = |method: &str| said.iter().find(|message| message["method"] == method).unwrap();
    let (hover, cancel) = (find("textDocument/hover"), find("$/cancelRequest"));
    assert_eq!(cancel["params"]["id"], hover["id"]);
    // Nothing is held any more.
    let view = house.view();
    assert_eq!((view.status.leases, view.documents.held, view.pending), (0, 0, 0));
    house.leave().await;
}

#[tokio::test]
async fn a_stop_leaves_nothing_of_a_server_that_resists() {
    let script = json!({
        "trap_term": true, "ignore_shutdown": true, "ignore_exit": true, "grandchild": "own_session",
    });
    let plan = Plan {
        configuration: json!({"timeouts": {"shutdown_ms": 100}}),
        ..Plan::with(script)
    };
    let house = plan.build().await;
    house.write("a.fault", "1");
    house.hover("a.fault").await.unwrap();
    until("the grandchild is there", || house.pids("grandchild").len() == 1).await;
    let pids = [house.pids("server"), house.pids("grandchild")].concat();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    let (id, scope) = (house.view().id, live());
    let stopped = soon(house.languages.stop(&id, lsp::ExpectedProcess::Any, &scope))
        .await
        .unwrap();
    assert_eq!((stopped.pid, stopped.documents.open), (None, 0));
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
    assert_eq!(house.processes.count(), 0);
    assert_eq!(house.languages.list(Detail::Known).len(), 1);
    house.leave().await;
}

#[tokio::test]
async fn a_restart_by_hand_is_one_restart_for_all_who_want_it() {
    let house = Plan::with(json!({})).build().await;
    house.write("a.fault", "1");
    house.hover("a.fault").await.unwrap();
    let (id, scope) = (house.view().id, live());
    let restarts = (0..5).map(|_| house.languages.restart(&id, lsp::ExpectedProcess::Any, &scope));
    let (restarted, answered) =
        tokio::join!(futures_util::future::join_all(restarts), house.hover("a.fault"));
    for view in restarted {
        assert_eq!(view.unwrap().status.generation.get(), 2);
    }
    assert!(answered.is_ok(), "{answered:?}");
    assert_eq!(house.pids("server").len(), 2);
    house.leave().await;
}
