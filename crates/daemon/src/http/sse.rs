//! Server-sent events: a tail of the log as the body of an answer.
//!
//! The body asks the tail for the next event when the connection has room for it. So a reader that is slow holds up
//! nobody but itself and costs a page of events; one that goes away is let go with its connection; and one that
//! leaves a write waiting for too long is cut off like everybody else. A stream on which nothing happens has no write
//! waiting, so it may stay for as long as its heartbeats are taken.

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

/// The media type of a stream.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// How long a stream may be silent. A reader that hears nothing for several times as long can assume it is dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a browser waits before it reconnects, in milliseconds: as long as a daemon takes to restart.
const OPENING: &str = "retry: 1000\n\n";

/// The heartbeat of a silent stream. Readers ignore it.
pub(super) const NOTHING_NEW: &str = ": nothing new\n\n";

/// Answers with a stream of what is in a tail. `tell` writes one event of it.
pub(super) fn answer(app: &App, tail: Tail, tell: fn(&Event) -> String) -> Result<Response, Problem> {
    let events = Events {
        tail,
        tell,
        clock: Arc::clone(&app.clock),
    };
    Ok(stream_of(take_place(app)?, events))
}

/// Takes one of the places for streams. The stream that holds it gives it back when it is dropped.
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

/// Answers with a stream: first how soon to reconnect, then what the source has.
pub(super) fn stream_of(place: OwnedSemaphorePermit, source: impl Source) -> Response {
    let stream = Stream {
        is_open: false,
        source,
        _place: place,
    };
    ([(CONTENT_TYPE, EVENT_STREAM)], body_of(stream)).into_response()
}

/// A stream that has one of the places.
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

/// What is in a tail of the log.
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

/// An event with an id, from which a reader can resume.
pub(super) fn numbered(id: impl Display, name: &str, data: &impl Serialize) -> String {
    format!("id: {id}\n{}", named(name, data))
}

/// An event without an id.
pub(super) fn named(name: &str, data: &impl Serialize) -> String {
    // A struct of strings and numbers always becomes JSON, and JSON in one line is one line of data.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
