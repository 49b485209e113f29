//! The history of a session: page by page, or as a stream that continues as long as the client reads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use eventlog::Event;
use http::HeaderMap;
use protocol::{SessionHistory, SessionId};

use super::problems;
use crate::app::App;
use crate::http::events::{Part, last_event_id, wants_stream};
use crate::http::ids::Id;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::sse::{self, OpenStream};
use crate::sessions::wire::moment_to_wire;

/// Lists the history of a session, oldest first: prompts, starts and ends of turns, stop requests, permission
/// requests and answers.
///
/// With `Accept: text/event-stream`, the response is a stream of server-sent events: first the existing ones,
/// then new ones as they happen. The id of an event is its sequence number, its name is what happened, and
/// its data is a `SessionMoment`. A `resync` event means that events the reader hasn't seen were dropped. The
/// stream ends when the daemon stops. Reconnect with `Last-Event-ID` to continue without missing or repeating
/// events.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/events", operation_id = "follow_session", tag = "sessions",
    params(
        ("after" = Option<u64>, Query, description = "Only what came after this place; from the start if it is left out."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000,
         description = "How many at most; 100 if it is left out. A stream has no limit."),
        ("Last-Event-ID" = Option<u64>, Header, description = "For a stream: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The moments of its life.",
         content((SessionHistory = "application/json"), (String = "text/event-stream"))),
        problems::Read,
        OpenStream,
    ),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    Query(part): Query<Part>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    app.sessions.get(id).await?;
    if wants_stream(&headers) {
        let after = last_event_id(&headers)?.map_or(part.after(), |seen| seen.sequence);
        let tail = app.sessions.follow(id, after, &app.life.scope())?;
        return sse::answer(&app, tail, told);
    }
    let page = app.sessions.happenings(id, part.after(), part.limit()?).await?;
    let moments = page.events.iter().map(moment_to_wire).collect();
    Ok(Json(SessionHistory { moments }).into_response())
}

fn told(event: &Event) -> String {
    let moment = moment_to_wire(event);
    sse::numbered(moment.sequence, &moment.event, &moment)
}
