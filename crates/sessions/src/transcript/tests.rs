//! Folding from any position and in any order.

use proptest::prelude::*;
use protocol::{AgentChoice, PermissionId, PlanId, ToolState};
use serde_json::json;

use super::*;
use crate::prompt::Prompt;

fn folded(events: &[TurnEvent]) -> TurnTranscript {
    let mut transcript = TurnTranscript::default();
    events.iter().for_each(|event| apply(&mut transcript, event));
    transcript
}

fn text(item: u64, delta: &str) -> TurnEvent {
    let delta = delta.to_owned();
    TurnEvent::Text { item, delta }
}

fn reasoning(item: u64, delta: &str) -> TurnEvent {
    let delta = delta.to_owned();
    TurnEvent::Reasoning { item, delta }
}

fn output(item: u64, delta: &str) -> TurnEvent {
    let delta = delta.to_owned();
    TurnEvent::ToolOutput { item, delta }
}

fn call(item: u64) -> TurnEvent {
    TurnEvent::ToolCall {
        item,
        call: format!("call-{item}"),
        tool: "shell".to_owned(),
    }
}

fn state(state: TurnState) -> TurnEvent {
    TurnEvent::State { state, error: None }
}

fn accepted() -> TurnEvent {
    TurnEvent::Accepted {
        v: 1,
        prompt: Prompt::default(),
        agent: AgentChoice::default(),
    }
}

fn arguments(item: u64, delta: &str) -> TurnEvent {
    let delta = delta.to_owned();
    TurnEvent::ToolArguments { item, delta }
}

#[test]
fn items_grow_beside_each_other_and_stay_in_their_order() {
    let (permission, plan) = (PermissionId::generate(), PlanId::generate());
    let answered = |answer, by: &str| TurnEvent::PermissionAnswered {
        permission,
        answer,
        by: by.to_owned(),
    };
    let events = [
        accepted(),
        state(TurnState::Running),
        text(0, "Let me "),
        reasoning(1, "Hm"),
        text(0, "look."),
        call(2),
        call(3),
        arguments(2, "{\"line\":"),
        TurnEvent::PermissionAsked {
            item: Some(2),
            permission,
            tool: "shell".to_owned(),
            subject: "ls".to_owned(),
            options: Vec::new(),
            timeout_ms: Some(1),
        },
        output(3, "a"),
        arguments(2, "\"ls\"}"),
        answered(PermissionAnswer::Allow, "me"),
        answered(PermissionAnswer::Deny, "late"),
        TurnEvent::ToolStarted {
            item: 2,
            title: "ls".to_owned(),
            arguments: json!({"line": "ls"}),
        },
        arguments(2, "too late"),
        output(2, "x"),
        output(3, "b"),
        TurnEvent::PlanChanged {
            plan,
            fingerprint: "f".to_owned(),
            files: 1,
            changeset: None,
            paths: vec!["a.txt".to_owned()],
        },
        TurnEvent::ToolEnded {
            item: 2,
            state: ToolState::Done,
            answer: "done".to_owned(),
            full: None,
        },
        text(4, "Fine."),
        text(3, "of no tool"),
        output(9, "of no item"),
        TurnEvent::Trouble {
            code: "slow".to_owned(),
            text: "it is".to_owned(),
        },
        state(TurnState::Done),
    ];
    let expected = json!({
        "items": [
            {"type": "text", "text": "Let me look."},
            {"type": "reasoning", "text": "Hm"},
            {"type": "tool", "call": "call-2", "tool": "shell", "title": "ls", "arguments": {"line": "ls"},
             "output": "x", "state": "done", "answer": "done"},
            {"type": "tool", "call": "call-3", "tool": "shell", "title": "", "arguments": "", "output": "ab"},
            {"type": "permission", "permission": permission.to_string(), "tool": "shell", "subject": "ls",
             "options": [], "answer": "allow", "by": "me"},
            {"type": "plan", "plan": plan.to_string(), "fingerprint": "f", "files": 1, "paths": ["a.txt"]},
            {"type": "text", "text": "Fine."},
            {"type": "trouble", "code": "slow", "text": "it is"},
        ],
        "numbers": [0, 1, 2, 3, null, null, 4, null],
        "usage": {"input_tokens": 0, "output_tokens": 0, "requests": 0, "cost_micros": 0},
        "state": "done",
    });
    assert_eq!(serde_json::to_value(folded(&events)).unwrap(), expected);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let stored = |body: &str| eventlog::Event {
        sequence: eventlog::Sequence::START,
        at_ms: 0,
        kind: "x".into(),
        body: body.as_bytes().into(),
    };
    let mut transcript = TurnTranscript::default();
    for body in [
        r#"{"kind":"text","item":0,"delta":"a","since":"version 2"}"#,
        r#"{"kind":"hologram","item":0,"delta":"b"}"#,
        r#"{"kind":"text","item":0}"#,
        "nothing",
    ] {
        apply_stored(&mut transcript, &stored(body));
    }
    assert_eq!(transcript, folded(&[text(0, "a")]));
}

fn any_event() -> impl Strategy<Value = TurnEvent> {
    let permissions: Vec<_> = (0..3).map(|_| PermissionId::generate()).collect();
    let permissions = proptest::sample::select(permissions);
    let (item, delta) = (0_u64..6, "[a-z\"{}]{0,4}");
    prop_oneof![
        Just(accepted()),
        Just(state(TurnState::Running)),
        (item.clone(), delta).prop_map(|(item, delta)| text(item, &delta)),
        (item.clone(), delta).prop_map(|(item, delta)| reasoning(item, &delta)),
        item.clone().prop_map(call),
        (item.clone(), delta).prop_map(|(item, delta)| arguments(item, &delta)),
        (item.clone(), delta).prop_map(|(item, delta)| output(item, &delta)),
        (item.clone(), delta).prop_map(|(item, title)| TurnEvent::ToolStarted {
            item,
            title,
            arguments: json!({}),
        }),
        (item, delta).prop_map(|(item, answer)| TurnEvent::ToolEnded {
            item,
            state: ToolState::Failed,
            answer,
            full: None,
        }),
        (permissions.clone(), delta).prop_map(|(permission, subject)| TurnEvent::PermissionAsked {
            item: None,
            permission,
            tool: String::new(),
            subject,
            options: Vec::new(),
            timeout_ms: None,
        }),
        (permissions, delta).prop_map(|(permission, by)| TurnEvent::PermissionAnswered {
            permission,
            answer: PermissionAnswer::Deny,
            by,
        }),
        delta.prop_map(|text| TurnEvent::Trouble {
            code: String::new(),
            text,
        }),
    ]
}

proptest! {
    /// A reader that continues from a snapshot ends up with the same transcript as one that was there from the start.
    #[test]
    fn a_fold_can_be_written_down_anywhere(
        events in proptest::collection::vec(any_event(), 0..60),
        at in any::<proptest::sample::Index>(),
    ) {
        let at = at.index(events.len() + 1);
        let snapshot = serde_json::to_string(&folded(&events[..at])).unwrap();
        let mut resumed: TurnTranscript = serde_json::from_str(&snapshot).unwrap();
        events[at..].iter().for_each(|event| apply(&mut resumed, event));
        prop_assert_eq!(resumed, folded(&events));
    }
}

#[test]
fn what_goes_on_from_a_snapshot_without_numbers_begins_items_of_its_own() {
    let text = |text: &str| TurnItem::Text {
        text: text.to_owned(),
    };
    let mut snapshot = serde_json::to_value(TurnTranscript {
        items: vec![text("a"), text("b")],
        ..TurnTranscript::default()
    })
    .unwrap();
    snapshot.as_object_mut().unwrap().remove("numbers").unwrap();
    let mut transcript: TurnTranscript = serde_json::from_value(snapshot).unwrap();
    for (item, delta) in [(7, "c"), (8, "d"), (7, "e"), (8, "f")] {
        let delta = delta.to_owned();
        apply(&mut transcript, &TurnEvent::Text { item, delta });
    }
    let expected = TurnTranscript {
        items: vec![text("a"), text("b"), text("ce"), text("df")],
        numbers: vec![None, None, Some(7), Some(8)],
        ..TurnTranscript::default()
    };
    assert_eq!(transcript, expected);
}
