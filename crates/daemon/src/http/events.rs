//! The history of a breaker: page by page, or as a stream that continues as long as the client reads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use eventlog::{Bookmark, Event, Sequence};
use http::HeaderMap;
use http::header::{ACCEPT, HeaderName};
use protocol::{BreakerEventList, ErrorCode};
use serde::Deserialize;

use super::breakers::BreakerName;
use super::log_problem::ReadLog;
use super::problem::Problem;
use super::query::{Query, checked_limit};
use super::refusals::families;
use super::sse::{self, EVENT_STREAM, OpenStream};
use crate::app::App;
use crate::durable::{BreakerHistory, event_to_wire};

families! {
    ReadEvents = [InvalidName] + ReadLog + OpenStream;
}

/// How many events are in a page by default.
const USUAL_LIMIT: u32 = 100;
/// How many events can be in a page. An event has about two hundred bytes.
const MOST: u32 = 1000;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The requested part of a history.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    after: Option<u64>,
    limit: Option<u32>,
}

impl Part {
    /// The position after which it starts.
    pub(super) fn after(&self) -> Sequence {
        Sequence::from_u64(self.after.unwrap_or_default())
    }

    /// The number of events to return.
    pub(super) fn limit(&self) -> Result<u32, Problem> {
        checked_limit(self.limit, USUAL_LIMIT, MOST)
    }
}

/// Lists manual changes to a breaker, oldest first.
///
/// With `Accept: text/event-stream`, the response is a stream of server-sent events: first the existing ones,
/// then new ones as they happen. The id of an event is its sequence number, its name is the change, and its
/// data is a `BreakerEvent`. A `resync` event means that events the reader hasn't seen were dropped. The
/// stream ends when the daemon stops. Reconnect with `Last-Event-ID` to continue without missing or repeating
/// events.
#[utoipa::path(
    get, path = "/v1/breakers/{name}/events", operation_id = "list_breaker_events", tag = "breakers",
    params(
        ("after" = Option<u64>, Query, description = "Only events after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out. A stream has no limit."),
        ("Last-Event-ID" = Option<u64>, Header, description = "For a stream: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The events.",
         content((BreakerEventList = "application/json"), (String = "text/event-stream"))),
        ReadEvents,
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    name: BreakerName,
    Query(part): Query<Part>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let history = BreakerHistory::of(app.durable.holder, name.as_str()).map_err(Problem::internal)?;
    if wants_stream(&headers) {
        let after = last_event_id(&headers)?.unwrap_or(part.after().into());
        let tail = app.durable.log.tail(&history.stream, after, &app.life.scope());
        return sse::answer(&app, tail, told);
    }
    let past = history
        .after(&app.durable.log, part.after().get(), part.limit()?)
        .await?;
    let list = BreakerEventList {
        events: past.events,
        first: past.first,
        last: past.last,
    };
    Ok(Json(list).into_response())
}

fn told(event: &Event) -> String {
    let event = event_to_wire(event);
    sse::numbered(event.sequence, &event.kind, &event)
}

pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|accept| accept.to_str().ok())
        .flat_map(|accept| accept.split(','))
        .any(|range| {
            let essence = range.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case(EVENT_STREAM)
        })
}

/// Where a reader that reconnects resumes.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<Bookmark>, Problem> {
    let id = headers
        .get(LAST_EVENT_ID)
        .map(|id| id.to_str().unwrap_or_default());
    id.map(|id| bookmark("Last-Event-ID", id)).transpose()
}

/// The id of an event, as a reader sends it back.
pub(super) fn bookmark(field: &str, id: &str) -> Result<Bookmark, Problem> {
    id.parse().map_err(|_| {
        let id = id.escape_debug();
        let detail = format!("`{field}` is `{id}`, and must be a number or the id of an event.");
        Problem::new(ErrorCode::InvalidQuery, detail).in_field(field)
    })
}
