//! Receives the output and actions of an agent. One task per turn writes them to the turn's stream, in order.
//!
//! Everything that arrives during a commit goes into the next one. So a fast agent causes few commits, a slow disk slows the
//! agent down (the queue is bounded), and readers see everything in the order in which it was sent.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::{PlanId, ToolState, Usage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::event::TurnEvent;

/// How many events may wait for the log. Beyond that, the agent waits.
const QUEUE_EVENTS: usize = 1024;
/// The size limit for one delta. Longer ones are split, so that readers get them piece by piece.
const DELTA_LIMIT_BYTES: usize = 32 * 1024;

/// The turn accepts no more events, because another daemon has ended it or the log failed. Then its scope is cancelled.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the turn accepts no more events")]
pub struct SinkError;

#[derive(Debug)]
pub(crate) enum Entry {
    /// An event.
    Event(TurnEvent),
    /// Reports when everything before it is in the log.
    Flush(oneshot::Sender<()>),
    /// Nothing more follows.
    Close,
}

/// Receives the output and actions of an agent. Clones refer to the same sink.
#[derive(Clone, Debug)]
pub struct Sink {
    entries: mpsc::Sender<Entry>,
    /// Guards the numbers of items.
    items: Arc<Mutex<Items>>,
}

#[derive(Debug, Default)]
struct Items {
    next: u64,
    /// The text that can still grow.
    open: Option<(Growing, u64)>,
    plan: Option<PlanId>,
    usage: Usage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Growing {
    Text,
    Reasoning,
}

impl Sink {
    /// Creates a sink, and the receiver of its entries.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Entry>) {
        let (entries, receiver) = mpsc::channel(QUEUE_EVENTS);
        let items = Arc::default();
        (Self { entries, items }, receiver)
    }

    /// Adds text. It continues the previous text, unless another item started in between. *Cancel safety*: if the
    /// future is dropped, part of the text may be missing. The same holds for all methods that send.
    pub async fn text(&self, delta: &str) -> Result<(), SinkError> {
        self.grow(Growing::Text, delta).await
    }

    /// Adds reasoning.
    pub async fn reasoning(&self, delta: &str) -> Result<(), SinkError> {
        self.grow(Growing::Reasoning, delta).await
    }

    async fn grow(&self, growing: Growing, delta: &str) -> Result<(), SinkError> {
        if delta.is_empty() {
            return Ok(());
        }
        let item = self.item(|items| match items.open {
            Some((open, item)) if open == growing => item,
            _ => {
                let item = items.take();
                items.open = Some((growing, item));
                item
            }
        });
        for piece in pieces(delta) {
            let delta = piece.to_owned();
            self.send(match growing {
                Growing::Text => TurnEvent::Text { item, delta },
                Growing::Reasoning => TurnEvent::Reasoning { item, delta },
            })
            .await?;
        }
        Ok(())
    }

    /// Starts a tool call. `call` is the agent's own id for it, or empty.
    pub async fn tool(&self, tool: &str, call: &str) -> Result<ToolSink, SinkError> {
        let item = self.item(|items| {
            items.open = None;
            items.take()
        });
        self.send(TurnEvent::ToolCall {
            item,
            call: call.to_owned(),
            tool: tool.to_owned(),
        })
        .await?;
        Ok(ToolSink {
            sink: self.clone(),
            item,
        })
    }

    /// Adds usage.
    pub async fn used(&self, more: Usage) -> Result<(), SinkError> {
        let total = self.item(|items| {
            items.usage = items.usage.plus(more);
            items.usage
        });
        self.send(TurnEvent::Usage { total }).await
    }

    /// The usage of the turn so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.item(|items| items.usage)
    }

    /// Reports a problem that doesn't end the turn.
    pub async fn trouble(&self, code: &str, text: impl Into<String>) -> Result<(), SinkError> {
        self.send(TurnEvent::Trouble {
            code: code.to_owned(),
            text: text.into(),
        })
        .await
    }

    /// Sends any event.
    pub async fn send(&self, event: TurnEvent) -> Result<(), SinkError> {
        self.entries
            .send(Entry::Event(event))
            .await
            .map_err(|_| SinkError)
    }

    /// Waits until everything that was sent is in the log. *Cancel safety*: the future may be dropped at any time.
    pub async fn flush(&self) -> Result<(), SinkError> {
        let (done, is_done) = oneshot::channel();
        self.entries
            .send(Entry::Flush(done))
            .await
            .map_err(|_| SinkError)?;
        is_done.await.map_err(|_| SinkError)
    }

    /// Accepts no more events. What was sent before is written.
    pub(crate) async fn close(&self) {
        // If the receiver is gone, the sink is already closed.
        drop(self.entries.send(Entry::Close).await);
    }

    /// Records the plan that the turn works in.
    pub(crate) fn set_plan(&self, plan: PlanId) {
        self.item(|items| items.plan = Some(plan));
    }

    pub(crate) fn plan(&self) -> Option<PlanId> {
        self.item(|items| items.plan)
    }

    fn item<T>(&self, take: impl FnOnce(&mut Items) -> T) -> T {
        take(&mut self.items.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Items {
    fn take(&mut self) -> u64 {
        let item = self.next;
        self.next += 1;
        item
    }
}

/// Receives the events of one tool call. Clones refer to the same call.
#[derive(Clone, Debug)]
pub struct ToolSink {
    sink: Sink,
    item: u64,
}

impl ToolSink {
    /// The item.
    #[must_use]
    pub fn item(&self) -> u64 {
        self.item
    }

    /// Adds to the arguments, as the agent writes them.
    pub async fn arguments(&self, delta: &str) -> Result<(), SinkError> {
        for piece in pieces(delta) {
            let (item, delta) = (self.item, piece.to_owned());
            self.sink.send(TurnEvent::ToolArguments { item, delta }).await?;
        }
        Ok(())
    }

    /// The arguments are complete and valid, and the tool starts.
    pub async fn started(&self, title: impl Into<String>, arguments: Value) -> Result<(), SinkError> {
        self.sink
            .send(TurnEvent::ToolStarted {
                item: self.item,
                title: title.into(),
                arguments,
            })
            .await
    }

    /// Adds to the output of the tool.
    pub async fn output(&self, delta: &str) -> Result<(), SinkError> {
        for piece in pieces(delta) {
            let (item, delta) = (self.item, piece.to_owned());
            self.sink.send(TurnEvent::ToolOutput { item, delta }).await?;
        }
        Ok(())
    }

    /// The tool has ended.
    pub async fn ended(
        &self,
        state: ToolState,
        answer: impl Into<String>,
        full: Option<String>,
    ) -> Result<(), SinkError> {
        self.sink
            .send(TurnEvent::ToolEnded {
                item: self.item,
                state,
                answer: answer.into(),
                full,
            })
            .await
    }
}

/// Splits a text into pieces of limited size.
fn pieces(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let end = text.floor_char_boundary(DELTA_LIMIT_BYTES.min(text.len()));
        let (piece, rest) = text.split_at(end);
        text = rest;
        Some(piece)
    })
}
