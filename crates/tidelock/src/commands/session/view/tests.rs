//! A turn with every kind of event, and what is shown of it.

use protocol::TurnResync;
use serde_json::{Value, json};

use super::super::page::Layout;
use super::*;
use crate::printable::printable;

fn view(layout: Layout, prompts: Prompts) -> TurnView {
    TurnView::new(Page::new(layout, Palette::Plain), Palette::Plain, 60, prompts)
}

fn event(sequence: u64, data: &Value) -> TurnEvent {
    let at_ms = sequence * 700;
    printable(&json!({ "sequence": sequence, "at_ms": at_ms, "data": data })).unwrap()
}

fn turn() -> Vec<TurnEvent> {
    let lines: String = (1..=12).map(|number| format!("line {number}\n")).collect();
    let datas = [
        json!({ "kind": "accepted", "v": 1, "prompt": { "text": "mend\nit" }, "agent": { "name": "a" } }),
        json!({ "kind": "state", "state": "queued" }),
        json!({ "kind": "state", "state": "running" }),
        json!({ "kind": "reasoning", "item": 0, "delta": "first I " }),
        json!({ "kind": "reasoning", "item": 0, "delta": "look" }),
        json!({ "kind": "text", "item": 1, "delta": "I \u{1b}[31mlook" }),
        json!({ "kind": "tool_call", "item": 2, "call": "", "tool": "read" }),
        json!({ "kind": "tool_arguments", "item": 2, "delta": "{\"path\":" }),
        json!({ "kind": "tool_started", "item": 2, "title": "read a.txt", "arguments": {} }),
        json!({ "kind": "tool_ended", "item": 2, "state": "done", "answer": "content" }),
        json!({ "kind": "text", "item": 1, "delta": " closer.\n" }),
        json!({ "kind": "tool_call", "item": 3, "call": "", "tool": "shell" }),
        json!({ "kind": "permission_asked", "item": 3, "permission": "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "tool": "shell",
                "subject": "make", "options": [], "timeout_ms": 1000 }),
        json!({ "kind": "permission_answered", "permission": "permission_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "answer": "allow", "by": "me" }),
        json!({ "kind": "tool_started", "item": 3, "title": "$ make", "arguments": {} }),
        json!({ "kind": "tool_output", "item": 3, "delta": lines }),
        json!({ "kind": "trouble", "code": "model_retry", "text": "asked again" }),
        json!({ "kind": "tool_ended", "item": 3, "state": "failed", "answer": "exit 2",
                "full": "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX" }),
        json!({ "kind": "tool_call", "item": 4, "call": "", "tool": "write" }),
        json!({ "kind": "tool_ended", "item": 4, "state": "denied", "answer": "a rule says no" }),
        json!({ "kind": "plan_changed", "plan": "plan_01JCZ8T6V8Y3N5K2M4Q7R9S1TX", "fingerprint": "f", "files": 1 }),
        json!({ "kind": "usage", "total": { "input_tokens": 1, "output_tokens": 2, "requests": 1, "cost_micros": 0 } }),
        json!({ "kind": "weather", "text": "unheard of" }),
        json!({ "kind": "text", "item": 5, "delta": "Done" }),
        json!({ "kind": "state", "state": "done" }),
    ];
    (1..)
        .zip(&datas)
        .map(|(number, data)| event(number, data))
        .collect()
}

fn seen(view: &mut TurnView) -> String {
    let pieces = view.page.taken();
    let show = |(stream, text): &(Stream, String)| match stream {
        Stream::Out => format!("[out]{text}"),
        Stream::Err => format!("[err]{text}"),
    };
    pieces.iter().map(show).collect()
}

fn only(stream: Stream, view: &mut TurnView) -> String {
    let pieces = view.page.taken().into_iter();
    pieces
        .filter(|(of, _)| *of == stream)
        .map(|(_, text)| text)
        .collect()
}

#[test]
fn a_turn_is_seen_as_it_goes_on() {
    let mut view = view(Layout::Together, Prompts::Shown);
    for event in turn() {
        view.event(&event);
    }
    insta::assert_snapshot!(seen(&mut view));
    assert_eq!(view.usage.output_tokens, 2);
    assert_eq!(view.open_questions().count(), 0);
}

#[test]
fn standard_output_has_the_agents_words_and_nothing_else() {
    let mut apart = view(Layout::Apart, Prompts::Known);
    for event in turn() {
        apart.event(&event);
    }
    assert_eq!(only(Stream::Out, &mut apart), "I \u{fffd}[31mlook closer.\nDone");
}

fn snapshot(of: &[TurnEvent]) -> TurnTranscript {
    let mut items: Vec<(Option<u64>, TurnItem)> = Vec::new();
    let mut usage = Usage::default();
    for event in of {
        let number_of = |number: u64, items: &[(Option<u64>, TurnItem)]| {
            items.iter().position(|(known, _)| *known == Some(number))
        };
        match event.data.clone() {
            TurnEventBody::Text { item, delta } => match number_of(item, &items) {
                Some(place) => match &mut items[place].1 {
                    TurnItem::Text { text } => text.push_str(&delta),
                    other => panic!("{other:?}"),
                },
                None => items.push((Some(item), TurnItem::Text { text: delta })),
            },
            TurnEventBody::Reasoning { item, delta } => match number_of(item, &items) {
                Some(place) => match &mut items[place].1 {
                    TurnItem::Reasoning { text } => text.push_str(&delta),
                    other => panic!("{other:?}"),
                },
                None => items.push((Some(item), TurnItem::Reasoning { text: delta })),
            },
            TurnEventBody::ToolCall { item, call, tool } => items.push((
                Some(item),
                TurnItem::Tool {
                    call,
                    tool,
                    title: String::new(),
                    arguments: Value::Null,
                    output: String::new(),
                    state: None,
                    answer: None,
                    full: None,
                },
            )),
            TurnEventBody::ToolStarted { item, title: now, .. } => {
                let place = number_of(item, &items).unwrap();
                if let TurnItem::Tool { title, .. } = &mut items[place].1 {
                    *title = now;
                }
            }
            TurnEventBody::ToolOutput { item, delta } => {
                let place = number_of(item, &items).unwrap();
                if let TurnItem::Tool { output, .. } = &mut items[place].1 {
                    output.push_str(&delta);
                }
            }
            TurnEventBody::ToolEnded {
                item,
                state: now,
                answer: told,
                full: all,
            } => {
                let place = number_of(item, &items).unwrap();
                if let TurnItem::Tool {
                    state, answer, full, ..
                } = &mut items[place].1
                {
                    (*state, *answer, *full) = (Some(now), Some(told), all);
                }
            }
            TurnEventBody::PermissionAsked {
                permission,
                tool,
                subject,
                options,
                ..
            } => items.push((
                None,
                TurnItem::Permission {
                    permission,
                    tool,
                    subject,
                    options,
                    answer: None,
                    by: None,
                },
            )),
            TurnEventBody::PermissionAnswered {
                answer: given,
                by: who,
                ..
            } => {
                for (_, item) in &mut items {
                    if let TurnItem::Permission { answer, by, .. } = item {
                        (*answer, *by) = (Some(given), Some(who.clone()));
                    }
                }
            }
            TurnEventBody::Trouble { code, text } => items.push((None, TurnItem::Trouble { code, text })),
            TurnEventBody::Usage { total } => usage = total,
            _ => {}
        }
    }
    let (numbers, items) = items.into_iter().unzip();
    TurnTranscript {
        items,
        numbers,
        usage,
        state: None,
        error: None,
    }
}

/// Wherever a reader was when events were compacted, it ends up with the same text, exactly once.
#[test]
fn a_snapshot_adds_what_is_missing_and_nothing_else() {
    let events = turn();
    let whole = "I \u{fffd}[31mlook closer.\nDone";
    let count = |text: &str, part: &str| text.matches(part).count();
    for told in 0..=events.len() {
        for folded in told..=events.len() {
            let mut view = view(Layout::Apart, Prompts::Known);
            for event in &events[..told] {
                view.event(event);
            }
            let resync = TurnResync {
                after: 0,
                snapshot: snapshot(&events[..folded]),
            };
            view.catch_up(&resync.snapshot);
            for event in &events[folded..] {
                view.event(event);
            }
            let place = format!("{told} told, {folded} folded");
            let pieces = view.page.taken();
            let of = |wanted: Stream| -> String {
                let pieces = pieces.iter().filter(|(stream, _)| *stream == wanted);
                pieces.map(|(_, text)| text.as_str()).collect()
            };
            assert_eq!(of(Stream::Out), whole, "{place}");
            let besides = of(Stream::Err);
            for part in [
                "first I look",
                "* read a.txt",
                "* $ make",
                "    line 8\n",
                "(4 more lines: `tidelock job logs R9S1TX`)",
                "? shell wants to do this: make",
                "answered: allow (by me)",
                "note: asked again",
                "* write: not allowed",
            ] {
                assert_eq!(count(&besides, part), 1, "{part:?}, {place}: {besides}");
            }
            assert_eq!(count(&besides, ": failed"), 1, "{place}: {besides}");
        }
    }
}
