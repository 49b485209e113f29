//! Rules, and the user's answers.

use std::sync::Arc;

use protocol::ToolState::{Cancelled, Denied, Done};
use protocol::{PermissionAnswer, SessionState};
use serde_json::json;
use sessions::TurnEvent;

use super::kit::PATIENCE;
use super::tools_kit::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn rules_deny_by_tool_and_by_what_it_wants() {
    let files = [("keep/a", "1"), ("keep/b", "1"), ("free/c", "1")];
    let rules = [
        "deny * keep/a",
        "deny shell rm *",
        "ask delete free/q*",
        "deny language hover src/*",
    ];
    let bench = Bench::with(&files, &rules).await;
    let cases = [
        ("read", json!({"path": "keep/a"}), Denied),
        ("read", json!({"path": "./keep//a"}), Denied),
        ("read", json!({"path": "keep/b"}), Done),
        ("write", json!({"path": "keep/a", "text": ""}), Denied),
        (
            "edit",
            json!({"path": "keep/a", "find": "1", "replace": "2"}),
            Denied,
        ),
        ("delete", json!({"path": "keep/a"}), Denied),
        // A directory that it is in cannot be deleted or moved either.
        ("delete", json!({"path": "keep"}), Denied),
        ("move", json!({"from": "keep", "to": "other"}), Denied),
        ("move", json!({"from": "keep/b", "to": "keep/a"}), Denied),
        ("shell", json!({"line": "rm -r x"}), Denied),
        ("shell", json!({"line": "say x"}), Done),
        (
            "language",
            json!({"verb": "hover", "path": "src/main.rs"}),
            Denied,
        ),
        (
            "language",
            json!({"verb": "symbols", "path": "src/main.rs"}),
            Done,
        ),
        ("delete", json!({"path": "free"}), Done),
    ];
    for (tool, arguments, expected) in cases {
        let (state, text) = bench.ask(tool, arguments.clone()).await;
        assert_eq!(state, expected, "{tool} {arguments}: {text}");
    }
    assert_eq!(
        bench.ask("write", json!({"path": "keep/a", "text": ""})).await.1,
        "the rules of this session do not allow `write` for `keep/a`. Do not try it in another way; go on without it, or tell \
         the user what you would need."
    );
    // What was denied never began.
    let events = bench.events().await;
    let started = events
        .iter()
        .filter(|event| matches!(event, TurnEvent::ToolStarted { .. }));
    assert_eq!(started.count(), 4);
    assert!(bench.shell.orders.lock().unwrap().len() == 1);
}

/// Waits until something is asked, and answers it.
async fn answer(bench: &Bench, answer: PermissionAnswer) -> String {
    let session = bench.led.turn.session;
    let asked = tokio::time::timeout(PATIENCE, async {
        loop {
            let found = bench.kit.get(session).await;
            if found.record.state() == SessionState::Asking {
                let active = found.record.active.unwrap();
                break active
                    .asked
                    .into_iter()
                    .find(|asked| asked.answer.is_none())
                    .unwrap();
            }
            tokio::task::yield_now().await;
        }
    });
    let asked = asked.await.unwrap();
    let answered = bench.kit.sessions.answer(session, asked.id, answer, "bob".into());
    assert_eq!(answered.await.unwrap(), (answer, Arc::from("bob")));
    format!("{} {}", asked.tool, asked.subject)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_is_asked_and_the_answer_counts() {
    let bench = Bench::with(&[("a", "1"), ("b", "1")], &["ask * a", "ask move"]).await;
    let write = |text| json!({"path": "a", "text": text});
    let (found, asked) = tokio::join!(
        bench.ask("write", write("2")),
        answer(&bench, PermissionAnswer::Allow)
    );
    assert_eq!((found.0, asked.as_str()), (Done, "write a"));
    let (found, _) = tokio::join!(
        bench.ask("write", write("3")),
        answer(&bench, PermissionAnswer::Deny)
    );
    assert_eq!(found.0, Denied);
    assert!(
        found.1.starts_with("the user does not want this to be done."),
        "{}",
        found.1
    );
    // A move is asked about at both ends.
    let moving = bench.ask("move", json!({"from": "b", "to": "c"}));
    let (found, asked) = tokio::join!(moving, async {
        let first = answer(&bench, PermissionAnswer::Allow).await;
        (first, answer(&bench, PermissionAnswer::Allow).await)
    });
    assert_eq!(
        (found.0, asked),
        (Done, ("move b".to_owned(), "move c".to_owned()))
    );
    let (found, _) = tokio::join!(
        bench.ask("read", json!({"path": "a"})),
        answer(&bench, PermissionAnswer::AllowAlways)
    );
    assert_eq!(found, (Done, "2".to_owned()));
    // From now on nobody is asked.
    assert_eq!(
        bench.ask("read", json!({"path": "a"})).await,
        (Done, "2".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_with_its_turn() {
    let bench = Bench::with(&[], &["ask write"]).await;
    let session = bench.led.turn.session;
    let (found, ()) = tokio::join!(bench.ask("write", json!({"path": "a", "text": ""})), async {
        let asked = tokio::time::timeout(PATIENCE, async {
            while bench.kit.get(session).await.record.state() != SessionState::Asking {
                tokio::task::yield_now().await;
            }
        });
        asked.await.unwrap();
        let stopped = bench
            .kit
            .sessions
            .cancel_turn(session, None, "bob".into(), String::new());
        stopped.await.unwrap();
    });
    assert_eq!(found.0, Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn always_means_what_was_asked_and_no_more() {
    let bench = Bench::with(&[], &["deny shell rm *", "ask shell"]).await;
    let line = |line: &str| json!({ "line": line });
    let (found, asked) = tokio::join!(
        bench.ask("shell", line("say *")),
        answer(&bench, PermissionAnswer::AllowAlways)
    );
    assert_eq!((found.0, asked.as_str()), (Done, "shell say *"));
    assert_eq!(bench.ask("shell", line("say *")).await.0, Done);
    assert_eq!(bench.ask("shell", line("rm x")).await.0, Denied);
    let (found, _) = tokio::join!(
        bench.ask("shell", line("say x")),
        answer(&bench, PermissionAnswer::Deny)
    );
    assert_eq!(found.0, Denied);
}
