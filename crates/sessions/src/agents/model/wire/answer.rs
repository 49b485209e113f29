//! An answer, assembled from its events.

use super::chunk::{CallDelta, Choice, Chunk, Tokens};
use super::fault::Fault;

/// The most bytes of one answer, all parts together. Beyond that, the server isn't going to stop.
const ANSWER_LIMIT_BYTES: usize = 16 * 1024 * 1024;
/// The most tool calls in one answer.
const CALLS_LIMIT: usize = 128;

/// An answer, as far as it has arrived.
#[derive(Debug, Default)]
pub(in super::super) struct Answer {
    pub(in super::super) text: String,
    pub(in super::super) calls: Vec<CallDraft>,
    pub(in super::super) finish: Option<Finish>,
    tokens: Option<Tokens>,
    /// How many bytes have arrived, reasoning included.
    bytes: usize,
}

/// A tool call, as far as it has arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in super::super) struct CallDraft {
    index: Option<u64>,
    pub(in super::super) id: String,
    pub(in super::super) name: String,
    pub(in super::super) arguments: String,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Finish {
    Complete,
    /// The model hit its output limit.
    Length,
    /// The server filtered the output.
    Filtered,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(in super::super) enum Piece {
    Text(String),
    Reasoning(String),
    /// A new tool call, at this index.
    Call(usize),
    /// More arguments for a call that was already announced.
    Arguments(usize, String),
}

impl Answer {
    /// Applies an event and returns what it adds.
    pub(in super::super) fn apply(&mut self, chunk: Chunk) -> Result<Vec<Piece>, Fault> {
        let mut pieces = Vec::new();
        // The latest value counts: some servers report the usage with each event.
        self.tokens = chunk.usage.or(self.tokens);
        // We only ask for one choice.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            self.choice(choice, &mut pieces)?;
        }
        if self.bytes > ANSWER_LIMIT_BYTES {
            return Err(Fault::Garbled(format!(
                "the answer has more than {ANSWER_LIMIT_BYTES} bytes"
            )));
        }
        Ok(pieces)
    }

    /// Whether a reader has already seen part of the answer.
    pub(in super::super) fn has_come(&self) -> bool {
        self.bytes > 0 || !self.calls.is_empty()
    }

    /// Whether the model has neither said anything nor called a tool; reasoning doesn't count.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.calls.is_empty()
    }

    /// How many bytes have arrived.
    pub(in super::super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Tokens read and written, as reported by the server.
    pub(in super::super) fn tokens(&self) -> Option<(u64, u64)> {
        self.tokens
            .map(|tokens| (tokens.prompt_tokens, tokens.completion_tokens))
    }

    /// Ends the answer. Calls without an id get one; a call without a tool name is a fault.
    pub(in super::super) fn complete(&mut self, step: u32) -> Result<(), Fault> {
        for (place, call) in self.calls.iter_mut().enumerate() {
            if call.name.is_empty() {
                return Err(Fault::Garbled(
                    "a tool is called, and it is not said which".to_owned(),
                ));
            }
            if call.id.is_empty() {
                call.id = format!("call_{step}_{place}");
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let delta = choice.delta.unwrap_or_default();
        let thought = delta.reasoning_content.or(delta.reasoning).unwrap_or_default();
        if !thought.is_empty() {
            self.bytes += thought.len();
            pieces.push(Piece::Reasoning(thought));
        }
        for said in [delta.content, delta.refusal].into_iter().flatten() {
            if !said.is_empty() {
                self.bytes += said.len();
                self.text.push_str(&said);
                pieces.push(Piece::Text(said));
            }
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, pieces)?;
        }
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(match reason.as_str() {
                "length" | "max_tokens" => Finish::Length,
                "content_filter" => Finish::Filtered,
                _ => Finish::Complete,
            });
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta, pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let place = self.place(&delta);
        if place >= CALLS_LIMIT {
            return Err(Fault::Garbled(format!(
                "more than {CALLS_LIMIT} tools are called at once"
            )));
        }
        if place == self.calls.len() {
            self.calls.push(CallDraft {
                index: delta.index,
                ..CallDraft::default()
            });
        }
        let call = &mut self.calls[place];
        if let Some(id) = delta.id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        let function = delta.function.unwrap_or_default();
        let more = function.arguments.unwrap_or_default();
        self.bytes += more.len();
        call.arguments.push_str(&more);
        let was_named = !call.name.is_empty();
        if let Some(name) = function.name.filter(|_| !was_named) {
            call.name = name;
        }
        if was_named && !more.is_empty() {
            pieces.push(Piece::Arguments(place, more));
        }
        // Arguments that arrived before the name were held back, since the call couldn't be announced yet.
        if !was_named && !call.name.is_empty() {
            let so_far = call.arguments.clone();
            pieces.push(Piece::Call(place));
            if !so_far.is_empty() {
                pieces.push(Piece::Arguments(place, so_far));
            }
        }
        Ok(())
    }

    /// Which call a delta belongs to. Without an index, a new id starts a new call, and so does a name without an id.
    fn place(&self, delta: &CallDelta) -> usize {
        let names_tool = delta
            .function
            .as_ref()
            .is_some_and(|function| function.name.as_deref().is_some_and(|name| !name.is_empty()));
        let known = match (&delta.index, &delta.id) {
            (Some(index), _) => self.calls.iter().position(|call| call.index == Some(*index)),
            (None, Some(id)) if !id.is_empty() => self.calls.iter().position(|call| call.id == *id),
            _ if names_tool => None,
            _ => self.calls.len().checked_sub(1),
        };
        known.unwrap_or(self.calls.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta}]})
    }

    fn gathered(events: &[Value]) -> Result<(Answer, Vec<Piece>), Fault> {
        let mut answer = Answer::default();
        let mut pieces = Vec::new();
        for event in events {
            pieces.extend(answer.apply(Chunk::parse(&event.to_string())?)?);
        }
        Ok((answer, pieces))
    }

    fn draft(index: Option<u64>, id: &str, name: &str, arguments: &str) -> CallDraft {
        CallDraft {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn text_reasoning_and_usage_are_gathered() {
        let (answer, pieces) = gathered(&[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"reasoning_content": "Hm"})),
            delta(json!({"reasoning": "m"})),
            delta(json!({"content": "Hel", "reasoning": null})),
            delta(json!({"content": "lo"})),
            delta(json!({"refusal": "!"})),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}),
        ])
        .unwrap();
        let text = |text: &str| Piece::Text(text.to_owned());
        let thought = |text: &str| Piece::Reasoning(text.to_owned());
        assert_eq!(
            pieces,
            [thought("Hm"), thought("m"), text("Hel"), text("lo"), text("!")]
        );
        assert_eq!(answer.text, "Hello!");
        assert_eq!(answer.finish, Some(Finish::Complete));
        assert_eq!(answer.tokens(), Some((7, 3)));
        assert_eq!(answer.bytes(), 9);
        assert!(answer.has_come() && !answer.is_empty());
    }

    #[test]
    fn calls_are_gathered_however_servers_write_them() {
        let call = |value: Value| delta(json!({"tool_calls": [value]}));
        let cases = [
            (
                "by index, pieces mixed, one name late",
                vec![
                    call(
                        json!({"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": ""}}),
                    ),
                    call(json!({"index": 1, "id": "b", "function": {"arguments": "{\"x\""}})),
                    call(json!({"index": 0, "function": {"arguments": "{}"}})),
                    call(json!({"index": 1, "function": {"name": "write", "arguments": ":1}"}})),
                ],
                vec![
                    draft(Some(0), "a", "read", "{}"),
                    draft(Some(1), "b", "write", "{\"x\":1}"),
                ],
                vec![
                    Piece::Call(0),
                    Piece::Arguments(0, "{}".to_owned()),
                    Piece::Call(1),
                    Piece::Arguments(1, "{\"x\":1}".to_owned()),
                ],
            ),
            (
                "whole calls without an index, arguments as JSON",
                vec![delta(json!({"tool_calls": [
                    {"id": "a", "function": {"name": "read", "arguments": {"p": 1}}},
                    {"id": "b", "function": {"name": "read", "arguments": null}},
                ]}))],
                vec![
                    draft(None, "a", "read", "{\"p\":1}"),
                    draft(None, "b", "read", ""),
                ],
                vec![
                    Piece::Call(0),
                    Piece::Arguments(0, "{\"p\":1}".to_owned()),
                    Piece::Call(1),
                ],
            ),
            (
                "neither index nor id",
                vec![
                    call(json!({"function": {"name": "read", "arguments": "{"}})),
                    call(json!({"function": {"arguments": "}"}})),
                    call(json!({"function": {"name": "list"}})),
                ],
                vec![draft(None, "", "read", "{}"), draft(None, "", "list", "")],
                vec![
                    Piece::Call(0),
                    Piece::Arguments(0, "{".to_owned()),
                    Piece::Arguments(0, "}".to_owned()),
                    Piece::Call(1),
                ],
            ),
        ];
        for (name, events, calls, expected) in cases {
            let (answer, pieces) = gathered(&events).unwrap();
            assert_eq!(answer.calls, calls, "{name}");
            assert_eq!(pieces, expected, "{name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_a_fault() {
        let many = (0..=CALLS_LIMIT).map(|index| json!({"index": index, "function": {"name": "x"}}));
        let cases = [
            (
                delta(json!({"tool_calls": many.collect::<Vec<_>>()})),
                "more than 128 tools are called at once",
            ),
            (
                json!({"id": "x"}),
                "an event says nothing: `{\\\"id\\\":\\\"x\\\"}`",
            ),
            (
                delta(json!({"content": "x".repeat(ANSWER_LIMIT_BYTES + 1)})),
                "the answer has more than 16777216 bytes",
            ),
        ];
        for (event, text) in cases {
            let fault = gathered(&[event]).map(|_| ()).unwrap_err();
            assert_eq!(fault, Fault::Garbled(text.to_owned()));
        }
        let mut nameless = gathered(&[delta(json!({"tool_calls": [{"index": 0}]}))])
            .unwrap()
            .0;
        assert!(nameless.has_come() && nameless.complete(0).is_err());
        let mut named = gathered(&[delta(json!({"tool_calls": [{"function": {"name": "x"}}]}))])
            .unwrap()
            .0;
        assert_eq!(named.complete(7), Ok(()));
        assert_eq!(named.calls[0].id, "call_7_0");
    }
}
