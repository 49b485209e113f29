//! What a model knows of the turns before.

use std::time::Duration;

use protocol::TurnState;
use serde_json::{Value, json};

use crate::model_kit::{ModelKit, responses};

fn contents(request: &Value) -> Vec<(String, String)> {
    let messages = request["body"]["messages"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    messages
        .iter()
        .skip(1)
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .collect()
}

fn message(role: &str, content: &str) -> (String, String) {
    (role.to_owned(), content.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_knows_those_before_it() {
    let kit = ModelKit::with(
        responses(&[
            json!({"think": "secretly", "say": "Looking.", "calls": [{"tool": "read", "arguments": {"path": "README.md"}}]}),
            json!({"say": "It says hello."}),
            json!({"status": 400}),
            json!({"say": "Hello."}),
        ]),
        |settings| settings.max_retries = 0,
    )
    .await;
    let session = kit.kit.session().await;
    for (text, state) in [
        ("one", TurnState::Done),
        ("two", TurnState::Failed),
        ("three", TurnState::Done),
    ] {
        assert_eq!(kit.ask(session, text).await.turn.record.state, state, "{text}");
    }
    let requests = kit.server.requests();
    let mut seen = contents(&requests[3]);
    assert!(seen[2].1.contains("hello"), "{seen:?}");
    seen[2].1 = "content".to_owned();
    let expected = [
        message("user", "one"),
        message("assistant", "Looking."),
        message("tool", "content"),
        message("assistant", "It says hello."),
        message("user", "two"),
        message("assistant", "[this was cut short by an error]"),
        message("user", "three"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_session_costs_no_more() {
    let long = "x".repeat(4_000);
    let script = json!({"rules": [{"respond": {"say": long}}]});
    let kit = ModelKit::with(script, |settings| settings.context_tokens = 16_000).await;
    let session = kit.kit.session().await;
    for number in 0..12 {
        let ended = kit.ask(session, &format!("prompt {number}")).await;
        assert_eq!(ended.end(), (TurnState::Done, ""), "{}", ended.why());
    }
    let requests = kit.server.requests();
    let earlier: Vec<usize> = requests
        .iter()
        .map(|request| contents(request).len() / 2)
        .collect();
    // 12,000 tokens of three bytes are the room, and half of it is for what was before: four turns of about 4,100 bytes.
    assert_eq!(earlier, [0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4]);
    let last = contents(&requests[11]);
    assert_eq!(last[0], message("user", "prompt 7"));
    assert_eq!(last[8], message("user", "prompt 11"));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_told_from_before_a_gap() {
    let (long, longer) = ("x".repeat(10_000), "y".repeat(12_000));
    let script = responses(&[
        json!({"say": "short"}),
        json!({"say": longer, "calls": [{"tool": "list", "arguments": {}}]}),
        json!({"say": long}),
        json!({"say": "fine"}),
    ]);
    let kit = ModelKit::with(script, |settings| settings.context_tokens = 16_000).await;
    let session = kit.kit.session().await;
    for text in ["one", "two", "three"] {
        assert_eq!(
            kit.ask(session, text).await.end(),
            (TurnState::Done, ""),
            "{text}"
        );
    }
    let mut seen = contents(&kit.server.requests()[3]);
    assert!(seen[2].1.contains("README.md"), "{seen:?}");
    seen[2].1 = "content".to_owned();
    // There is room for the first turn, but not for the beginning of the second.
    let expected = [
        message("user", "two"),
        message("assistant", ""),
        message("tool", "content"),
        message("assistant", &long),
        message("user", "three"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_folded_is_known_as_well() {
    let words = "word ".repeat(100);
    let kit = ModelKit::new(responses(&[json!({"say": words}), json!({"say": "fine"})])).await;
    let session = kit.kit.session().await;
    let first = kit.ask(session, "one").await;
    let folded = kit.kit.sessions.compact(Duration::ZERO).await.unwrap();
    assert_eq!(folded.turns, 1);
    assert!(
        kit.kit.events(first.turn.id).await.len() < 5,
        "its events are gone"
    );
    kit.ask(session, "two").await;
    let expected = [
        message("user", "one"),
        message("assistant", &words),
        message("user", "two"),
    ];
    assert_eq!(contents(&kit.server.requests()[1]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_finds_too_long_is_sent_once_more_with_less() {
    let too_long = json!({"status": 400, "body": "{\"error\": {\"code\": \"context_length_exceeded\", \"message\": \"no\"}}"});
    let kit = ModelKit::new(responses(&[
        json!({"say": "first"}),
        too_long.clone(),
        json!({"say": "second"}),
        too_long.clone(),
        too_long,
    ]))
    .await;
    let session = kit.kit.session().await;
    kit.ask(session, "one").await;
    let second = kit.ask(session, "two").await;
    assert_eq!(
        (second.end(), second.troubles()),
        ((TurnState::Done, ""), vec!["model_context_cut"])
    );
    let third = kit.ask(session, "three").await;
    assert_eq!(third.end(), (TurnState::Failed, "model_refused"));
    let requests = kit.server.requests();
    let counts: Vec<usize> = requests.iter().map(|request| contents(request).len()).collect();
    assert_eq!(counts, [1, 3, 1, 5, 1]);
}
