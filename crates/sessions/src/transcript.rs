//! What a reader of a turn has in the end: its events, folded together.
//!
//! The fold is pure. It can be stopped anywhere, written down, and gone on with: [`Transcript`] carries the numbers of its
//! items along, so that whoever has taken over one as a snapshot knows where the next piece of text goes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{PermissionOption, ToolState, TurnEvent};
use crate::permissions::Answer;
use crate::turn::{TurnError, TurnState, Usage};

/// A turn, as far as its events were folded together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// The items, in the order in which they began.
    pub items: Vec<Item>,
    /// The number that events have for the item of the same place; nothing for an item that has none.
    #[serde(default)]
    pub numbers: Vec<Option<u64>>,
    /// What was used.
    pub usage: Usage,
    /// How far the turn is; nothing before it was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TurnState>,
    /// Why it ended, if not well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A piece of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// What the agent says.
    Text {
        /// All of it.
        text: String,
    },
    /// What it thinks.
    Reasoning {
        /// All of it.
        text: String,
    },
    /// A call of a tool.
    Tool(Box<ToolItem>),
    /// A question to the user.
    Permission {
        /// Names it.
        permission: String,
        /// The tool.
        tool: String,
        /// What is to be done.
        subject: String,
        /// What can be answered.
        options: Vec<PermissionOption>,
        /// The answer; nothing while it is open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Answer>,
        /// Whose it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// What the plan came to.
    Plan {
        /// The plan.
        plan: String,
        /// Names what was in it then.
        fingerprint: String,
        /// How many files it changed.
        files: u64,
        /// The paths that were just changed.
        paths: Vec<String>,
    },
    /// Something went wrong, and the turn went on.
    Trouble {
        /// A stable name.
        code: String,
        /// In words.
        text: String,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolItem {
    /// The agent's own name for this call; may be empty.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What it is to do, in one line; empty until it runs.
    pub title: String,
    /// The arguments: as JSON when they are complete, as the text so far before that.
    pub arguments: Value,
    /// What it has said.
    pub output: String,
    /// How it ended; nothing while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ToolState>,
    /// What the agent was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Where all of it is, if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<String>,
}

impl Transcript {
    /// What an event changes. One that does not fit, or that is of an item that never began, changes nothing.
    pub fn apply(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Accepted { .. } => self.state = self.state.or(Some(TurnState::Queued)),
            TurnEvent::Edited { .. } => {}
            TurnEvent::State { state, error } => {
                self.state = Some(*state);
                self.error.clone_from(error);
            }
            TurnEvent::Text { item, delta } => self.say(*item, delta),
            TurnEvent::Reasoning { item, delta } => self.think(*item, delta),
            TurnEvent::ToolCall { item, call, tool } => self.call(*item, call, tool),
            TurnEvent::PermissionAsked {
                permission,
                tool,
                subject,
                options,
                ..
            } => self.push(
                None,
                Item::Permission {
                    permission: permission.to_string(),
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
            } => self.answer(&permission.to_string(), *answer, by),
            TurnEvent::PlanChanged {
                plan,
                fingerprint,
                files,
                paths,
                ..
            } => self.push(
                None,
                Item::Plan {
                    plan: plan.to_string(),
                    fingerprint: fingerprint.clone(),
                    files: *files,
                    paths: paths.clone(),
                },
            ),
            TurnEvent::Usage { total } => self.usage = *total,
            TurnEvent::Trouble { code, text } => self.push(
                None,
                Item::Trouble {
                    code: code.clone(),
                    text: text.clone(),
                },
            ),
            TurnEvent::ToolArguments { item, .. }
            | TurnEvent::ToolStarted { item, .. }
            | TurnEvent::ToolOutput { item, .. }
            | TurnEvent::ToolEnded { item, .. } => {
                if let Some(Item::Tool(tool)) = self.numbered(*item) {
                    tool.apply(event);
                }
            }
        }
    }

    /// What an event of the log changes. One of a kind that is not known here changes nothing.
    pub fn apply_stored(&mut self, event: &eventlog::Event) {
        if let Some(event) = TurnEvent::from_log(event) {
            self.apply(&event);
        }
    }

    /// The item of a number. Those that still grow are among the last.
    fn numbered(&mut self, number: u64) -> Option<&mut Item> {
        let place = self.numbers.iter().rposition(|known| *known == Some(number))?;
        self.items.get_mut(place)
    }

    fn push(&mut self, number: Option<u64>, item: Item) {
        // A snapshot of somebody who did not write numbers down has items without any.
        self.numbers.resize(self.items.len(), None);
        self.items.push(item);
        self.numbers.push(number);
    }

    fn say(&mut self, number: u64, delta: &str) {
        match self.numbered(number) {
            Some(Item::Text { text }) => text.push_str(delta),
            Some(_) => {}
            None => self.push(
                Some(number),
                Item::Text {
                    text: delta.to_owned(),
                },
            ),
        }
    }

    fn think(&mut self, number: u64, delta: &str) {
        match self.numbered(number) {
            Some(Item::Reasoning { text }) => text.push_str(delta),
            Some(_) => {}
            None => self.push(
                Some(number),
                Item::Reasoning {
                    text: delta.to_owned(),
                },
            ),
        }
    }

    fn call(&mut self, number: u64, call: &str, tool: &str) {
        if self.numbered(number).is_some() {
            return;
        }
        let tool = ToolItem {
            call: call.to_owned(),
            tool: tool.to_owned(),
            title: String::new(),
            arguments: Value::String(String::new()),
            output: String::new(),
            state: None,
            answer: None,
            full: None,
        };
        self.push(Some(number), Item::Tool(Box::new(tool)));
    }

    /// The first answer counts.
    fn answer(&mut self, asked: &str, given: Answer, whose: &str) {
        let questions = self.items.iter_mut().rev();
        for item in questions {
            if let Item::Permission {
                permission,
                answer: answer @ None,
                by,
                ..
            } = item
                && permission == asked
            {
                *answer = Some(given);
                *by = Some(whose.to_owned());
                return;
            }
        }
    }
}

impl ToolItem {
    fn apply(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::ToolArguments { delta, .. } => {
                if let Value::String(so_far) = &mut self.arguments {
                    so_far.push_str(delta);
                }
            }
            TurnEvent::ToolStarted { title, arguments, .. } => {
                self.title.clone_from(title);
                self.arguments.clone_from(arguments);
            }
            TurnEvent::ToolOutput { delta, .. } => self.output.push_str(delta),
            TurnEvent::ToolEnded {
                state, answer, full, ..
            } => {
                self.state = Some(*state);
                self.answer = Some(answer.clone());
                self.full.clone_from(full);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{PermissionId, PlanId};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::prompt::{AgentChoice, Prompt};

    fn folded(events: &[TurnEvent]) -> Transcript {
        let mut transcript = Transcript::default();
        events.iter().for_each(|event| transcript.apply(event));
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
                timeout_ms: 1,
            },
            output(3, "a"),
            arguments(2, "\"ls\"}"),
            answered(Answer::Allow, "me"),
            answered(Answer::Deny, "late"),
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
        let mut transcript = Transcript::default();
        for body in [
            r#"{"kind":"text","item":0,"delta":"a","since":"version 2"}"#,
            r#"{"kind":"hologram","item":0,"delta":"b"}"#,
            r#"{"kind":"text","item":0}"#,
            "nothing",
        ] {
            transcript.apply_stored(&stored(body));
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
                timeout_ms: 0,
            }),
            (permissions, delta).prop_map(|(permission, by)| TurnEvent::PermissionAnswered {
                permission,
                answer: Answer::Deny,
                by,
            }),
            delta.prop_map(|text| TurnEvent::Trouble {
                code: String::new(),
                text,
            }),
        ]
    }

    proptest! {
        /// Whoever goes on from a snapshot ends up with what whoever was there from the start has.
        #[test]
        fn a_fold_can_be_written_down_anywhere(
            events in proptest::collection::vec(any_event(), 0..60),
            at in any::<proptest::sample::Index>(),
        ) {
            let at = at.index(events.len() + 1);
            let snapshot = serde_json::to_string(&folded(&events[..at])).unwrap();
            let mut resumed: Transcript = serde_json::from_str(&snapshot).unwrap();
            events[at..].iter().for_each(|event| resumed.apply(event));
            prop_assert_eq!(resumed, folded(&events));
        }
    }
}
