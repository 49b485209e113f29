//! What the agent `model` knows of the code before its first step.

use protocol::{ToolState, TurnState};
use serde_json::json;
use sessions::{ContextGround, TurnEvent};

use crate::model_kit::{Ended, ModelKit, responses};

/// What the first request of a turn with this prompt says for the user, and how the turn went.
async fn opened(kit: &ModelKit, prompt: &str) -> (String, Ended) {
    let before = kit.server.requests().len();
    let ended = kit.ask_once(prompt).await;
    assert_eq!(ended.end(), (TurnState::Done, ""), "{}", ended.why());
    let request = &kit.server.requests()[before];
    let messages = request["body"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{messages:?}");
    (messages[1]["content"].as_str().unwrap().to_owned(), ended)
}

fn answers(count: usize) -> serde_json::Value {
    responses(&vec![json!({"say": "fine"}); count])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_begins_with_what_belongs_to_its_prompt() {
    let kit = ModelKit::with(answers(2), |settings| settings.opening_context_tokens = 2_000).await;
    let (content, ended) = opened(&kit, "Where is main?").await;
    let (asked, found) = content.split_once("\n\n").unwrap();
    assert_eq!(asked, "Where is main?");
    assert!(found.starts_with("[The following pieces"), "{found}");
    assert!(found.ends_with("src/main.rs:1\nfn main() {}"), "{found}");
    let told: Vec<String> = ended
        .events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::ToolCall { tool, .. } => Some(format!("call {tool}")),
            TurnEvent::ToolStarted { title, arguments, .. } => Some(format!("started {title} {arguments}")),
            TurnEvent::ToolEnded { state, answer, .. } => Some(format!("ended {state:?} {answer}")),
            _ => None,
        })
        .collect();
    let expected = [
        "call context",
        "started context Where is main? {\"budget\":2000,\"query\":\"Where is main?\"}",
        "ended Done src/main.rs:1\nfn main() {}\n[1 piece of 1 file, 9 tokens]",
    ];
    assert_eq!(told, expected);
    let order = kit.finder.last();
    assert_eq!(
        (order.ground, order.budget_tokens),
        (ContextGround::Directory(kit.kit.workspace.clone()), 2_000)
    );
    assert_eq!(ended.turn.record.plan, None, "a look begins no plan");

    let (content, _) = opened(&kit, &"long ".repeat(10_000)).await;
    assert!(content.contains("fn main()"));
    assert!(kit.finder.last().query.len() <= 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_budget_nobody_looks() {
    let kit = ModelKit::new(answers(1)).await;
    let (content, ended) = opened(&kit, "Where is main?").await;
    assert_eq!(content, "Where is main?");
    assert_eq!((kit.finder.asked(), ended.tools()), (0, Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finder_that_fails_or_hangs_does_not_hold_up_the_turn() {
    let kit = ModelKit::with(answers(3), |settings| settings.opening_context_tokens = 2_000).await;
    for (prompt, state) in [
        ("fail", ToolState::Failed),
        ("hang", ToolState::Failed),
        ("nothing", ToolState::Done),
    ] {
        let (content, ended) = opened(&kit, prompt).await;
        assert_eq!(content, prompt);
        assert_eq!(ended.tools(), [state], "{prompt}");
        assert_eq!(ended.troubles(), [] as [&str; 0], "{prompt}");
    }
    assert_eq!(kit.finder.asked(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_is_a_part_of_what_the_model_can_read() {
    let kit = ModelKit::with(answers(1), |settings| {
        settings.opening_context_tokens = 100_000;
        settings.context_tokens = 80_000;
    })
    .await;
    opened(&kit, "Where is main?").await;
    assert_eq!(kit.finder.last().budget_tokens, 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_in_a_session_with_a_plan_looks_at_the_plan() {
    let script = responses(&[
        json!({"calls": [{"tool": "write", "arguments": {"path": "a.txt", "text": "one\n"}, "id": "first"}]}),
        json!({"say": "fine"}),
        json!({"say": "fine"}),
    ]);
    let kit = ModelKit::with(script, |settings| settings.opening_context_tokens = 2_000).await;
    let session = kit.kit.session().await;
    let plan = kit.ask(session, "Write a file").await.turn.record.plan.unwrap();
    kit.ask(session, "Where is it?").await;
    assert_eq!(kit.finder.asked(), 2);
    assert_eq!(kit.finder.last().ground, ContextGround::Plan(plan));
}
