//! Server-sent events: a tail of the log as the body of an answer.
//!
//! The body asks the tail for the next event when the connection has room for it. So a reader that is slow holds up
//! nobody but itself and costs a page of events; one that goes away is let go with its connection; and one that
//! leaves a write waiting for too long is cut off like everybody else. A stream on which nothing happens has no write
//! waiting, so it may stay for as long as its heartbeats are taken.

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
use crate::app::App;

/// The media type of a stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// How long a stream may be silent. A reader that hears nothing for some times as long can give it up for dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// What a browser waits before it comes back, in milliseconds: as long as a daemon takes to start afresh.
pub(super) const OPENING: &str = "retry: 1000\n\n";

/// What is sent when nothing has happened for that long. Readers pass over it.
pub(super) const NOTHING_NEW: &str = ": nothing new\n\n";

/// Answers with a stream of what is in a tail. `tell` writes one event of it.
pub(super) fn answer(app: &App, tail: Tail, tell: fn(&Event) -> String) -> Result<Response, Problem> {
    let events = Events {
        opening: Some(OPENING),
        tail,
        tell,
        clock: Arc::clone(&app.clock),
        _place: take_place(app)?,
    };
    Ok(stream_of(events))
}

/// One of the places for streams. It is given back with the stream that holds it.
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

/// The answer whose body comes from a source of events.
pub(super) fn stream_of(source: impl Source) -> Response {
    ([(CONTENT_TYPE, EVENT_STREAM)], body_of(source)).into_response()
}

/// Where the pieces of a stream come from.
struct Events {
    opening: Option<&'static str>,
    tail: Tail,
    tell: fn(&Event) -> String,
    clock: Arc<dyn Clock>,
    _place: OwnedSemaphorePermit,
}

impl Source for Events {
    async fn next(mut self) -> Piece<Self> {
        if let Some(opening) = self.opening.take() {
            return Some((self, Ok(Bytes::from_static(opening.as_bytes()))));
        }
        let silence = Deadline::after(&self.clock, HEARTBEAT).passed();
        let text = tokio::select! {
            biased;
            item = self.tail.next() => match item {
                Ok(TailItem::Event(event)) => (self.tell)(&event),
                Ok(TailItem::Resync { after }) => {
                    let after = after.get();
                    numbered(after, "resync", &Resync { after })
                }
                // The daemon drains. The end of the stream tells the reader to come back to the next one.
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

/// An event that has a place, so that a reader can come back to it.
pub(super) fn numbered(id: u64, name: &str, data: &impl Serialize) -> String {
    format!("id: {id}\n{}", named(name, data))
}

/// An event that stands for itself.
pub(super) fn named(name: &str, data: &impl Serialize) -> String {
    // A struct of strings and numbers always becomes JSON, and JSON in one line is one line of data.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
