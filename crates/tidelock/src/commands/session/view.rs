//! The visible state of a turn: shows new events after those already shown.
//!
//! It remembers how much of each item was shown. So a snapshot, which stands for compacted events, adds only what is
//! missing, and nothing is shown twice.

use std::collections::BTreeMap;

use protocol::{
    PermissionAnswer, PermissionId, PermissionOption, TurnEvent, TurnEventBody, TurnItem, TurnState,
    TurnTranscript, Usage,
};

use super::answer::answer_word;
use super::page::{Page, Stream};
use super::tools::{Ended, ShownTool};
use crate::output::{Palette, Tone};
use crate::printable::cut;

const PROMPT_CHARACTERS: usize = 300;
const SUBJECT_CHARACTERS: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompts {
    Known,
    Shown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) permission: PermissionId,
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug)]
enum ShownItem {
    /// The number of characters of text or thought already shown, and the page's mark after them.
    Text {
        characters: usize,
        mark: u64,
    },
    Tool(ShownTool),
}

#[derive(Debug)]
pub(super) struct TurnView {
    pub(super) page: Page,
    palette: Palette,
    columns: usize,
    prompts: Prompts,
    items: BTreeMap<u64, ShownItem>,
    questions: Vec<(Question, Option<PermissionAnswer>)>,
    troubles: usize,
    pub(super) usage: Usage,
    was_queued: bool,
}

impl TurnView {
    pub(super) fn new(page: Page, palette: Palette, columns: usize, prompts: Prompts) -> TurnView {
        TurnView {
            page,
            palette,
            columns,
            prompts,
            items: BTreeMap::new(),
            questions: Vec::new(),
            troubles: 0,
            usage: Usage::default(),
            was_queued: false,
        }
    }

    /// The unanswered questions.
    pub(super) fn open_questions(&self) -> impl Iterator<Item = &Question> {
        let open = self.questions.iter().filter(|(_, answer)| answer.is_none());
        open.map(|(question, _)| question)
    }

    pub(super) fn event(&mut self, event: &TurnEvent) {
        let at_ms = event.at_ms;
        match &event.data {
            TurnEventBody::Accepted { prompt, .. } => {
                if self.prompts == Prompts::Shown {
                    self.prompt(&prompt.text);
                }
            }
            TurnEventBody::Edited { prompt } => {
                let text = format!("> (changed) {}", cut(&prompt.text, PROMPT_CHARACTERS));
                self.page.line(Stream::Err, &text, Tone::Quiet);
            }
            TurnEventBody::State { state, .. } => self.state(*state),
            TurnEventBody::Text { item, delta } => self.text(*item, delta),
            TurnEventBody::Reasoning { item, delta } => self.reasoning(*item, delta),
            TurnEventBody::ToolCall { item, tool, .. } => {
                self.tool(*item, tool);
            }
            TurnEventBody::ToolStarted { item, title, .. } => {
                let columns = self.columns;
                let (told, page) = self.tool(*item, "tool");
                told.start(page, columns, (title, Some(at_ms)));
            }
            TurnEventBody::ToolOutput { item, delta } => {
                let columns = self.columns;
                let (told, page) = self.tool(*item, "tool");
                told.output(page, columns, delta);
            }
            TurnEventBody::ToolEnded {
                item,
                state,
                answer,
                full,
            } => {
                let columns = self.columns;
                let ended = Ended {
                    state: *state,
                    answer,
                    full: full.as_deref(),
                    at_ms: Some(at_ms),
                };
                let (told, page) = self.tool(*item, "tool");
                told.end(page, columns, &ended);
            }
            TurnEventBody::PermissionAsked {
                permission,
                tool,
                subject,
                options,
                ..
            } => self.asked(Question {
                permission: *permission,
                tool: tool.clone(),
                subject: subject.clone(),
                options: options.clone(),
            }),
            TurnEventBody::PermissionAnswered {
                permission,
                answer,
                by,
            } => self.answered(*permission, *answer, by),
            TurnEventBody::Usage { total } => self.usage = *total,
            TurnEventBody::Trouble { text, .. } => self.trouble(text),
            // The end of the turn shows the plan's changes. The arguments of a tool are in its title.
            TurnEventBody::PlanChanged { .. }
            | TurnEventBody::ToolArguments { .. }
            | TurnEventBody::Unknown => {}
        }
    }

    fn prompt(&mut self, text: &str) {
        let text = format!("> {}", cut(text, PROMPT_CHARACTERS));
        self.page.line(Stream::Err, &text, Tone::Quiet);
    }

    fn state(&mut self, state: TurnState) {
        match state {
            TurnState::Queued => {
                self.was_queued = true;
                let text = "another turn is running; waiting for it to end";
                self.page.line(Stream::Err, text, Tone::Quiet);
            }
            TurnState::Running if self.was_queued => {
                self.page.line(Stream::Err, "running now", Tone::Quiet);
            }
            // How it ended is shown together with its result.
            _ => {}
        }
    }

    fn text(&mut self, item: u64, delta: &str) {
        let page = &mut self.page;
        let is_new = !self.items.contains_key(&item);
        if is_new {
            page.fresh(Stream::Out);
        } else {
            page.after_the_other(Stream::Out);
        }
        page.put(Stream::Out, delta, Tone::Plain);
        self.count(item, delta);
    }

    fn reasoning(&mut self, item: u64, delta: &str) {
        let page = &mut self.page;
        match self.items.get(&item) {
            None => {
                page.fresh(Stream::Err);
                // Without colors, it needs another way to stand out.
                if self.palette == Palette::Plain {
                    page.put(Stream::Err, "(thinking) ", Tone::Plain);
                }
            }
            Some(ShownItem::Text { mark, .. }) if *mark != page.mark() => page.fresh(Stream::Err),
            Some(_) => {}
        }
        page.put(Stream::Err, delta, Tone::Quiet);
        self.count(item, delta);
    }

    fn count(&mut self, item: u64, delta: &str) {
        let now = self.page.mark();
        let told = self.items.entry(item).or_insert(ShownItem::Text {
            characters: 0,
            mark: now,
        });
        if let ShownItem::Text { characters, mark } = told {
            *characters += delta.chars().count();
            *mark = now;
        }
    }

    fn tool(&mut self, item: u64, name: &str) -> (&mut ShownTool, &mut Page) {
        let told = self
            .items
            .entry(item)
            .or_insert_with(|| ShownItem::Tool(ShownTool::new(name)));
        if !matches!(told, ShownItem::Tool(_)) {
            // An item never changes its kind; if it does anyway, treat it as another one.
            *told = ShownItem::Tool(ShownTool::new(name));
        }
        match told {
            ShownItem::Tool(tool) => (tool, &mut self.page),
            ShownItem::Text { .. } => unreachable!("it was made a tool just now"),
        }
    }

    fn asked(&mut self, question: Question) {
        let is_known = |(known, _): &(Question, _)| known.permission == question.permission;
        if self.questions.iter().any(is_known) {
            return;
        }
        let subject = cut(&question.subject, SUBJECT_CHARACTERS);
        let text = match question.tool.as_str() {
            "ask" | "" => format!("? {subject}"),
            tool => format!("? {tool} wants to do this: {subject}"),
        };
        self.page.line(Stream::Err, &text, Tone::Warning);
        self.questions.push((question, None));
    }

    fn answered(&mut self, permission: PermissionId, answer: PermissionAnswer, by: &str) {
        let known = self.questions.iter_mut();
        let Some((_, told)) = known
            .filter(|(_, told)| told.is_none())
            .find(|(question, _)| question.permission == permission)
        else {
            return;
        };
        *told = Some(answer);
        let who = if by.is_empty() {
            "nobody answered in time".to_owned()
        } else {
            format!("by {}", cut(by, PROMPT_CHARACTERS))
        };
        let text = format!("  answered: {} ({who})", answer_word(answer));
        self.page.line(Stream::Err, &text, Tone::Quiet);
    }

    fn trouble(&mut self, text: &str) {
        self.troubles += 1;
        let text = format!("note: {}", cut(text, SUBJECT_CHARACTERS));
        self.page.line(Stream::Err, &text, Tone::Warning);
    }

    /// Processes a snapshot in place of events: shows only what was not shown yet.
    pub(super) fn catch_up(&mut self, transcript: &TurnTranscript) {
        let mut troubles = 0;
        // Items of old snapshots, which had no numbers, are treated as new.
        let unknown = u64::MAX / 2;
        for (place, item) in (0_u64..).zip(&transcript.items) {
            let number = usize::try_from(place).ok();
            let number = number.and_then(|place| transcript.numbers.get(place).copied().flatten());
            let number = number.unwrap_or(unknown + place);
            match item {
                TurnItem::Text { text } => {
                    let rest = self.untold(number, text);
                    if !rest.is_empty() {
                        self.text(number, &rest);
                    }
                }
                TurnItem::Reasoning { text } => {
                    let rest = self.untold(number, text);
                    if !rest.is_empty() {
                        self.reasoning(number, &rest);
                    }
                }
                TurnItem::Tool {
                    tool,
                    title,
                    output,
                    state,
                    answer,
                    full,
                    ..
                } => {
                    let columns = self.columns;
                    let (told, page) = self.tool(number, tool);
                    if !title.is_empty() {
                        told.start(page, columns, (title, None));
                    }
                    told.output_so_far(page, columns, output);
                    if let Some(state) = state {
                        let ended = Ended {
                            state: *state,
                            answer: answer.as_deref().unwrap_or_default(),
                            full: full.as_deref(),
                            at_ms: None,
                        };
                        told.end(page, columns, &ended);
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
                    self.asked(Question {
                        permission: *permission,
                        tool: tool.clone(),
                        subject: subject.clone(),
                        options: options.clone(),
                    });
                    if let Some(answer) = answer {
                        self.answered(*permission, *answer, by.as_deref().unwrap_or_default());
                    }
                }
                TurnItem::Trouble { text, .. } => {
                    troubles += 1;
                    if troubles > self.troubles {
                        self.trouble(text);
                    }
                }
                TurnItem::Plan { .. } => {}
            }
        }
        self.usage = transcript.usage;
    }

    /// The part of a text that was not shown yet.
    fn untold(&self, item: u64, text: &str) -> String {
        let told = match self.items.get(&item) {
            Some(ShownItem::Text { characters, .. }) => *characters,
            _ => 0,
        };
        text.chars().skip(told).collect()
    }
}

#[cfg(test)]
mod tests;
