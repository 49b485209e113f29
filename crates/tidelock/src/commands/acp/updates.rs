//! Computes an editor's updates about a turn from its events. Pure.
//!
//! It remembers how much of each item was reported, and which event was the last. So repeated events change nothing,
//! and a snapshot, which stands for compacted events, adds only what is missing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protocol::{
    PermissionAnswer, PermissionId, PermissionOption, TurnEvent, TurnEventBody, TurnItem, TurnResync,
};
use serde_json::{Value, json};

use super::tools::{ToolCall, kind, title_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    User,
    Agent,
    Thought,
}

impl Voice {
    fn update(self) -> &'static str {
        match self {
            Voice::User => "user_message_chunk",
            Voice::Agent => "agent_message_chunk",
            Voice::Thought => "agent_thought_chunk",
        }
    }
}

/// A chunk of a message. Chunks of one message have the same id.
pub(super) fn chunk(voice: Voice, message: &str, text: &str) -> Value {
    json!({
        "sessionUpdate": voice.update(),
        "messageId": message,
        "content": { "type": "text", "text": text },
    })
}

/// A question that has not been answered yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) permission: PermissionId,
    pub(super) options: Vec<PermissionOption>,
    /// The call that it is about, as the editor knows it.
    pub(super) call: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) permission: PermissionId,
    pub(super) answer: PermissionAnswer,
    /// Empty if no one answered in time.
    pub(super) by: String,
}

#[derive(Debug)]
enum SentItem {
    Text(usize),
    Tool(ToolCall),
}

#[derive(Debug)]
enum Piece {
    Text {
        voice: Voice,
        message: String,
        text: String,
    },
    Tool(u64),
}

#[derive(Debug)]
pub(super) struct TurnUpdates {
    turn: String,
    root: PathBuf,
    heard: u64,
    items: BTreeMap<u64, SentItem>,
    pieces: Vec<Piece>,
    open: Vec<Question>,
    /// All questions ever asked, so that a snapshot does not ask again.
    known: Vec<PermissionId>,
    answered: Vec<Answered>,
    troubles: usize,
    has_changes: bool,
}

impl TurnUpdates {
    pub(super) fn new(turn: &str, root: PathBuf) -> TurnUpdates {
        TurnUpdates {
            turn: turn.to_owned(),
            root,
            heard: 0,
            items: BTreeMap::new(),
            pieces: Vec::new(),
            open: Vec::new(),
            known: Vec::new(),
            answered: Vec::new(),
            troubles: 0,
            has_changes: false,
        }
    }

    pub(super) fn heard(&self) -> u64 {
        self.heard
    }

    pub(super) fn has_changes(&self) -> bool {
        self.has_changes
    }

    /// The unanswered questions, once everything up to an event was processed. Before that they are unknown: an old
    /// question may have been answered long ago.
    pub(super) fn open_questions(&self, goal: u64) -> &[Question] {
        if self.heard < goal { &[] } else { &self.open }
    }

    /// The answers since the last call.
    pub(super) fn take_answered(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answered)
    }

    pub(super) fn take(&mut self) -> Vec<Value> {
        let pieces = std::mem::take(&mut self.pieces);
        let updates = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Text { voice, message, text } => Some(chunk(voice, &message, &text)),
            Piece::Tool(item) => match self.items.get_mut(&item) {
                Some(SentItem::Tool(call)) => call.news(&self.root),
                _ => None,
            },
        });
        updates.collect()
    }

    /// Processes an event. One that was already processed changes nothing.
    pub(super) fn event(&mut self, event: &TurnEvent) {
        if event.sequence <= self.heard {
            return;
        }
        self.heard = event.sequence;
        match &event.data {
            TurnEventBody::Text { item, delta } => self.text(Voice::Agent, *item, delta),
            TurnEventBody::Reasoning { item, delta } => self.text(Voice::Thought, *item, delta),
            TurnEventBody::ToolCall { item, tool, .. } => {
                self.tool(*item, tool);
            }
            TurnEventBody::ToolStarted {
                item,
                title,
                arguments,
            } => {
                self.tool(*item, "tool").start(title, arguments);
            }
            TurnEventBody::ToolOutput { item, delta } => self.tool(*item, "tool").output(delta),
            TurnEventBody::ToolEnded {
                item, state, answer, ..
            } => self.tool(*item, "tool").end(*state, answer),
            TurnEventBody::PermissionAsked {
                item,
                permission,
                tool,
                subject,
                options,
                ..
            } => self.asked(*item, *permission, tool, subject, options),
            TurnEventBody::PermissionAnswered {
                permission,
                answer,
                by,
            } => self.answered(*permission, *answer, by),
            TurnEventBody::PlanChanged { .. } => self.has_changes = true,
            TurnEventBody::Trouble { text, .. } => self.trouble(text),
            // The prompt is reported before the turn, and its end after it. The arguments of a tool come
            // again when they
            // are complete.
            TurnEventBody::Accepted { .. }
            | TurnEventBody::State { .. }
            | TurnEventBody::Edited { .. }
            | TurnEventBody::ToolArguments { .. }
            | TurnEventBody::Usage { .. }
            | TurnEventBody::Unknown => {}
        }
    }

    /// Processes a snapshot in place of events: reports only what was not reported yet.
    pub(super) fn catch_up(&mut self, resync: &TurnResync) {
        let mut troubles = 0;
        // Items of old snapshots, which had no numbers, are treated as new.
        let unknown = u64::MAX / 2;
        for (place, item) in resync.snapshot.items.iter().enumerate() {
            let number = resync.snapshot.numbers.get(place).copied().flatten();
            let number = number.unwrap_or(unknown + place as u64);
            match item {
                TurnItem::Text { text } => self.untold(Voice::Agent, number, text),
                TurnItem::Reasoning { text } => self.untold(Voice::Thought, number, text),
                TurnItem::Tool {
                    tool,
                    title,
                    arguments,
                    output,
                    state,
                    answer,
                    ..
                } => {
                    let call = self.tool(number, tool);
                    if !title.is_empty() {
                        call.start(title, arguments);
                    }
                    call.output_so_far(output);
                    if let Some(state) = state {
                        call.end(*state, answer.as_deref().unwrap_or_default());
                    }
                }
                TurnItem::Permission {
                    permission,
                    tool,
                    subject,
                    options,
                    answer,
                    by,
                } => {
                    self.asked(None, *permission, tool, subject, options);
                    if let Some(answer) = answer {
                        self.answered(*permission, *answer, by.as_deref().unwrap_or_default());
                    }
                }
                TurnItem::Plan { .. } => self.has_changes = true,
                TurnItem::Trouble { text, .. } => {
                    troubles += 1;
                    if troubles > self.troubles {
                        self.trouble(text);
                    }
                }
            }
        }
        self.heard = self.heard.max(resync.after);
    }

    fn say(&mut self, voice: Voice, message: &str, text: &str) {
        let message = format!("{}-{message}", self.turn);
        match self.pieces.last_mut() {
            Some(Piece::Text {
                message: last,
                text: so_far,
                ..
            }) if *last == message => so_far.push_str(text),
            _ => self.pieces.push(Piece::Text {
                voice,
                message,
                text: text.to_owned(),
            }),
        }
    }

    fn text(&mut self, voice: Voice, item: u64, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.say(voice, &item.to_string(), delta);
        let told = self.items.entry(item).or_insert(SentItem::Text(0));
        if let SentItem::Text(characters) = told {
            *characters += delta.chars().count();
        }
    }

    fn untold(&mut self, voice: Voice, item: u64, whole: &str) {
        let told = match self.items.get(&item) {
            Some(SentItem::Text(characters)) => *characters,
            _ => 0,
        };
        let rest: String = whole.chars().skip(told).collect();
        self.text(voice, item, &rest);
    }

    fn tool(&mut self, item: u64, name: &str) -> &mut ToolCall {
        let is_last = matches!(self.pieces.last(), Some(Piece::Tool(last)) if *last == item);
        if !is_last {
            self.pieces.push(Piece::Tool(item));
        }
        let id = format!("{}-{item}", self.turn);
        let told = self
            .items
            .entry(item)
            .or_insert_with(|| SentItem::Tool(ToolCall::new(id.clone(), name)));
        if !matches!(told, SentItem::Tool(_)) {
            // An item never changes its kind; if it does anyway, treat it as another one.
            *told = SentItem::Tool(ToolCall::new(id, name));
        }
        match told {
            SentItem::Tool(call) => call,
            SentItem::Text(_) => unreachable!("it was made a tool just now"),
        }
    }

    fn asked(
        &mut self,
        item: Option<u64>,
        permission: PermissionId,
        tool: &str,
        subject: &str,
        options: &[PermissionOption],
    ) {
        if self.known.contains(&permission) {
            return;
        }
        self.known.push(permission);
        let call = match item.and_then(|item| self.items.get(&item)) {
            Some(SentItem::Tool(call)) => call.in_question(subject),
            _ => json!({
                "toolCallId": permission,
                "title": title_of(tool, subject),
                "kind": kind(tool),
            }),
        };
        self.open.push(Question {
            permission,
            options: options.to_vec(),
            call,
        });
    }

    fn answered(&mut self, permission: PermissionId, answer: PermissionAnswer, by: &str) {
        let before = self.open.len();
        self.open.retain(|question| question.permission != permission);
        if self.open.len() < before {
            self.answered.push(Answered {
                permission,
                answer,
                by: by.to_owned(),
            });
        }
    }

    fn trouble(&mut self, text: &str) {
        self.troubles += 1;
        let message = format!("trouble-{}", self.troubles);
        self.say(Voice::Thought, &message, &format!("Note: {text}\n"));
    }
}

#[cfg(test)]
mod tests {
    use protocol::{ToolState, TurnTranscript, Usage};

    use super::*;

    fn telling() -> TurnUpdates {
        TurnUpdates::new("turn_x", PathBuf::from("/w"))
    }

    fn text(item: u64, delta: &str) -> TurnEventBody {
        TurnEventBody::Text {
            item,
            delta: delta.to_owned(),
        }
    }

    fn hear(telling: &mut TurnUpdates, first: u64, bodies: impl IntoIterator<Item = TurnEventBody>) {
        for (sequence, data) in (first..).zip(bodies) {
            telling.event(&TurnEvent {
                sequence,
                at_ms: 0,
                data,
            });
        }
    }

    fn lines(updates: &[Value]) -> Vec<String> {
        let line = |update: &Value| {
            let name = update["sessionUpdate"].as_str().unwrap();
            match update.get("toolCallId") {
                Some(id) => format!(
                    "{name} {} {}",
                    id.as_str().unwrap(),
                    update["status"].as_str().unwrap()
                ),
                None => format!(
                    "{name} {} {:?}",
                    update["messageId"].as_str().unwrap(),
                    update["content"]["text"].as_str().unwrap()
                ),
            }
        };
        updates.iter().map(line).collect()
    }

    fn called(item: u64) -> TurnEventBody {
        TurnEventBody::ToolCall {
            item,
            call: String::new(),
            tool: "shell".to_owned(),
        }
    }

    fn ended(item: u64) -> TurnEventBody {
        TurnEventBody::ToolEnded {
            item,
            state: ToolState::Done,
            answer: "fine".to_owned(),
            full: None,
        }
    }

    #[test]
    fn pieces_of_one_message_are_told_together_and_in_order() {
        let mut telling = telling();
        let events = [
            text(0, "a"),
            text(0, "b"),
            called(1),
            text(0, "c"),
            ended(1),
            text(2, "d"),
        ];
        hear(&mut telling, 1, events);
        assert_eq!(
            lines(&telling.take()),
            [
                "agent_message_chunk turn_x-0 \"ab\"",
                "tool_call turn_x-1 completed",
                "agent_message_chunk turn_x-0 \"c\"",
                "agent_message_chunk turn_x-2 \"d\"",
            ]
        );
        assert_eq!(telling.take(), Vec::<Value>::new());
        // Repeated events, as after a broken connection, are not reported again.
        hear(&mut telling, 5, [ended(1), text(2, "d"), text(2, "e")]);
        assert_eq!(lines(&telling.take()), ["agent_message_chunk turn_x-2 \"e\""]);
    }

    #[test]
    fn a_snapshot_adds_what_is_missing() {
        let mut telling = telling();
        hear(&mut telling, 1, [text(0, "grü"), called(1)]);
        telling.take();
        let tool = |state| TurnItem::Tool {
            call: String::new(),
            tool: "shell".to_owned(),
            title: "$ x".to_owned(),
            arguments: json!({}),
            output: "out".to_owned(),
            state,
            answer: None,
            full: None,
        };
        let resync = TurnResync {
            after: 9,
            snapshot: TurnTranscript {
                items: vec![
                    TurnItem::Text {
                        text: "grüß".to_owned(),
                    },
                    tool(Some(ToolState::Failed)),
                    TurnItem::Trouble {
                        code: "c".to_owned(),
                        text: "t".to_owned(),
                    },
                ],
                numbers: vec![Some(0), Some(1), None],
                usage: Usage::default(),
                state: None,
                error: None,
            },
        };
        telling.catch_up(&resync);
        let expected = [
            "agent_message_chunk turn_x-0 \"ß\"",
            "tool_call_update turn_x-1 failed",
            "agent_thought_chunk turn_x-trouble-1 \"Note: t\\n\"",
        ];
        assert_eq!(lines(&telling.take()), expected);
        telling.catch_up(&resync);
        assert_eq!(telling.take(), Vec::<Value>::new());
        assert_eq!(telling.heard(), 9);
    }

    #[test]
    fn a_question_is_open_until_the_first_answer() {
        let mut telling = telling();
        let [first, second] = [(); 2].map(|()| PermissionId::generate());
        let asked = |permission: PermissionId| TurnEventBody::PermissionAsked {
            item: Some(1),
            permission,
            tool: "shell".to_owned(),
            subject: "rm x".to_owned(),
            options: Vec::new(),
            timeout_ms: None,
        };
        let answered = |permission: PermissionId, by: &str| TurnEventBody::PermissionAnswered {
            permission,
            answer: PermissionAnswer::Deny,
            by: by.to_owned(),
        };
        hear(
            &mut telling,
            1,
            [called(1), asked(first), asked(second), answered(first, "ann")],
        );
        assert_eq!(telling.open_questions(5), [], "what comes may answer them");
        let open: Vec<PermissionId> = telling
            .open_questions(4)
            .iter()
            .map(|open| open.permission)
            .collect();
        assert_eq!(open, [second]);
        assert_eq!(
            telling.open_questions(4)[0].call,
            json!({ "toolCallId": "turn_x-1", "title": "shell: rm x", "kind": "execute" })
        );
        let expected = Answered {
            permission: first,
            answer: PermissionAnswer::Deny,
            by: "ann".to_owned(),
        };
        assert_eq!(telling.take_answered(), [expected]);
        hear(&mut telling, 5, [answered(first, "bob"), asked(first)]);
        assert_eq!(
            (telling.take_answered().len(), telling.open_questions(6).len()),
            (0, 1)
        );
    }
}
