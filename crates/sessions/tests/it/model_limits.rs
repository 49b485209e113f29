//! What one turn may use.

use std::time::Duration;

use protocol::TurnState;
use serde_json::{Value, json};
use sessions::agents::model::{ModelPrices, ModelSettings};

use crate::model_kit::{ModelKit, SHORT, responses, steps};

#[tokio::test(flavor = "multi_thread")]
async fn limits_end_a_turn_and_what_was_said_stays() {
    let working =
        json!({"rules": [{"respond": {"say": "more ", "calls": [{"tool": "list", "arguments": {}}]}}]});
    let endless = responses(&[steps(&[
        json!({"repeat": {"times": 1_000_000, "steps": [{"text": "0123456789"}]}}),
    ])]);
    let slow = responses(&[steps(&[json!({"text": "more "}), json!("hang")])]);
    type Case = (
        &'static str,
        Value,
        fn(&mut ModelSettings),
        &'static str,
        Option<usize>,
    );
    let cases: [Case; 6] = [
        (
            "steps",
            working.clone(),
            |settings| settings.limits.steps = 3,
            "limit_steps",
            Some(3),
        ),
        // Each answer of the script takes 110 tokens.
        (
            "tokens",
            working.clone(),
            |settings| settings.limits.tokens = 250,
            "limit_tokens",
            None,
        ),
        (
            "tokens of one answer",
            endless,
            |settings| settings.limits.tokens = 20_000,
            "limit_tokens",
            Some(1),
        ),
        (
            "cost",
            working,
            |settings| {
                settings.limits.cost_micros = Some(1_000);
                settings.prices = Some(ModelPrices {
                    input_micros: 4_000_000,
                    output_micros: 10_000_000,
                });
            },
            "limit_cost",
            Some(3),
        ),
        (
            "time",
            slow,
            |settings| settings.limits.time = SHORT,
            "limit_time",
            Some(1),
        ),
        (
            "time of a wait",
            json!({"rules": [{"respond": {"status": 429, "headers": {"retry-after": "9"}}}]}),
            |settings| {
                settings.limits.time = SHORT;
            },
            "limit_time",
            Some(1),
        ),
    ];
    for (name, script, adjust, code, requests) in cases {
        let kit = ModelKit::with(script, adjust).await;
        let ended = kit.ask_once("Go").await;
        assert_eq!(ended.end(), (TurnState::Failed, code), "{name}: {}", ended.why());
        if let Some(requests) = requests {
            assert_eq!(kit.server.requests().len(), requests, "{name}");
        }
        let has_said = name == "time of a wait" || !ended.text().is_empty();
        assert!(has_said, "{name}");
        assert!(ended.turn.record.usage.requests >= 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_of_one_step_are_bounded_together() {
    let busy = json!({"rules": [{"respond": {"status": 429, "headers": {"retry-after": "2"}}}]});
    let kit = ModelKit::with(busy, |settings| {
        settings.max_retries = 1_000;
        settings.wait_limit = Duration::from_secs(3);
    })
    .await;
    let ended = kit.ask_once("Go").await;
    assert_eq!(ended.end(), (TurnState::Failed, "model_rate_limited"));
    assert_eq!(kit.server.requests().len(), 2);
}
