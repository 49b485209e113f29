//! The history of a breaker: page by page, or as a stream that goes on as long as somebody reads.

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
use super::log_problem::read_failed;
use super::problem::Problem;
use super::query::{Query, checked_limit};
use super::sse::{self, EVENT_STREAM};
use crate::app::App;
use crate::durable::{BreakerHistory, event_to_wire};

/// How many events are in a page, unless the caller says so.
const USUAL_LIMIT: u32 = 100;
/// How many events are in a page at most. One has about two hundred bytes.
const MOST: u32 = 1000;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What may be asked of a history.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    after: Option<u64>,
    limit: Option<u32>,
}

/// What was done to a breaker by hand, oldest first.
///
/// With `Accept: text/event-stream` it is a stream of server-sent events: what is there, then what comes. The id of an
/// event is its sequence number, its name is what was done, its data is a `BreakerEvent`. An event `resync` says that
/// events were dropped which the reader has not seen. The stream ends when the daemon does; a reader that comes back
/// with `Last-Event-ID` misses nothing and sees nothing twice.
#[utoipa::path(
    get, path = "/v1/breakers/{name}/events", operation_id = "list_breaker_events", tag = "breakers",
    params(
        ("name" = String, Path, description = "The name, percent-encoded."),
        ("after" = Option<u64>, Query, description = "Only events after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out. A stream has no limit."),
        ("Last-Event-ID" = Option<u64>, Header, description = "For a stream: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The events.", content(
            (BreakerEventList = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 500, description = "`log_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    name: BreakerName,
    Query(parameters): Query<Parameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let history = BreakerHistory::of(app.durable.holder, name.as_str()).map_err(Problem::internal)?;
    let after = parameters.after.unwrap_or_default();
    if wants_stream(&headers) {
        let after = last_event_id(&headers)?.unwrap_or(Sequence::from_u64(after).into());
        let tail = app.durable.log.tail(&history.stream, after, &app.life.scope());
        return sse::answer(&app, tail, told);
    }
    let limit = checked_limit(parameters.limit, USUAL_LIMIT, MOST)?;
    let past = history
        .after(&app.durable.log, after, limit)
        .await
        .map_err(read_failed)?;
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

/// Where a reader goes on that comes back.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<Bookmark>, Problem> {
    let id = headers
        .get(LAST_EVENT_ID)
        .map(|id| id.to_str().unwrap_or_default());
    id.map(|id| bookmark("Last-Event-ID", id)).transpose()
}

/// The id of an event, as a reader brings it back.
pub(super) fn bookmark(field: &str, id: &str) -> Result<Bookmark, Problem> {
    id.parse().map_err(|_| {
        let id = id.escape_debug();
        let detail = format!("`{field}` is `{id}`, and must be a number or the id of an event.");
        Problem::new(ErrorCode::InvalidQuery, detail).in_field(field)
    })
}
