//! Server-sent events: a tail of the log as a response body.
//!
//! The body asks the tail for the next event when the connection has room for it. So a slow reader delays only itself
//! and costs one page of events; a reader that disconnects is dropped with its connection; and a reader that blocks a
//! write for too long is cut off like any other client. A stream without events has no pending write, so it may stay
//! open as long as the client reads its heartbeats.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use eventlog::{Event, Tail, TailEnd, TailItem};
use http::header::CONTENT_TYPE;
use kernel::{Clock, Deadline};
use protocol::{ErrorCode, Resync};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::pieces::{Piece, Source, body_of};
use super::problem::Problem;
use super::refusals::families;
use crate::app::App;

families! {
    /// A stream is opened.
    OpenStream = [StreamLimitReached];
}

pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// How long a stream may be silent. A reader that hears nothing for several times as long can assume that it is dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a browser waits before it reconnects, in milliseconds: as long as a daemon takes to restart.
const OPENING: &str = "retry: 1000\n\n";

/// The heartbeat of a silent stream. Readers ignore it.
pub(super) const NOTHING_NEW: &str = ": nothing new\n\n";

/// Responds with a stream of the events in a tail. `tell` renders one event.
pub(super) fn answer(app: &App, tail: Tail, tell: fn(&Event) -> String) -> Result<Response, Problem> {
    let events = Events {
        tail,
        tell,
        clock: Arc::clone(&app.clock),
    };
    Ok(stream_of(take_place(app)?, events))
}

/// Takes a permit for a stream. The stream returns it when it is dropped.
pub(crate) fn take_place(app: &App) -> Result<OwnedSemaphorePermit, Problem> {
    Arc::clone(&app.streams)
        .try_acquire_owned()
        .map_err(|error| match error {
            TryAcquireError::NoPermits => Problem::new(
                ErrorCode::StreamLimitReached,
                "As many streams are open as there is room for.",
            ),
            TryAcquireError::Closed => Problem::internal(error),
        })
}

/// Responds with a stream: first the reconnect delay, then the pieces of the source.
pub(super) fn stream_of(place: OwnedSemaphorePermit, source: impl Source) -> Response {
    let stream = Stream {
        is_open: false,
        source,
        _place: place,
    };
    ([(CONTENT_TYPE, EVENT_STREAM)], body_of(stream)).into_response()
}

/// A stream that holds a permit.
struct Stream<S> {
    is_open: bool,
    source: S,
    _place: OwnedSemaphorePermit,
}

impl<S: Source> Source for Stream<S> {
    async fn next(mut self) -> Piece<Self> {
        if !self.is_open {
            self.is_open = true;
            return Some((self, Ok(Bytes::from_static(OPENING.as_bytes()))));
        }
        let (source, bytes) = self.source.next().await?;
        Some((Self { source, ..self }, bytes))
    }
}

/// The events in a tail of the log.
struct Events {
    tail: Tail,
    tell: fn(&Event) -> String,
    clock: Arc<dyn Clock>,
}

impl Source for Events {
    async fn next(mut self) -> Piece<Self> {
        let silence = Deadline::after(&self.clock, HEARTBEAT).passed();
        let text = tokio::select! {
            biased;
            item = self.tail.next() => match item {
                Ok(TailItem::Event(event)) => (self.tell)(&event),
                Ok(TailItem::Resync { after }) => {
                    let after = after.get();
                    numbered(after, "resync", &Resync { after })
                }
                // The daemon is draining. The end of the stream makes the reader reconnect to the next one.
                Err(TailEnd::Cancelled(_)) => return None,
                Err(TailEnd::Log(error)) => {
                    tracing::warn!(%error, "a stream ends because the log cannot be read");
                    return Some((self, Err(io::Error::other(error))));
                }
            },
            () = silence => NOTHING_NEW.to_owned(),
        };
        Some((self, Ok(Bytes::from(text))))
    }
}

/// An event with an id, from which a reader can resume.
pub(super) fn numbered(id: impl Display, name: &str, data: &impl Serialize) -> String {
    format!("id: {id}\n{}", named(name, data))
}

/// An event without an id.
pub(super) fn named(name: &str, data: &impl Serialize) -> String {
    // A struct of strings and numbers always serializes, and compact JSON is a single line of data.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
