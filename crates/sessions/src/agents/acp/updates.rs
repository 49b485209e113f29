//! Turns an agent's updates during a prompt into events of the turn.

use std::collections::HashMap;
use std::sync::Arc;

use protocol::ToolState;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::files::Roots;
use super::permission::{Wish, subject_of, tool_of};
use super::terminals::Terminals;
use super::wire::{Chunk, PlanUpdate, ToolContent, ToolStatus, ToolUpdate, text_of};
use crate::sink::{Sink, SinkError, ToolSink};

/// How many tool calls of a turn are tracked. Updates about further ones are ignored.
const TOOLS_LIMIT: usize = 10_000;
/// The most bytes of a tool's answer to include with its end; its output has all of it.
const ANSWER_LIMIT_BYTES: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Updates {
    sink: Sink,
    terminals: Arc<Terminals>,
    roots: Roots,
    tools: HashMap<String, Tool>,
}

/// A tool call, as far as it is known.
#[derive(Debug)]
struct Tool {
    sink: ToolSink,
    phase: Phase,
    /// Everything known so far.
    known: ToolUpdate,
    /// The content that was already sent.
    sent: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// What it's about to do may still change.
    Called,
    Started,
    Ended,
}

impl Updates {
    pub(super) fn new(sink: Sink, terminals: Arc<Terminals>, roots: Roots) -> Self {
        Self {
            sink,
            terminals,
            roots,
            tools: HashMap::new(),
        }
    }

    /// Handles a `session/update`. Updates that can't be parsed or have an unknown kind are ignored.
    pub(super) async fn take(&mut self, mut update: Value) -> Result<(), SinkError> {
        let kind = update.get("sessionUpdate").and_then(Value::as_str);
        let kind = kind.unwrap_or_default().to_owned();
        match kind.as_str() {
            "agent_message_chunk" => match parsed::<Chunk>(&kind, update) {
                Some(chunk) => self.sink.text(&text_of(&chunk.content)).await,
                None => Ok(()),
            },
            "agent_thought_chunk" => match parsed::<Chunk>(&kind, update) {
                Some(chunk) => self.sink.reasoning(&text_of(&chunk.content)).await,
                None => Ok(()),
            },
            "tool_call" | "tool_call_update" => {
                // One unknown item in a list must not hide the rest.
                if let Some(Value::Array(content)) = update.get_mut("content") {
                    content.retain(|item| serde_json::from_value::<ToolContent>(item.clone()).is_ok());
                }
                match parsed::<ToolUpdate>(&kind, update) {
                    Some(update) => self.tool(update).await.map(drop),
                    None => Ok(()),
                }
            }
            "plan" => match parsed::<PlanUpdate>(&kind, update) {
                Some(plan) => self.sink.reasoning(&plan_in_words(&plan)).await,
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Builds the question that an agent asks about a tool call.
    pub(super) async fn wish(&mut self, update: ToolUpdate) -> Result<Wish, SinkError> {
        let id = update.tool_call_id.clone();
        let item = self.tool(update).await?;
        let Some(tool) = self.tools.get(&id) else {
            return Ok(Wish {
                item,
                tool: "tool".to_owned(),
                subject: id,
            });
        };
        let name = tool_of(tool.known.kind.as_deref());
        let subject = subject_of(name, tool.title(), &tool.known);
        // Rules name paths relative to the root of the workspace.
        let below = self.roots.below(&subject).ok();
        let below = below
            .and_then(|path| path.to_str())
            .filter(|path| !path.is_empty());
        Ok(Wish {
            item,
            tool: name.to_owned(),
            subject: below.map_or(subject.clone(), str::to_owned),
        })
    }

    /// Ends all calls that are still open when the turn is over.
    pub(super) async fn finish(&mut self, state: ToolState) -> Result<(), SinkError> {
        for tool in self.tools.values_mut().filter(|tool| tool.phase != Phase::Ended) {
            tool.start().await?;
            tool.end(state, "the agent said no more of it").await?;
        }
        Ok(())
    }

    async fn tool(&mut self, update: ToolUpdate) -> Result<Option<u64>, SinkError> {
        if !self.tools.contains_key(&update.tool_call_id) {
            if self.tools.len() >= TOOLS_LIMIT {
                return Ok(None);
            }
            let name = tool_of(update.kind.as_deref());
            let sink = self.sink.tool(name, &update.tool_call_id).await?;
            let tool = Tool {
                sink,
                phase: Phase::Called,
                known: ToolUpdate::default(),
                sent: String::new(),
            };
            self.tools.insert(update.tool_call_id.clone(), tool);
        }
        let Some(tool) = self.tools.get_mut(&update.tool_call_id) else {
            return Ok(None);
        };
        let item = Some(tool.sink.item());
        if tool.phase == Phase::Ended {
            return Ok(item);
        }
        tool.learn(update);
        let status = tool.known.status.unwrap_or_default();
        // Until then, its arguments may be incomplete.
        if status != ToolStatus::Pending {
            tool.start().await?;
        }
        tool.send_content(&self.terminals).await?;
        match status {
            ToolStatus::Completed => tool.finish(ToolState::Done).await?,
            ToolStatus::Failed => tool.finish(ToolState::Failed).await?,
            ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Other => {}
        }
        Ok(item)
    }
}

impl Tool {
    fn title(&self) -> &str {
        self.known.title.as_deref().unwrap_or(&self.known.tool_call_id)
    }

    /// Merges an update, which contains only what is new.
    fn learn(&mut self, update: ToolUpdate) {
        let known = &mut self.known;
        known.tool_call_id = update.tool_call_id;
        known.title = update.title.or(known.title.take());
        known.kind = update.kind.or(known.kind.take());
        known.status = update.status.or(known.status.take());
        known.content = update.content.or(known.content.take());
        known.locations = update.locations.or(known.locations.take());
        known.raw_input = update.raw_input.or(known.raw_input.take());
        known.raw_output = update.raw_output.or(known.raw_output.take());
    }

    async fn start(&mut self) -> Result<(), SinkError> {
        if self.phase != Phase::Called {
            return Ok(());
        }
        self.phase = Phase::Started;
        let arguments = self.known.raw_input.clone().unwrap_or_else(|| json!({}));
        self.sink.started(self.title(), arguments).await
    }

    /// Sends the new part of its content. The agent sends all of it each time.
    async fn send_content(&mut self, terminals: &Terminals) -> Result<(), SinkError> {
        let content = self.known.content.iter().flatten();
        let text = content.map(|item| in_words(item, terminals)).collect::<String>();
        let new = match text.strip_prefix(self.sent.as_str()) {
            Some(new) => new,
            None => &text,
        };
        if !new.is_empty() {
            self.sink.output(new).await?;
            self.sent = text;
        }
        Ok(())
    }

    async fn finish(&mut self, state: ToolState) -> Result<(), SinkError> {
        let answer = match (&self.known.raw_output, self.sent.is_empty()) {
            (Some(Value::String(text)), true) => text.clone(),
            (Some(output), true) => output.to_string(),
            (_, _) => self.sent.clone(),
        };
        let end = answer.floor_char_boundary(ANSWER_LIMIT_BYTES);
        self.end(state, &answer[..end]).await
    }

    async fn end(&mut self, state: ToolState, answer: &str) -> Result<(), SinkError> {
        self.phase = Phase::Ended;
        self.sink.ended(state, answer, None).await
    }
}

fn in_words(content: &ToolContent, terminals: &Terminals) -> String {
    let line = |text: String| match text.ends_with('\n') || text.is_empty() {
        true => text,
        false => format!("{text}\n"),
    };
    match content {
        ToolContent::Content { content } => line(text_of(content)),
        ToolContent::Diff { path } => format!("changed {path}\n"),
        ToolContent::Terminal { terminal_id } => line(terminals.text(terminal_id).unwrap_or_default()),
        ToolContent::Other => String::new(),
    }
}

fn plan_in_words(plan: &PlanUpdate) -> String {
    let mut text = "\nThe plan:\n".to_owned();
    for entry in &plan.entries {
        let mark = match entry.status {
            ToolStatus::Completed => "x",
            ToolStatus::InProgress => ">",
            _ => " ",
        };
        text.push_str(&format!("[{mark}] {}\n", entry.content));
    }
    text
}

fn parsed<T: DeserializeOwned>(kind: &str, update: Value) -> Option<T> {
    serde_json::from_value(update)
        .inspect_err(|error| tracing::debug!(%error, kind, "an agent told something that cannot be read"))
        .ok()
}
