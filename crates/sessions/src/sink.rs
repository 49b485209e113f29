//! Where an agent puts what it says and does. One task per turn writes it into the turn's stream, in order.
//!
//! Whatever has gathered while a commit was under way goes into the next one. So a fast agent costs few commits, a slow disk
//! holds it up (the queue is bounded), and a reader sees everything in the order in which it was sent.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::{PlanId, ToolState, Usage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::event::TurnEvent;

/// How many events may wait for the log. An agent that is faster waits.
const QUEUE_EVENTS: usize = 1024;
/// The most bytes in one delta. Longer ones are cut into several, so that a reader gets them piece by piece.
const DELTA_LIMIT_BYTES: usize = 32 * 1024;

/// The turn takes nothing more: it was taken away from this daemon, or the log failed. The turn's scope is cancelled then.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the turn takes nothing more")]
pub struct SinkError;

/// What is sent to the task that writes.
#[derive(Debug)]
pub(crate) enum Entry {
    /// An event.
    Event(TurnEvent),
    /// Tells when everything before it is in the log.
    Flush(oneshot::Sender<()>),
    /// There is nothing more.
    Close,
}

/// Takes what an agent says and does. Clones are the same sink.
#[derive(Clone, Debug)]
pub struct Sink {
    entries: mpsc::Sender<Entry>,
    /// Guards the numbers of items; held to take one.
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
    /// A sink, and where its entries come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Entry>) {
        let (entries, receiver) = mpsc::channel(QUEUE_EVENTS);
        let items = Arc::default();
        (Self { entries, items }, receiver)
    }

    /// The agent says something. It goes on with the text before, if nothing else began in between.
    /// *Cancel safety*: dropped half-way, a part of it may be missing; so it is with all that send.
    pub async fn text(&self, delta: &str) -> Result<(), SinkError> {
        self.grow(Growing::Text, delta).await
    }

    /// The agent thinks something.
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

    /// The agent is about to call a tool. `call` is its own name for it; may be empty.
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

    /// What the turn has used besides what was told before.
    pub async fn used(&self, more: Usage) -> Result<(), SinkError> {
        let total = self.item(|items| {
            items.usage = items.usage.plus(more);
            items.usage
        });
        self.send(TurnEvent::Usage { total }).await
    }

    /// What the turn has used so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.item(|items| items.usage)
    }

    /// Something went wrong, and the turn goes on all the same.
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

    /// Waits until everything that was sent is in the log. *Cancel safety*: may be dropped at any time.
    pub async fn flush(&self) -> Result<(), SinkError> {
        let (done, is_done) = oneshot::channel();
        self.entries
            .send(Entry::Flush(done))
            .await
            .map_err(|_| SinkError)?;
        is_done.await.map_err(|_| SinkError)
    }

    /// Takes nothing more. What was sent before is written.
    pub(crate) async fn close(&self) {
        // If nobody listens any more, it is closed already.
        drop(self.entries.send(Entry::Close).await);
    }

    /// Says which plan the turn works in.
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

/// Takes what there is to say of one call of a tool. Clones are the same call.
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

    /// More of the arguments, as the agent writes them.
    pub async fn arguments(&self, delta: &str) -> Result<(), SinkError> {
        for piece in pieces(delta) {
            let (item, delta) = (self.item, piece.to_owned());
            self.sink.send(TurnEvent::ToolArguments { item, delta }).await?;
        }
        Ok(())
    }

    /// The arguments are complete and good, and the tool runs.
    pub async fn started(&self, title: impl Into<String>, arguments: Value) -> Result<(), SinkError> {
        self.sink
            .send(TurnEvent::ToolStarted {
                item: self.item,
                title: title.into(),
                arguments,
            })
            .await
    }

    /// More of what the tool says.
    pub async fn output(&self, delta: &str) -> Result<(), SinkError> {
        for piece in pieces(delta) {
            let (item, delta) = (self.item, piece.to_owned());
            self.sink.send(TurnEvent::ToolOutput { item, delta }).await?;
        }
        Ok(())
    }

    /// The tool is done.
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

/// A text in pieces of a bounded size; none if it is empty.
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
