//! Response bodies with the output of a job.
//!
//! Each fetches the next item when the connection has room for it, so a slow reader delays only itself, and costs no
//! more than one piece.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use eventlog::{Bookmark, Sequence};
use jobs::{FollowEnd, OutputItem, OutputTail, State, WaitingFor};
use kernel::Deadline;
use protocol::{JobChannel, JobId, JobWaiting, Resync};
use serde::Serialize;
use serde_json::json;

use crate::app::App;
use crate::http::pieces::{Piece, Source};
use crate::http::sse::{HEARTBEAT, NOTHING_NEW, named, numbered};
use crate::jobs::wire::{ended, piece_to_wire, waiting_text};

/// How often to check what a followed job waits for. A wait that is shorter than this isn't reported.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The output of a job as events, until the job has ended.
pub(super) struct FollowedOutput {
    app: Arc<App>,
    tail: OutputTail,
    channel: Option<JobChannel>,
    /// Whether the reader has received the `end` event.
    has_ended: bool,
    id: JobId,
    waits: Waits,
}

/// Whether the job waits for something before it can run, and whether the reader knows.
enum Waits {
    /// It may; this was reported last.
    Perhaps(Option<WaitingFor>),
    /// It has started.
    NoLonger,
}

impl FollowedOutput {
    pub(super) fn new(app: Arc<App>, id: JobId, tail: OutputTail, channel: Option<JobChannel>) -> Self {
        Self {
            tail,
            app,
            channel,
            has_ended: false,
            id,
            waits: Waits::Perhaps(None),
        }
    }

    /// Checks what the job waits for; returns an event if the reader doesn't know it yet.
    async fn waiting(&mut self) -> Option<String> {
        let Waits::Perhaps(told) = &mut self.waits else {
            return None;
        };
        // If the log can't be read, the tail reports it.
        let job = self.app.jobs.get(self.id).await.ok().flatten()?;
        if !matches!(job.record.state, State::Queued { .. }) {
            self.waits = Waits::NoLonger;
            return None;
        }
        let waiting = self.app.jobs.waiting_for(self.id).await?;
        // The numbers in it change all the time.
        let kind = std::mem::discriminant::<WaitingFor>;
        if told.as_ref().map(kind) == Some(kind(&waiting)) {
            return None;
        }
        let text = waiting_text(&waiting, job.record.facts.lane.as_ref(), self.app.jobs.now());
        *told = Some(waiting);
        Some(named("waiting", &JobWaiting { waiting_for: text }))
    }

    /// An item as an event, if the reader wants it.
    fn event(&mut self, item: OutputItem) -> Option<String> {
        let event = match item {
            OutputItem::Piece(piece) if self.channel.is_none_or(|wanted| wanted == piece.channel) => {
                numbered(self.tail.place(), "output", &piece_to_wire(&piece))
            }
            OutputItem::Progress { progress, .. } if self.channel.is_none() => {
                numbered(self.tail.place(), "progress", &progress)
            }
            OutputItem::Piece(_) | OutputItem::Progress { .. } => return None,
            OutputItem::Resync { after } => {
                numbered(Bookmark::from(after), "resync", &Resync { after: after.get() })
            }
            OutputItem::End(job, output) => {
                self.has_ended = true;
                named(
                    "end",
                    &ended(&self.app.jobs, &self.app.durable.machines, &job, &output),
                )
            }
        };
        Some(event)
    }
}

impl Source for FollowedOutput {
    async fn next(mut self) -> Piece<Self> {
        if self.has_ended {
            return None;
        }
        let mut silence = std::pin::pin!(Deadline::after(&self.app.clock, HEARTBEAT).passed());
        loop {
            let look_again = match self.waits {
                Waits::Perhaps(_) if self.tail.is_queued() => Deadline::after(&self.app.clock, LOOK_AGAIN),
                Waits::Perhaps(_) | Waits::NoLonger => Deadline::never(),
            };
            let item = tokio::select! {
                biased;
                // First, so that a filtered stream still gets heartbeats while another channel is busy.
                () = &mut silence => return Some((self, Ok(Bytes::from_static(NOTHING_NEW.as_bytes())))),
                item = self.tail.next() => item,
                () = look_again.passed() => match self.waiting().await {
                    Some(event) => return Some((self, Ok(Bytes::from(event)))),
                    None => continue,
                },
            };
            match item {
                Ok(item) => {
                    if let Some(text) = self.event(item) {
                        return Some((self, Ok(Bytes::from(text))));
                    }
                }
                // The daemon is draining. The end of the stream makes the reader reconnect to the next one.
                Err(FollowEnd::Cancelled(_)) => return None,
                Err(error) => {
                    tracing::warn!(%error, "a stream ends because the output of a job cannot be read");
                    return Some((self, Err(io::Error::other(error))));
                }
            }
        }
    }
}

/// The format of stored output, and the channels to include.
#[derive(Debug)]
pub(crate) enum OutputForm {
    /// Newline-delimited JSON.
    Lines(Vec<JobChannel>),
    /// Only the bytes that were written.
    Bytes(Vec<JobChannel>),
}

/// The output of a job up to a point in time.
pub(crate) struct KeptOutput {
    tail: OutputTail,
    /// The last position that was read.
    at: Sequence,
    /// The last position to read.
    until: Sequence,
    form: OutputForm,
}

impl KeptOutput {
    pub(crate) fn new(tail: OutputTail, after: Sequence, until: Sequence, form: OutputForm) -> Self {
        Self {
            tail,
            at: after,
            until,
            form,
        }
    }

    /// The bytes of an item, if it has any in this form.
    fn bytes(&self, item: &OutputItem) -> Option<Bytes> {
        match (item, &self.form) {
            (OutputItem::Piece(piece), OutputForm::Lines(wanted)) if wanted.contains(&piece.channel) => {
                Some(line(&piece_to_wire(piece)))
            }
            (OutputItem::Piece(piece), OutputForm::Bytes(wanted)) if wanted.contains(&piece.channel) => {
                Some(Bytes::copy_from_slice(&piece.bytes))
            }
            (OutputItem::Resync { after }, OutputForm::Lines(_)) => {
                Some(line(&json!({ "resync": Resync { after: after.get() } })))
            }
            _ => None,
        }
    }
}

impl Source for KeptOutput {
    async fn next(mut self) -> Piece<Self> {
        while self.at < self.until {
            let item = match self.tail.next().await {
                Ok(item) => item,
                // Abort the connection, so that the client doesn't take a partial output for the whole.
                Err(end) => return Some((self, Err(io::Error::other(end)))),
            };
            self.at = match &item {
                OutputItem::Piece(piece) => piece.sequence,
                OutputItem::Progress { sequence, .. } => *sequence,
                OutputItem::Resync { after } => *after,
                OutputItem::End(..) => return None,
            };
            // Output that arrived after the request isn't part of it.
            if self.at > self.until {
                return None;
            }
            if let Some(bytes) = self.bytes(&item) {
                return Some((self, Ok(bytes)));
            }
        }
        None
    }
}

fn line(object: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(object).unwrap_or_default();
    line.push(b'\n');
    Bytes::from(line)
}
