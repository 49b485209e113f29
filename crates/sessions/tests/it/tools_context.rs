//! Asking for context.

use std::time::Duration;

use protocol::ToolState::{Denied, Done, Failed};
use serde_json::json;
use sessions::ContextGround;

use super::tools_kit::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn the_finder_is_asked_and_its_answer_is_told() {
    let bench = Bench::with(&[], &["deny read secret/*"]).await;
    let found = "src/main.rs:1\nfn main() {}\n[1 piece of 1 file, 9 tokens]";
    let nothing = "[nothing was found; ask with other words, or use `search`]";
    let empty = "`query` is empty, so there is nothing to look for. Ask with words or names.";
    let least = "nothing was done: `budget` must be a whole number from 100 to 8000. ";
    let hidden = "what was found may not be shown. Use `search` instead.";
    let cases = [
        (json!({"query": "main"}), Done, found),
        (
            json!({"query": "", "path": "./src/main.rs", "budget": 500}),
            Done,
            found,
        ),
        (json!({"query": "nothing"}), Done, nothing),
        (json!({"query": "fail"}), Failed, "no strategy answered."),
        (json!({"query": " "}), Failed, empty),
        (json!({"query": "main", "budget": 1}), Failed, least),
        (json!({"query": "leak secret/key"}), Failed, hidden),
        (json!({"query": "leak README.md"}), Done, "hidden\n[1 piece"),
    ];
    for (arguments, state, expected) in cases {
        let (found_state, text) = bench.ask("context", arguments.clone()).await;
        assert_eq!(found_state, state, "{arguments} {text}");
        assert!(text.starts_with(expected), "{arguments} {text}");
    }
    let orders = bench.finder.orders.lock().unwrap().clone();
    let asked: Vec<_> = orders
        .iter()
        .map(|order| (order.query.as_str(), order.focus.join(","), order.budget_tokens))
        .take(2)
        .collect();
    let expected = [
        ("main", String::new(), 4_000),
        ("", "src/main.rs".to_owned(), 500),
    ];
    assert_eq!(asked, expected);
    let readable = &orders[0].readable;
    assert_eq!(
        (readable.allows("secret/key"), readable.allows("src/main.rs")),
        (false, true)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn it_looks_at_the_plan_as_soon_as_there_is_one() {
    let bench = Bench::with(&[], &[]).await;
    bench.ask("context", json!({"query": "main"})).await;
    let workspace = bench.kit.workspace.clone();
    assert_eq!(bench.finder.last().ground, ContextGround::Directory(workspace));
    assert_eq!(bench.led.turn.desk.opened(), None, "a look begins no plan");
    let calls = vec![
        ("write", json!({"path": "a.txt", "text": "one\n"})),
        ("context", json!({"query": "main"})),
    ];
    let answers = bench.call_all(calls).await;
    assert!(answers.iter().all(|answer| answer.state == Done), "{answers:?}");
    let plan = bench.led.turn.desk.opened().unwrap();
    assert_eq!(bench.finder.last().ground, ContextGround::Plan(plan));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_bounded_in_bytes_and_in_time() {
    let bench = Bench::with_timeout(&[], &["deny context"], Duration::from_secs(300)).await;
    let (state, _) = bench.ask("context", json!({"query": "main"})).await;
    assert_eq!((state, bench.finder.asked()), (Denied, 0));

    let bench = Bench::with_timeout(&[], &[], Duration::from_millis(200)).await;
    let (state, text) = bench.ask("context", json!({"query": "hang"})).await;
    assert_eq!(state, Failed, "{text}");
    assert!(text.starts_with("it timed out"), "{text}");
    let (state, text) = bench.ask("context", json!({"query": "flood"})).await;
    assert!(
        state == Done && text.len() <= 32 * 1024 && text.ends_with("; cut, ask for less]"),
        "{state:?} {}",
        text.len()
    );
}
