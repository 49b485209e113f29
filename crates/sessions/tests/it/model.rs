//! The agent `model`, against a scripted server, through the real service.

use protocol::{AgentChoice, Attachment, ToolState, TurnState, Usage};
use serde_json::{Value, json};
use sessions::agents::model::ModelPrices;
use sessions::{NewTurn, StoredAttachment, TurnEvent};

use crate::kit::{PATIENCE, prompt};
use crate::model_kit::{KEY, ModelKit, responses, steps};

#[tokio::test(flavor = "multi_thread")]
async fn a_model_works_with_tools() {
    let script = responses(&[
        json!({"think": "A file.", "say": "I write it.", "calls": [
            {"tool": "write", "arguments": {"path": "a.txt", "text": "one\n"}, "id": "first"},
            {"tool": "read", "arguments": {"path": "README.md"}, "id": "second"},
        ]}),
        json!({"say": "It is there."}),
    ]);
    let kit = ModelKit::with(script, |settings| {
        settings.prices = Some(ModelPrices {
            input_micros: 2_000_000,
            output_micros: 10_000_000,
        });
    })
    .await;
    let ended = kit.ask_once("Write a file").await;
    assert_eq!(ended.end(), (TurnState::Done, ""), "{}", ended.why());
    assert_eq!(
        (ended.text().as_str(), ended.reasoning().as_str()),
        ("I write it.It is there.", "A file.")
    );
    assert_eq!(ended.tools(), [ToolState::Done, ToolState::Done]);
    assert_eq!(ended.troubles(), [] as [&str; 0]);
    let usage = Usage {
        input_tokens: 200,
        output_tokens: 20,
        requests: 2,
        cost_micros: 600,
    };
    assert_eq!(ended.turn.record.usage, usage);
    let plan = ended.turn.record.plan.expect("it has worked");
    let path: plans::RelPath = "a.txt".parse().unwrap();
    let written = kit.kit.plans.read_file(plan, Some(path)).await.unwrap();
    assert!(
        matches!(&written, plans::FileFound::File { content, .. } if content == b"one\n"),
        "{written:?}"
    );

    let requests = kit.server.requests();
    let first = &requests[0];
    assert_eq!(first["path"], "/v1/chat/completions");
    assert_eq!(first["headers"]["authorization"], format!("Bearer {KEY}"));
    assert_eq!(first["body"]["model"], "m-1");
    let offered = first["body"]["tools"].as_array().unwrap();
    assert!(
        offered.iter().any(|tool| tool["function"]["name"] == "write"),
        "{offered:?}"
    );
    let messages = requests[1]["body"]["messages"].as_array().unwrap();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(messages[1]["content"], "Write a file");
    assert_eq!(messages[2]["content"], "I write it.");
    assert_eq!(messages[3]["tool_call_id"], "first");
    assert_eq!(messages[4]["tool_call_id"], "second");
    assert!(
        messages[4]["content"].as_str().unwrap().contains("hello"),
        "{}",
        messages[4]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_without_a_script_writes_a_file() {
    let kit = ModelKit::new(json!({})).await;
    let ended = kit.ask_once("Go").await;
    assert_eq!(ended.end(), (TurnState::Done, ""), "{}", ended.why());
    assert_eq!(ended.tools(), [ToolState::Done]);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_streamed_and_calls_are_told_in_order() {
    let kit = ModelKit::new(responses(&[
        json!({"calls": [{"tool": "list", "arguments": {"path": "src"}, "id": "a"}]}),
        json!({"say": "fine"}),
    ]))
    .await;
    let ended = kit.ask_once("Go").await;
    let told: Vec<String> = ended
        .events
        .iter()
        .filter_map(|event| match event {
            TurnEvent::ToolCall { tool, call, .. } => Some(format!("call {tool} {call}")),
            TurnEvent::ToolArguments { delta, .. } => Some(format!("arguments {delta}")),
            TurnEvent::ToolStarted { arguments, .. } => Some(format!("started {arguments}")),
            TurnEvent::ToolEnded { state, .. } => Some(format!("ended {state:?}")),
            _ => None,
        })
        .collect();
    let expected = [
        "call list a",
        "arguments {\"path\"",
        "arguments :\"src\"}",
        "started {\"path\":\"src\"}",
        "ended Done",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_streamed_is_an_answer() {
    let body = json!({
        "choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    });
    let headers = json!({"content-type": "application/json; charset=utf-8"});
    let kit = ModelKit::new(responses(&[
        json!({"headers": headers, "body": body.to_string()}),
    ]))
    .await;
    let ended = kit.ask_once("Go").await;
    assert_eq!(
        (ended.end(), ended.text().as_str()),
        ((TurnState::Done, ""), "whole")
    );
    assert_eq!(ended.turn.record.usage.input_tokens, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_estimated_if_nobody_tells_it() {
    let silent = steps(&[
        json!({"text": "123456"}),
        json!({"finish": "stop"}),
        json!("done"),
    ]);
    let kit = ModelKit::new(responses(&[silent])).await;
    let ended = kit.ask_once("Go").await;
    assert_eq!(ended.troubles(), ["usage_estimated"]);
    let usage = ended.turn.record.usage;
    assert_eq!((usage.output_tokens, usage.requests), (2, 1));
    assert!(usage.input_tokens > 100, "{usage:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_may_name_another_model() {
    let kit = ModelKit::new(responses(&[json!({"say": "fine"})])).await;
    let session = kit.kit.session().await;
    let new = NewTurn {
        agent: Some(AgentChoice {
            name: "model".to_owned(),
            model: Some("m-2".to_owned()),
            script: None,
        }),
        ..prompt("Go")
    };
    assert_eq!(kit.ask_with(session, new).await.end(), (TurnState::Done, ""));
    assert_eq!(kit.server.requests()[0]["body"]["model"], "m-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_with_a_prompt_is_sent() {
    let kit = ModelKit::new(responses(&[json!({"say": "one"}), json!({"say": "two"})])).await;
    let long = "ü".repeat(100_000);
    let contents: [(&str, &str, &[u8]); 4] = [
        ("a.txt", "text/plain", b"some text"),
        ("long.md", "text/markdown", long.as_bytes()),
        ("b.bin", "application/octet-stream", b"\0\x01"),
        ("c.png", "image/png", b"\x89PNG"),
    ];
    let mut attachments = Vec::new();
    for (name, media_type, content) in contents {
        let (id, info) = kit.kit.log.put_blob(content).await.unwrap();
        attachments.push(StoredAttachment {
            about: Attachment {
                name: name.to_owned(),
                media_type: media_type.to_owned(),
                size_bytes: info.size_bytes,
            },
            content: id,
        });
    }
    let session = kit.kit.session().await;
    let mut new = prompt("See");
    new.prompt.attachments = attachments.clone();
    let ended = kit.ask_with(session, new).await;
    assert_eq!(
        (ended.end(), ended.troubles()),
        ((TurnState::Done, ""), vec!["model_attachment"])
    );
    let mut only_text = prompt("And");
    only_text.prompt.attachments = attachments[..1].to_vec();
    kit.ask_with(session, only_text).await;

    let requests = kit.server.requests();
    let sent = requests[0]["body"]["messages"][1]["content"].as_array().unwrap();
    let cut = format!(
        "Attached file `long.md`:\n{}\n[… 68928 bytes left out]",
        "ü".repeat(65_536)
    );
    let expected = [
        json!({"type": "text", "text": "See"}),
        json!({"type": "text", "text": "Attached file `a.txt`:\nsome text"}),
        json!({"type": "text", "text": cut}),
        json!({"type": "text", "text": "[the attachment `b.bin` was not sent: a model cannot read application/octet-stream]"}),
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}),
    ];
    assert_eq!(sent, &expected);
    let messages = requests[1]["body"]["messages"].as_array().unwrap();
    assert_eq!(
        messages[1]["content"],
        "See\n[attached: a.txt]\n[attached: long.md]\n[attached: b.bin]\n[attached: c.png]"
    );
    assert_eq!(messages[3]["content"], "And\n\nAttached file `a.txt`:\nsome text");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_heard_everywhere() {
    let hang = steps(&[json!({"text": "Begun"}), json!("hang")]);
    let call = steps(&[
        json!({"tool": {"index": 0, "id": "a", "name": "write", "arguments": "{"}}),
        json!("hang"),
    ]);
    let cases = [
        ("before the answer", responses(&[json!({"silent": true})]), None),
        ("in the text", responses(&[hang]), Some("text")),
        ("in a call", responses(&[call]), Some("tool_call")),
        (
            "between two attempts",
            responses(&[json!({"status": 429, "headers": {"retry-after": "50"}})]),
            Some("trouble"),
        ),
    ];
    for (name, script, wait_for) in cases {
        let kit = ModelKit::new(script).await;
        let session = kit.kit.session().await;
        let turn = kit.kit.send(session, "Go").await.turn.id;
        let reached = async {
            loop {
                let events = kit.kit.events(turn).await;
                let is_there = match wait_for {
                    Some(kind) => events.iter().any(|event| event.kind() == kind),
                    None => !kit.server.requests().is_empty(),
                };
                if is_there {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect(name);
        kit.kit
            .sessions
            .cancel_turn(session, Some(turn), "ann".into(), String::new())
            .await
            .unwrap();
        let ended = kit.kit.end(turn).await;
        assert_eq!(ended.record.state, TurnState::Cancelled, "{name}");
        let open_calls = kit
            .kit
            .events(turn)
            .await
            .iter()
            .fold(0, |open, event| match event {
                TurnEvent::ToolCall { .. } => open + 1,
                TurnEvent::ToolEnded { .. } => open - 1,
                _ => open,
            });
        assert_eq!(open_calls, 0, "{name}");
        assert_eq!(
            kit.kit.sessions.get(session).await.unwrap().record.active,
            None,
            "{name}"
        );
    }
}
