//! What a reader of a turn has in the end: its events, folded together.
//!
//! The fold is pure. It can be stopped anywhere, written down, and gone on with: [`Transcript`] carries the numbers of its
//! items along, so that whoever has taken over one as a snapshot knows where the next piece of text goes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{PermissionOption, ToolState, TurnEvent};
use crate::permissions::Answer;
use crate::turn::{TurnError, TurnState, Usage};

#[cfg(test)]
mod tests;

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
