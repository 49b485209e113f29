//! Questions through the whole service: one process for all, and files as they are.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use kernel::{Clock, ManualClock};
use lsp::{DocumentSettings, ServerState, StoppedBy};
use serde_json::json;

use crate::{
    languages_house::{Plan, definition, hover},
    support::until,
};

#[tokio::test]
async fn ten_askers_share_one_process() {
    let house = Plan::with(json!({})).build().await;
    for number in 0..10 {
        house.write(&format!("{number}.fault"), &"x".repeat(number));
    }
    let own = (0..10).map(|number| format!("{number}.fault"));
    let same = (0..10).map(|_| "7.fault".to_owned());
    let names: Vec<String> = own.chain(same).collect();
    let answers = join_all(names.iter().map(|name| house.hover(name))).await;
    for (name, answer) in names.iter().zip(answers) {
        let (text, generation) = answer.unwrap();
        let bytes = format!(", {} bytes", name.trim_end_matches(".fault"));
        assert!(text.ends_with(&bytes), "{name}: {text}");
        assert_eq!(generation, 1);
    }
    assert_eq!(house.pids("server").len(), 1);
    let opened: Vec<_> = house.histories().into_values().collect();
    assert!(
        opened
            .iter()
            .all(|history| history == &[("open".to_owned(), Some(1))]),
        "{opened:?}"
    );
    assert_eq!(house.view().documents.open, 10);
    house.leave().await;
}

#[tokio::test]
async fn documents_are_opened_once_and_closed_when_nobody_has_used_them_for_long() {
    let clock = ManualClock::new();
    let documents = DocumentSettings {
        warm_for: Duration::from_secs(60),
        ..DocumentSettings::default()
    };
    let plan = Plan {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        documents,
        ..Plan::with(json!({}))
    };
    let house = plan.build().await;
    house.write("a.fault", "1");
    house.write("b.fault", "1");
    for text in ["1", "22", "333"] {
        house.write("a.fault", text);
        house.hover("a.fault").await.unwrap();
        house.hover("b.fault").await.unwrap();
    }
    assert_eq!(house.view().documents.open, 2);
    clock.advance(Duration::from_secs(61));
    until("idle documents are closed", || house.view().documents.open == 0).await;
    // The book counts what it has handed over; the server takes it a moment later.
    until("the server heard of it", || {
        house.heard("textDocument/didClose") == 2
    })
    .await;
    assert_eq!(house.documents_in_server().await.len(), 0);
    house.hover("a.fault").await.unwrap();
    let event = |said: &str, version| (said.to_owned(), version);
    let histories = house.histories();
    let a = &histories["a.fault"];
    assert_eq!(
        a[..4],
        [
            event("open", Some(1)),
            event("change", Some(2)),
            event("change", Some(3)),
            event("close", None),
        ]
    );
    assert_eq!(a.len(), 5);
    assert!(a[4].0 == "open" && a[4].1 > Some(3), "{a:?}");
    assert_eq!(
        histories["b.fault"],
        [event("open", Some(1)), event("close", None)]
    );
    house.leave().await;
}

#[tokio::test]
async fn an_idle_server_stops_and_the_next_question_starts_it() {
    let clock = ManualClock::new();
    let plan = Plan {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        configuration: json!({"timeouts": {"idle_ms": 60_000}}),
        ..Plan::with(json!({}))
    };
    let house = plan.build().await;
    house.write("a.fault", "1");
    for generation in 1..=3 {
        assert_eq!(house.hover("a.fault").await.unwrap().1, generation);
        clock.advance(Duration::from_secs(61));
        let idle = ServerState::Stopped {
            by: StoppedBy::Idleness,
        };
        until("it stops", || house.view().status.state == idle).await;
        let view = house.view();
        assert_eq!((view.pid, view.documents.open, view.status.leases), (None, 0, 0));
        assert_eq!(house.processes.count(), 0);
    }
    house.leave().await;
}

/// Registers for all files at once.
pub(crate) fn watches_all() -> serde_json::Value {
    let watchers = json!({"watchers": [{"globPattern": "**/*.fault"}]});
    let registration =
        json!({"id": "w", "method": "workspace/didChangeWatchedFiles", "registerOptions": watchers});
    json!({
        "method": "client/registerCapability",
        "kind": "request",
        "params": {"registrations": [registration]},
    })
}

#[tokio::test]
async fn what_others_write_to_disk_is_in_the_next_answer() {
    let script = json!({"after_initialized": [watches_all()], "sync": "incremental"});
    let house = Plan::with(script).build().await;
    for name in ["asked.fault", "warm.fault", "closed.fault"] {
        house.write(name, "at first é\n");
    }
    house.hover("warm.fault").await.unwrap();
    let asked = house.file("asked.fault");
    house.ask(definition(&asked, 1, 1)).await.unwrap();
    for round in 0..30 {
        let text = |name: &str| format!("{name} in round {round} {}\n", "é😀".repeat(round % 7));
        for name in ["asked.fault", "warm.fault", "closed.fault"] {
            house.write(name, &text(name));
        }
        let before = house.recorded().len();
        house.ask(definition(&asked, 1, 1)).await.unwrap();
        let open = house.documents_in_server().await;
        let texts: Vec<(&str, &str)> = open
            .iter()
            .map(|(name, (_, text))| (name.as_str(), text.as_str()))
            .collect();
        // What was closed is opened as soon as it has changed, so that the server does not take its time.
        assert_eq!(
            texts,
            [
                ("asked.fault", text("asked.fault").as_str()),
                ("closed.fault", text("closed.fault").as_str()),
                ("warm.fault", text("warm.fault").as_str()),
            ],
            "round {round}"
        );
        let said = house.recorded().split_off(before);
        let asked_at = said
            .iter()
            .position(|message| message["method"] == "textDocument/definition");
        let told = said[..asked_at.unwrap()].iter().any(|message| {
            message["method"] == "workspace/didChangeWatchedFiles"
                && message.to_string().contains("closed.fault")
        });
        assert!(told, "round {round}: {said:?}");
    }
    house.leave().await;
}

#[tokio::test]
async fn a_question_never_overtakes_what_is_known_of_other_files() {
    let house = Plan::with(json!({})).build().await;
    house.write("asked.fault", "1");
    house.write("warm.fault", "0");
    house.hover("warm.fault").await.unwrap();
    house.hover("asked.fault").await.unwrap();
    for round in 1..=30 {
        house.write("warm.fault", &"x".repeat(round));
        let before = house.recorded().len();
        house.hover("asked.fault").await.unwrap();
        let said = house.recorded().split_off(before);
        let methods: Vec<&str> = said
            .iter()
            .map(|message| message["method"].as_str().unwrap())
            .collect();
        assert_eq!(
            methods,
            ["textDocument/didChange", "textDocument/hover"],
            "round {round}"
        );
    }
    house.leave().await;
}

#[tokio::test]
async fn a_file_that_is_gone_is_closed_and_says_so() {
    let house = Plan::with(json!({})).build().await;
    house.write("a.fault", "1");
    house.write("b.fault", "1");
    house.hover("a.fault").await.unwrap();
    house.hover("b.fault").await.unwrap();
    std::fs::remove_file(house.file("b.fault")).unwrap();
    house.hover("a.fault").await.unwrap();
    until("it is closed", || house.heard("textDocument/didClose") == 1).await;
    let gone = house.ask(hover(&house.file("b.fault"))).await;
    assert!(
        matches!(gone, Err(lsp::AskError::Path(_) | lsp::AskError::Text(_))),
        "{gone:?}"
    );
    house.leave().await;
}
