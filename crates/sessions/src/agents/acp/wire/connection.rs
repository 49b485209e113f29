//! The two directions of a connection to an agent, each a task, and the queues between them and the turn.

use kernel::{Deadline, Scope};
use process::Tasks;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::lines::{LINE_LIMIT_BYTES, Lines};
use super::message::{self, Message, RequestId, RpcError};

/// How many messages from an agent may wait for the turn. Each may be as long as a line; when the queue is full, the
/// agent blocks on its pipe.
const INCOMING_LIMIT: usize = 16;
/// How many messages may wait for an agent that doesn't read. Further senders wait.
const OUTGOING_LIMIT: usize = 64;
/// How many lines that aren't messages are skipped. Some programs print a greeting or a warning; one that keeps
/// printing isn't an agent.
const STRAY_LIMIT: usize = 16;
/// How much of a stray line to show.
const STRAY_SHOWN_CHARS: usize = 200;

/// Why an agent sends nothing more.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(in super::super) enum Closed {
    /// It has closed its output: most likely it exited.
    #[error("it closed its output")]
    EndOfFile,
    /// It writes something other than messages.
    #[error("it does not speak the protocol; it wrote {0:?}")]
    Garbage(String),
    #[error("it sent a message of more than {LINE_LIMIT_BYTES} bytes")]
    TooLong,
    #[error("its output cannot be read: {0}")]
    Broken(String),
}

/// What comes from an agent, in order.
#[derive(Debug)]
pub(in super::super) enum Incoming {
    Message(Message),
    /// Always the last item.
    Closed(Closed),
}

#[derive(Debug)]
enum Outgoing {
    Line(Vec<u8>),
    /// Closes the agent's input, which tells it to exit.
    Close,
}

/// Sends messages to an agent. Clones share the same queue.
#[derive(Clone, Debug)]
pub(in super::super) struct Outbox {
    outgoing: mpsc::Sender<Outgoing>,
}

impl Outbox {
    /// Sends a notification. If the agent has exited, it's dropped without harm.
    pub(in super::super) async fn notify(&self, method: &str, params: &Value) {
        self.send(message::notification(method, params)).await;
    }

    pub(in super::super) async fn answer(&self, id: &RequestId, result: Result<Value, RpcError>) {
        self.send(message::answer(id, result)).await;
    }

    async fn send(&self, line: Vec<u8>) {
        self.outgoing.send(Outgoing::Line(line)).await.ok();
    }

    /// Closes the agent's input, unless the agent has stopped reading.
    pub(in super::super) fn close(&self) {
        self.outgoing.try_send(Outgoing::Close).ok();
    }
}

/// A connection to an agent.
#[derive(Debug)]
pub(in super::super) struct Connection {
    incoming: mpsc::Receiver<Incoming>,
    outbox: Outbox,
    next_id: u64,
}

/// Why one of our requests failed.
#[derive(Debug)]
pub(in super::super) enum CallEnd {
    /// The agent returned an error.
    Refused(RpcError),
    /// The agent will send nothing more.
    Closed(Closed),
    /// The agent didn't answer in time.
    TimedOut,
    /// The turn should stop.
    Cancelled,
}

impl Connection {
    /// Starts a connection.
    pub(in super::super) fn start<R, W>(reader: R, writer: W, tasks: &Tasks) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (to_turn, incoming) = mpsc::channel(INCOMING_LIMIT);
        let (outgoing, to_agent) = mpsc::channel(OUTGOING_LIMIT);
        tasks.spawn("acp-reader", read(reader, to_turn));
        tasks.spawn("acp-writer", write(writer, to_agent));
        Self {
            incoming,
            outbox: Outbox { outgoing },
            next_id: 1,
        }
    }

    pub(in super::super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Sends a request and returns its id. The answer arrives among the other messages, with this id.
    pub(in super::super) async fn request(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.outbox.send(message::request(id, method, params)).await;
        id
    }

    /// The next message. *Cancel safety*: may be dropped at any time; nothing is lost.
    pub(in super::super) async fn next(&mut self) -> Incoming {
        match self.incoming.recv().await {
            Some(incoming) => incoming,
            None => Incoming::Closed(Closed::EndOfFile),
        }
    }

    /// Sends a request and waits for the answer while no prompt is running. Notifications meanwhile are ignored,
    /// such as the conversation that an agent replays when it resumes a session; requests are refused.
    pub(in super::super) async fn call(
        &mut self,
        method: &str,
        params: &Value,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<Value, CallEnd> {
        let ours = self.request(method, params).await;
        loop {
            let incoming = tokio::select! {
                biased;
                _ = scope.wait() => return Err(CallEnd::Cancelled),
                incoming = self.next() => incoming,
                () = deadline.clone().passed() => return Err(CallEnd::TimedOut),
            };
            match incoming {
                Incoming::Message(Message::Response { id, result }) if id == Some(ours) => {
                    return result.map_err(CallEnd::Refused);
                }
                Incoming::Message(Message::Request { id, .. }) => {
                    let not_now = RpcError::failed("no prompt is being answered now");
                    self.outbox.answer(&id, Err(not_now)).await;
                }
                Incoming::Message(_) => {}
                Incoming::Closed(closed) => return Err(CallEnd::Closed(closed)),
            }
        }
    }
}

async fn read<R: AsyncRead + Unpin>(reader: R, to_turn: mpsc::Sender<Incoming>) {
    let mut lines = Lines::new(reader);
    let mut stray = 0;
    let closed = loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => break Closed::EndOfFile,
            Err(closed) => break closed,
        };
        match Message::parse(&line) {
            Some(message) => {
                if to_turn.send(Incoming::Message(message)).await.is_err() {
                    return;
                }
            }
            None => {
                let text = String::from_utf8_lossy(&line);
                let shown: String = text.trim().chars().take(STRAY_SHOWN_CHARS).collect();
                tracing::debug!(line = %shown, "an agent wrote something that is no message");
                stray += 1;
                if stray > STRAY_LIMIT {
                    break Closed::Garbage(shown);
                }
            }
        }
    };
    to_turn.send(Incoming::Closed(closed)).await.ok();
}

async fn write<W: AsyncWrite + Unpin>(mut writer: W, mut to_agent: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing::Line(line)) = to_agent.recv().await {
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
