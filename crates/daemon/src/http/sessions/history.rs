//! What happens to a session: page by page, or as a stream that goes on as long as somebody reads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use eventlog::{Event, Sequence};
use http::HeaderMap;
use protocol::SessionHistory;
use serde::Deserialize;

use super::TheSession;
use super::problems::session_problem_of;
use crate::app::App;
use crate::http::events::{last_event_id, wants_stream};
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit};
use crate::http::sse;
use crate::sessions::wire::moment_to_wire;

/// How many moments are in a page, unless the caller says so.
const USUAL_LIMIT: u32 = 100;
/// How many moments are in a page at most. One has about two hundred bytes.
const MOST: u32 = 1000;

/// What may be asked of a history.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryParameters {
    after: Option<u64>,
    limit: Option<u32>,
}

/// What has happened to a session, oldest first: prompts, beginnings and ends of turns, wishes, questions, answers.
///
/// With `Accept: text/event-stream` it is a stream of server-sent events: what is there, then what comes. The id of an event
/// is its place, its name is what happened, its data is a `SessionMoment`. An event `resync` says that moments were dropped
/// which the reader has not seen. The stream ends when the daemon does; a reader that comes back with `Last-Event-ID` misses
/// nothing and sees nothing twice.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/events", operation_id = "follow_session", tag = "sessions",
    params(
        ("id" = String, Path, description = "The id of the session."),
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out. A stream has no limit."),
        ("Last-Event-ID" = Option<u64>, Header, description = "For a stream: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The moments of its life.", content(
            (SessionHistory = "application/json"),
            (String = "text/event-stream"),
        )),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Query(parameters): Query<HistoryParameters>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = parameters.after.unwrap_or_default();
    if let Err(error) = app.conversations.get(id).await {
        return Err(session_problem_of(&app, error).await);
    }
    if wants_stream(&headers) {
        let after = Sequence::from_u64(after);
        let after = last_event_id(&headers)?.map_or(after, |seen| seen.sequence);
        let scope = app.life.scope();
        return match app.conversations.follow(id, after, &scope) {
            Ok(tail) => sse::answer(&app, tail, told),
            Err(error) => Err(session_problem_of(&app, error).await),
        };
    }
    let limit = checked_limit(parameters.limit, USUAL_LIMIT, MOST)?;
    let page = app
        .conversations
        .happenings(id, Sequence::from_u64(after), limit)
        .await;
    match page {
        Ok(page) => Ok(Json(SessionHistory {
            moments: page.events.iter().map(moment_to_wire).collect(),
        })
        .into_response()),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}

fn told(event: &Event) -> String {
    let moment = moment_to_wire(event);
    sse::numbered(moment.sequence, &moment.event, &moment)
}
