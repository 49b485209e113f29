//! Stored turn events go over the wire unchanged, so both sides must use the same names.

use std::sync::Arc;

use eventlog::{BlobId, Event, Sequence};
use protocol::{
    AgentChoice, Attachment, ChangesetId, PermissionAnswer, PermissionId, PermissionOption, PlanId,
    ToolState, TurnError, TurnId, TurnState, Usage,
};
use serde_json::{Value, json};
use sessions::{Prompt, StoredAttachment, TurnEvent};

use super::moment_to_wire;

fn prompt() -> Prompt {
    Prompt {
        text: "do it".to_owned(),
        attachments: vec![StoredAttachment {
            about: Attachment {
                name: "a.txt".to_owned(),
                media_type: "text/plain".to_owned(),
                size_bytes: 3,
            },
            content: BlobId::from_bytes([7; 32]),
        }],
    }
}

fn choice() -> AgentChoice {
    AgentChoice {
        name: "rehearsal".to_owned(),
        model: Some("m".to_owned()),
        script: Some("steps: []".to_owned()),
    }
}

/// One event of each kind, with every optional field set.
fn events() -> Vec<TurnEvent> {
    let (item, text) = (7, "text".to_owned());
    let permission = PermissionId::generate();
    let mut events = vec![
        TurnEvent::Accepted {
            v: 1,
            prompt: prompt(),
            agent: choice(),
        },
        TurnEvent::Edited { prompt: prompt() },
        TurnEvent::Text {
            item,
            delta: text.clone(),
        },
        TurnEvent::Reasoning {
            item,
            delta: text.clone(),
        },
        TurnEvent::ToolCall {
            item,
            call: "call_1".to_owned(),
            tool: "read".to_owned(),
        },
        TurnEvent::ToolArguments {
            item,
            delta: "{\"pa".to_owned(),
        },
        TurnEvent::ToolStarted {
            item,
            title: "read a".to_owned(),
            arguments: json!({"path": "a", "lines": [1, null]}),
        },
        TurnEvent::ToolOutput {
            item,
            delta: text.clone(),
        },
        TurnEvent::PermissionAsked {
            item: Some(item),
            permission,
            tool: "shell".to_owned(),
            subject: "make".to_owned(),
            options: vec![PermissionOption {
                label: "Always".to_owned(),
                answer: PermissionAnswer::AllowAlways,
                id: "always".to_owned(),
            }],
            timeout_ms: Some(600_000),
        },
        TurnEvent::PlanChanged {
            plan: PlanId::generate(),
            fingerprint: "f".to_owned(),
            files: 2,
            changeset: Some(ChangesetId::generate()),
            paths: vec!["a".to_owned(), "b".to_owned()],
        },
        TurnEvent::Usage {
            total: Usage {
                input_tokens: 1,
                output_tokens: 2,
                requests: 3,
                cost_micros: 4,
            },
        },
        TurnEvent::Trouble {
            code: "model_retry".to_owned(),
            text,
        },
    ];
    for state in [
        TurnState::Queued,
        TurnState::Running,
        TurnState::Done,
        TurnState::Failed,
        TurnState::Cancelled,
        TurnState::Interrupted,
    ] {
        let error = TurnError {
            code: "model_timeout".to_owned(),
            text: "it took too long".to_owned(),
        };
        events.push(TurnEvent::State {
            state,
            error: Some(error),
        });
    }
    for state in [
        ToolState::Done,
        ToolState::Failed,
        ToolState::Denied,
        ToolState::Cancelled,
    ] {
        events.push(TurnEvent::ToolEnded {
            item,
            state,
            answer: "said".to_owned(),
            full: Some("job_1".to_owned()),
        });
    }
    for answer in [
        PermissionAnswer::Allow,
        PermissionAnswer::AllowAlways,
        PermissionAnswer::Deny,
    ] {
        events.push(TurnEvent::PermissionAnswered {
            permission,
            answer,
            by: "me".to_owned(),
        });
    }
    events
}

/// Removes what is stored but not sent: where the content of an attachment is.
fn without_contents(mut event: Value) -> Value {
    if let Some(attachments) = event.pointer_mut("/prompt/attachments") {
        for attachment in attachments.as_array_mut().unwrap() {
            attachment.as_object_mut().unwrap().remove("content");
        }
    }
    event
}

#[test]
fn every_event_that_is_kept_is_one_of_the_interface() {
    let mut kinds = std::collections::BTreeSet::new();
    for event in events() {
        kinds.insert(event.kind());
        let kept = serde_json::to_value(&event).unwrap();
        assert_eq!(kept["kind"], event.kind());
        let read: protocol::TurnEventBody = serde_json::from_value(kept.clone()).unwrap();
        assert_ne!(read, protocol::TurnEventBody::Unknown, "{kept}");
        assert_eq!(
            serde_json::to_value(&read).unwrap(),
            without_contents(kept.clone())
        );
        let back: TurnEvent = serde_json::from_value(kept).unwrap();
        assert_eq!(back, event);
    }
    // All kinds. If you add one, add it here as well.
    assert_eq!(kinds.len(), 15, "{kinds:?}");
}

#[test]
fn a_reader_passes_over_what_it_does_not_know() {
    let newer = json!({"kind": "song", "notes": [1, 2]});
    let read: protocol::TurnEventBody = serde_json::from_value(newer).unwrap();
    assert_eq!(read, protocol::TurnEventBody::Unknown);
}

#[test]
fn what_happened_to_a_session_is_told_even_if_it_cannot_be_read() {
    let turn = TurnId::generate();
    let event = |body: &str| Event {
        sequence: Sequence::from_u64(3),
        at_ms: 951_782_400_007,
        kind: "accepted".into(),
        body: Arc::from(body.as_bytes()),
    };
    let moment = |actor: &str, turn: Option<TurnId>, text: &str| protocol::SessionMoment {
        sequence: 3,
        at: "2000-02-29T00:00:00.007Z".to_owned(),
        event: "accepted".to_owned(),
        actor: actor.to_owned(),
        turn: turn.map(|turn| turn.to_string()),
        text: text.to_owned(),
    };
    let whole = json!({"actor": "me", "turn": turn.to_string(), "text": "do it"}).to_string();
    for (body, expected) in [
        (whole.as_str(), moment("me", Some(turn), "do it")),
        ("{}", moment("", None, "")),
        ("not JSON", moment("", None, "")),
    ] {
        assert_eq!(moment_to_wire(&event(body)), expected, "{body}");
    }
}
