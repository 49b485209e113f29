//! Commands and questions about code, through ports that a test leads.

use std::time::Duration;

use protocol::ToolState::{Cancelled, Done, Failed};
use serde_json::json;
use sessions::TurnEvent;

use super::kit::PATIENCE;
use super::tools_kit::Bench;

async fn output(bench: &Bench) -> String {
    let pieces = bench.events().await.into_iter().filter_map(|event| match event {
        TurnEvent::ToolOutput { delta, .. } => Some(delta),
        _ => None,
    });
    pieces.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_says_what_it_says_and_how_it_ended() {
    let bench = Bench::with(&[("sub/x", "")], &[]).await;
    let cases = [
        (json!({"line": "say a;say b"}), Done, "ab\n[exit 0]"),
        (
            json!({"line": "exit 3", "directory": "./sub/", "timeout_seconds": 7}),
            Failed,
            "[exit 3]",
        ),
        (
            json!({"line": "refuse there is no room"}),
            Failed,
            "the command was not run: there is no room",
        ),
        (json!({"line": "  "}), Failed, "`line` is empty."),
        (json!({"line": "a\0"}), Failed, "`line` has a NUL in it."),
    ];
    for (arguments, state, text) in cases {
        let found = bench.ask("shell", arguments.clone()).await;
        assert_eq!(found, (state, text.to_owned()), "{arguments}");
    }
    let (five_minutes, seven) = (Duration::from_secs(300), Duration::from_secs(7));
    let expected = [
        ("say a;say b", "", five_minutes),
        ("exit 3", "sub", seven),
        ("refuse there is no room", "", five_minutes),
    ]
    .map(|(line, directory, timeout)| (line.to_owned(), directory.to_owned(), timeout));
    assert_eq!(*bench.shell.orders.lock().unwrap(), expected);
    assert_eq!(output(&bench).await, "ab");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_bounded_in_the_answer_and_in_the_stream() {
    let bench = Bench::with(&[], &[]).await;
    let answer = bench
        .call("shell", json!({"line": "say begin;flood 3000000;say end"}))
        .await;
    assert!(answer.text.starts_with("beginxxx") && answer.text.ends_with("xxxend\n[exit 0]"));
    assert!(answer.text.len() <= 32 * 1024);
    let job = answer.full.unwrap();
    assert!(
        answer
            .text
            .contains(&format!("bytes omitted; the full output is in {job} …]"))
    );
    let shown = output(&bench).await;
    assert!(shown.ends_with("x\n[the output goes on; all of it is in the job]\n"));
    assert!(shown.len() < 1_100_000, "{}", shown.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_reaches_commands_and_questions_and_those_that_wait() {
    for (tool, arguments) in [
        ("shell", json!({"line": "say a;hang"})),
        ("language", json!({"verb": "hang", "path": "a"})),
    ] {
        let bench = Bench::with(&[], &[]).await;
        let session = bench.led.turn.session;
        let calls = vec![(tool, arguments), ("shell", json!({"line": "say later"}))];
        let (answers, ()) = tokio::join!(
            async {
                tokio::time::timeout(PATIENCE, bench.call_all(calls))
                    .await
                    .unwrap()
            },
            async {
                let began = tokio::time::timeout(PATIENCE, async {
                    let is_started = |event: &TurnEvent| matches!(event, TurnEvent::ToolStarted { .. });
                    while !bench.events().await.iter().any(is_started) {
                        tokio::task::yield_now().await;
                    }
                });
                began.await.unwrap();
                bench
                    .kit
                    .sessions
                    .cancel_turn(session, None, "bob".into(), String::new())
                    .await
                    .unwrap();
            }
        );
        let states: Vec<_> = answers.iter().map(|answer| answer.state).collect();
        assert_eq!(states, [Cancelled, Cancelled], "{answers:?}");
        let later = bench
            .shell
            .orders
            .lock()
            .unwrap()
            .iter()
            .any(|(line, _, _)| line == "say later");
        assert!(!later);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_code_is_passed_on() {
    let bench = Bench::with(&[], &[]).await;
    let cases = [
        (
            json!({"verb": "hover", "path": "src/main.rs", "line": 1, "column": 4}),
            Done,
            r#"["hover","src/main.rs",1,4,null]"#,
        ),
        (
            json!({"verb": "symbols", "name": "x"}),
            Done,
            r#"["symbols","",null,null,"x"]"#,
        ),
        (
            json!({"verb": "fail", "path": "a"}),
            Failed,
            "there is no server for this language (server_not_found)",
        ),
        (
            json!({"verb": "hover", "path": "a", "column": 4}),
            Failed,
            "`column` needs a `line`.",
        ),
    ];
    for (arguments, state, text) in cases {
        let found = bench.ask("language", arguments.clone()).await;
        assert_eq!(found, (state, text.to_owned()), "{arguments}");
    }
    let long = bench
        .call("language", json!({"verb": "flood", "path": "a"}))
        .await;
    assert!(long.text.len() <= 32 * 1024 && long.text.ends_with("\n[the answer is cut; ask about less]"));
    bench
        .call("write", json!({"path": "src/main.rs", "text": "x"}))
        .await;
    let (_, text) = bench
        .ask("language", json!({"verb": "symbols", "path": "src/main.rs"}))
        .await;
    assert_eq!(
        text,
        "[\"symbols\",\"src/main.rs\",null,null,null]\n[`src/main.rs` was changed in this plan; the answer is about it as the \
         user has it]"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_too_long_is_given_up() {
    let bench = Bench::with_timeout(&[], &[], Duration::from_secs(1)).await;
    // The plan is opened first, so that the time goes to the question.
    bench.led.turn.desk.plan().await.unwrap();
    let asked = tokio::time::timeout(
        PATIENCE,
        bench.ask("language", json!({"verb": "hang", "path": "a"})),
    );
    let expected = "it timed out after 1 s. Ask for less at once, for example by naming a directory.";
    assert_eq!(asked.await.unwrap(), (Failed, expected.to_owned()));
}
