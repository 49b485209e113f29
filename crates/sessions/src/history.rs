//! The conversation before a turn, up to a size the caller chooses.
//!
//! **Invariant:** turns are read from the newest back, and no more than fit. So the cost doesn't depend on the length
//! of the session.

use eventlog::{Log, Sequence};
use protocol::{TurnId, TurnItem, TurnState, TurnTranscript};
use serde_json::Value;

use crate::error::SessionError;
use crate::store;
use crate::streams::turn_stream;
use crate::transcript::apply_stored;
use crate::turn::Turn;

/// The most turns to read.
const TURNS_LIMIT: usize = 64;
/// The most events of a turn to read. If there are more, only the end matters.
const EVENTS_LIMIT: u64 = 4096;
/// How many events to read at a time.
const PAGE_EVENTS: u32 = 512;
/// A larger transcript is skipped, but its prompt is kept.
const TRANSCRIPT_LIMIT_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes of a prompt, or of an agent's text.
const TEXT_LIMIT_BYTES: usize = 16 * 1024;
/// The most bytes of a tool's arguments, and of its answer. What matters is in the sandbox.
const TOOL_LIMIT_BYTES: usize = 2 * 1024;
/// What an item costs on top of its text.
const ITEM_BYTES: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Past {
    /// The prompt, with the names of its attachments.
    pub(crate) prompt: String,
    /// What the agent said and did, in order; only the end if there was a lot.
    pub(crate) said: Vec<Said>,
    pub(crate) state: TurnState,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Text(String),
    Tool {
        tool: String,
        arguments: Value,
        answer: String,
    },
}

/// The turns up to and including this one, oldest first, as many as fit into this many bytes. *Cancel
/// safety*: may be dropped at any time.
pub(crate) async fn read(
    log: &Log,
    newest: Option<TurnId>,
    budget_bytes: usize,
) -> Result<Vec<Past>, SessionError> {
    let mut history = Vec::new();
    let mut left = budget_bytes;
    let mut next = newest;
    while let Some(id) = next.take().filter(|_| history.len() < TURNS_LIMIT) {
        let turn = match store::turn(log, id).await {
            Ok(turn) => turn,
            // A fork of a session that was removed has only its own turns.
            Err(SessionError::TurnNotFound(_)) => break,
            Err(error) => return Err(error),
        };
        let prompt = prompt_of(&turn);
        let Some(rest) = left.checked_sub(prompt.len() + ITEM_BYTES) else {
            break;
        };
        let (said, rest) = fitting(transcript(log, &turn).await?, rest);
        // A prompt without any of its answer is useless, unless it's the newest.
        if said.is_empty() && rest.is_none() && !history.is_empty() {
            break;
        }
        history.push(Past {
            prompt,
            said,
            state: turn.record.state,
        });
        let Some(rest) = rest else { break };
        left = rest;
        next = turn.record.previous;
    }
    history.reverse();
    Ok(history)
}

fn prompt_of(turn: &Turn) -> String {
    let prompt = &turn.record.prompt;
    let mut text = cut(&prompt.text, TEXT_LIMIT_BYTES);
    for attachment in &prompt.attachments {
        text.push_str(&format!(
            "\n[attached: {}]",
            cut(&attachment.about.name, ITEM_BYTES)
        ));
    }
    text
}

/// A turn's transcript, or one folded from its last events.
async fn transcript(log: &Log, turn: &Turn) -> Result<TurnTranscript, SessionError> {
    if let Some(blob) = turn.record.transcript {
        let size = log.blob_info(blob).await?.map_or(0, |info| info.size_bytes);
        if size > TRANSCRIPT_LIMIT_BYTES {
            return Ok(TurnTranscript::default());
        }
        let contents = log.read_blobs(&[blob]).await?;
        let content = contents.into_iter().next().unwrap_or_default();
        return serde_json::from_slice(&content).map_err(|source| SessionError::Unreadable {
            stream: format!("turn/{}", turn.id),
            source,
        });
    }
    let stream = turn_stream(turn.id)?;
    let mut transcript = TurnTranscript::default();
    let mut after = Sequence::from_u64(turn.last_sequence.get().saturating_sub(EVENTS_LIMIT));
    // At most one page more than the limit: this ends even if the turn is still being written.
    for _ in 0..=EVENTS_LIMIT / u64::from(PAGE_EVENTS) {
        let page = log.read(&stream, after, PAGE_EVENTS).await?;
        let Some(last) = page.events.last() else { break };
        after = last.sequence;
        page.events
            .iter()
            .for_each(|event| apply_stored(&mut transcript, event));
    }
    Ok(transcript)
}

/// The last items that fit, in order, and the remaining room; `None` if some did not fit.
fn fitting(transcript: TurnTranscript, mut left: usize) -> (Vec<Said>, Option<usize>) {
    let mut said = Vec::new();
    for item in transcript.items.into_iter().rev() {
        let Some((item, size)) = said_of(item) else {
            continue;
        };
        let Some(rest) = left.checked_sub(size + ITEM_BYTES) else {
            said.reverse();
            return (said, None);
        };
        left = rest;
        said.push(item);
    }
    said.reverse();
    (said, Some(left))
}

/// A shortened item, and its size. Reasoning and surrounding events are not repeated.
fn said_of(item: TurnItem) -> Option<(Said, usize)> {
    match item {
        TurnItem::Text { text } if !text.trim().is_empty() => {
            let text = cut(&text, TEXT_LIMIT_BYTES);
            let size = text.len();
            Some((Said::Text(text), size))
        }
        TurnItem::Tool {
            tool,
            arguments,
            answer,
            ..
        } => {
            // A call with incomplete arguments was never made.
            if !arguments.is_object() {
                return None;
            }
            let written = arguments.to_string();
            let arguments = if written.len() > TOOL_LIMIT_BYTES {
                shortened(arguments)
            } else {
                arguments
            };
            let answer = cut(
                &answer.unwrap_or_else(|| "(no answer)".to_owned()),
                TOOL_LIMIT_BYTES,
            );
            let size = written.len().min(TOOL_LIMIT_BYTES) + tool.len() + answer.len();
            let said = Said::Tool {
                tool,
                arguments,
                answer,
            };
            Some((said, size))
        }
        _ => None,
    }
}

/// Truncates long strings in arguments: it stays clear what was done to what.
fn shortened(arguments: Value) -> Value {
    let Value::Object(fields) = arguments else {
        return Value::Object(serde_json::Map::new());
    };
    let limit = TOOL_LIMIT_BYTES / (fields.len() + 1);
    let short = |value: Value| match value {
        Value::String(text) => Value::String(cut(&text, limit)),
        other if other.to_string().len() > limit => Value::String("(left out)".to_owned()),
        other => other,
    };
    fields
        .into_iter()
        .map(|(name, value)| (name, short(value)))
        .collect()
}

/// A text, or its start with a note.
fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(limit);
    format!("{}\n[… {} bytes left out]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use protocol::ToolState;
    use serde_json::json;

    use super::*;

    fn tool(arguments: Value, answer: Option<&str>) -> TurnItem {
        TurnItem::Tool {
            call: "c".to_owned(),
            tool: "write".to_owned(),
            title: String::new(),
            arguments,
            output: "much".to_owned(),
            state: Some(ToolState::Done),
            answer: answer.map(str::to_owned),
            full: None,
        }
    }

    fn text(text: &str) -> TurnItem {
        TurnItem::Text {
            text: text.to_owned(),
        }
    }

    fn transcript(items: Vec<TurnItem>) -> TurnTranscript {
        TurnTranscript {
            items,
            ..TurnTranscript::default()
        }
    }

    #[test]
    fn the_end_of_a_turn_is_what_fits() {
        let items = vec![
            text("first"),
            TurnItem::Reasoning {
                text: "hm".to_owned(),
            },
            tool(json!({"path": "a"}), Some("ok")),
            tool(json!("{\"pat"), None),
            text("  \n"),
            text("last"),
        ];
        let call = Said::Tool {
            tool: "write".to_owned(),
            arguments: json!({"path": "a"}),
            answer: "ok".to_owned(),
        };
        let said = |text: &str| Said::Text(text.to_owned());
        let (last, whole) = (ITEM_BYTES + 4, 3 * ITEM_BYTES + 4 + 12 + 5 + 2 + 5);
        let cases = [
            (0, vec![], None),
            (last - 1, vec![], None),
            (last, vec![said("last")], None),
            (whole - 1, vec![call.clone(), said("last")], None),
            (whole, vec![said("first"), call.clone(), said("last")], Some(0)),
            (whole + 9, vec![said("first"), call, said("last")], Some(9)),
        ];
        for (room, expected, left) in cases {
            assert_eq!(
                fitting(transcript(items.clone()), room),
                (expected, left),
                "{room}"
            );
        }
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = "ü".repeat(20_000);
        let items = vec![
            text(&long),
            tool(
                json!({"path": "a", "text": long.clone(), "list": [long.clone()]}),
                Some(&long),
            ),
        ];
        let (said, left) = fitting(transcript(items), 1 << 20);
        assert!(left.is_some());
        let [
            Said::Text(text),
            Said::Tool {
                arguments, answer, ..
            },
        ] = said.as_slice()
        else {
            panic!("{said:?}");
        };
        assert!(
            text.len() < TEXT_LIMIT_BYTES + 64 && text.ends_with("[… 23616 bytes left out]"),
            "{text}"
        );
        assert!(arguments.to_string().len() < TOOL_LIMIT_BYTES, "{arguments}");
        assert_eq!(
            (&arguments["path"], &arguments["list"]),
            (&json!("a"), &json!("(left out)"))
        );
        assert!(answer.len() < TOOL_LIMIT_BYTES + 64);
    }
}
