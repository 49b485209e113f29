//! The final state of a turn's reader: the turn's events, folded together.
//!
//! The fold is pure. It can be stopped anywhere, stored, and continued: [`TurnTranscript`] includes the numbers of its
//! items, so that a reader that starts from a snapshot knows where the next piece of text goes.

use protocol::{PermissionAnswer, PermissionId, TurnItem, TurnState, TurnTranscript};
use serde_json::Value;

use crate::event::{TurnEvent, from_log};

#[cfg(test)]
mod tests;

/// Applies an event. An event that doesn't fit, or refers to an item that never began, changes nothing.
pub fn apply(transcript: &mut TurnTranscript, event: &TurnEvent) {
    match event {
        TurnEvent::Accepted { .. } => transcript.state = transcript.state.or(Some(TurnState::Queued)),
        TurnEvent::Edited { .. } | TurnEvent::Unknown => {}
        TurnEvent::State { state, error } => {
            transcript.state = Some(*state);
            transcript.error.clone_from(error);
        }
        TurnEvent::Text { item, delta } => say(transcript, *item, delta),
        TurnEvent::Reasoning { item, delta } => think(transcript, *item, delta),
        TurnEvent::ToolCall { item, call, tool } => begin_call(transcript, *item, call, tool),
        TurnEvent::PermissionAsked {
            permission,
            tool,
            subject,
            options,
            ..
        } => push(
            transcript,
            None,
            TurnItem::Permission {
                permission: *permission,
                tool: tool.clone(),
                subject: subject.clone(),
                options: options.clone(),
                answer: None,
                by: None,
            },
        ),
        TurnEvent::PermissionAnswered {
            permission,
            answer,
            by,
        } => take_answer(transcript, *permission, *answer, by),
        TurnEvent::PlanChanged {
            plan,
            fingerprint,
            files,
            paths,
            ..
        } => push(
            transcript,
            None,
            TurnItem::Plan {
                plan: *plan,
                fingerprint: fingerprint.clone(),
                files: *files,
                paths: paths.clone(),
            },
        ),
        TurnEvent::Usage { total } => transcript.usage = *total,
        TurnEvent::Trouble { code, text } => push(
            transcript,
            None,
            TurnItem::Trouble {
                code: code.clone(),
                text: text.clone(),
            },
        ),
        TurnEvent::ToolArguments { item, .. }
        | TurnEvent::ToolStarted { item, .. }
        | TurnEvent::ToolOutput { item, .. }
        | TurnEvent::ToolEnded { item, .. } => {
            if let Some(tool) = numbered(transcript, *item) {
                go_on(tool, event);
            }
        }
    }
}

/// Applies an event from the log. An event of an unknown kind changes nothing.
pub fn apply_stored(transcript: &mut TurnTranscript, event: &eventlog::Event) {
    if let Some(event) = from_log(event) {
        apply(transcript, &event);
    }
}

/// The item with a number. Items that still grow are among the last.
fn numbered(transcript: &mut TurnTranscript, number: u64) -> Option<&mut TurnItem> {
    let place = transcript
        .numbers
        .iter()
        .rposition(|known| *known == Some(number))?;
    transcript.items.get_mut(place)
}

fn push(transcript: &mut TurnTranscript, number: Option<u64>, item: TurnItem) {
    // A snapshot from a writer that didn't store numbers has items without them.
    transcript.numbers.resize(transcript.items.len(), None);
    transcript.items.push(item);
    transcript.numbers.push(number);
}

fn say(transcript: &mut TurnTranscript, number: u64, delta: &str) {
    match numbered(transcript, number) {
        Some(TurnItem::Text { text }) => text.push_str(delta),
        Some(_) => {}
        None => {
            let text = delta.to_owned();
            push(transcript, Some(number), TurnItem::Text { text });
        }
    }
}

fn think(transcript: &mut TurnTranscript, number: u64, delta: &str) {
    match numbered(transcript, number) {
        Some(TurnItem::Reasoning { text }) => text.push_str(delta),
        Some(_) => {}
        None => {
            let text = delta.to_owned();
            push(transcript, Some(number), TurnItem::Reasoning { text });
        }
    }
}

fn begin_call(transcript: &mut TurnTranscript, number: u64, call: &str, tool: &str) {
    if numbered(transcript, number).is_some() {
        return;
    }
    let tool = TurnItem::Tool {
        call: call.to_owned(),
        tool: tool.to_owned(),
        title: String::new(),
        arguments: Value::String(String::new()),
        output: String::new(),
        state: None,
        answer: None,
        full: None,
    };
    push(transcript, Some(number), tool);
}

/// Records an answer, unless the question already has one.
fn take_answer(transcript: &mut TurnTranscript, asked: PermissionId, given: PermissionAnswer, whose: &str) {
    for item in transcript.items.iter_mut().rev() {
        if let TurnItem::Permission {
            permission,
            answer: answer @ None,
            by,
            ..
        } = item
            && *permission == asked
        {
            *answer = Some(given);
            *by = Some(whose.to_owned());
            return;
        }
    }
}

/// Applies an event to a tool call.
fn go_on(item: &mut TurnItem, event: &TurnEvent) {
    let TurnItem::Tool {
        title,
        arguments,
        output,
        state,
        answer,
        full,
        ..
    } = item
    else {
        return;
    };
    match event {
        TurnEvent::ToolArguments { delta, .. } => {
            if let Value::String(so_far) = arguments {
                so_far.push_str(delta);
            }
        }
        TurnEvent::ToolStarted {
            title: now,
            arguments: complete,
            ..
        } => {
            title.clone_from(now);
            arguments.clone_from(complete);
        }
        TurnEvent::ToolOutput { delta, .. } => output.push_str(delta),
        TurnEvent::ToolEnded {
            state: ended,
            answer: told,
            full: whole,
            ..
        } => {
            *state = Some(*ended);
            *answer = Some(told.clone());
            full.clone_from(whole);
        }
        _ => {}
    }
}
