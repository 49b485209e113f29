//! Lists and shows turns: their state, their events and their transcript.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use eventlog::{Event, Sequence};
use kernel::Deadline;
use protocol::{SessionId, TurnEventList, TurnId, TurnList, TurnTranscript};
use serde::Deserialize;
use sessions::{SessionError, Turn};

use super::{problems, stream};
use crate::app::App;
use crate::http::events::wants_stream;
use crate::http::ids::{Id, Ids, id_in};
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit, checked_wait};
use crate::http::sse::OpenStream;
use crate::sessions::wire;

/// How many turns are in a page by default.
const USUAL_LIMIT: u32 = 50;
/// How many turns can be in a page. Each includes its whole prompt.
const MOST: u32 = 200;
/// How many events are in a page by default.
const USUAL_EVENTS: u32 = 1000;
/// How many events can be in a page. A piece of a tool's output has up to 32 KiB.
const MOST_EVENTS: u32 = 10_000;
/// How many levels of forks to search for a turn. Each level is a session of its own.
const FORKS_LIMIT: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    before: Option<String>,
    limit: Option<u32>,
}

/// Lists the turns of a session that have started, newest first.
///
/// The list includes turns from before a fork.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/turns", operation_id = "list_turns", tag = "sessions",
    params(
        ("before" = Option<String>, Query,
         description = "Only those that began before this turn: `next` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200,
         description = "How many at most; 50 if it is left out."),
    ),
    responses((status = 200, description = "The turns.", body = TurnList), problems::ReadTurn),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    Query(parameters): Query<ListParameters>,
) -> Result<Json<TurnList>, Problem> {
    let before = parameters
        .before
        .as_deref()
        .map(|id| id_in("before", id))
        .transpose()?;
    let page = checked_limit(parameters.limit, USUAL_LIMIT, MOST)? as usize;
    // Fetch one more than requested to see whether there are more.
    let mut found = app.sessions.turns(id, before, page + 1).await?;
    let has_more = found.len() > page;
    found.truncate(page);
    let oldest = found.last().filter(|_| has_more);
    Ok(Json(TurnList {
        next: oldest.map(|turn| turn.id.to_string()),
        turns: wire::turns_shown(&app.jobs, &found).await?,
    }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowParameters {
    wait_ms: Option<u64>,
}

/// Returns a turn.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/turns/{turn}", operation_id = "show_turn", tag = "sessions",
    params(
        ("wait_ms" = Option<u64>, Query, maximum = 60000,
         description = "How long to wait for its end; not at all if it is left out."),
    ),
    responses((status = 200, description = "The turn as it is now.", body = protocol::Turn), problems::ReadTurn),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    turn: Ids<SessionId, TurnId>,
    Query(parameters): Query<ShowParameters>,
) -> Result<Json<protocol::Turn>, Problem> {
    let wait = checked_wait(parameters.wait_ms)?.unwrap_or_default();
    let mut found = find(&app, turn).await?;
    if !wait.is_zero() {
        let deadline = Deadline::after(&app.clock, wait);
        found = app.sessions.wait(found.id, &deadline, &app.life.scope()).await?;
    }
    Ok(Json(wire::turn_shown(&app.jobs, &found).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventParameters {
    after: Option<u64>,
    tail: Option<u64>,
    limit: Option<u32>,
}

/// Lists the events of a turn, oldest first.
///
/// With `Accept: text/event-stream`, the response is a stream of server-sent events: first the existing ones,
/// then new ones as they happen, until the turn is over. The id of an event is its position and when it was
/// written, its name is its kind, and its data is a `TurnEvent`. The data of a `resync` event is a
/// `TurnResync`: replace everything read so far with its snapshot. The last event is `end`, with a `TurnEnd`.
/// A stream that ends without it ended because the daemon stopped. Reconnect with `Last-Event-ID` to continue
/// without missing or repeating events.
///
/// The events of a turn that ended long ago may have been compacted: `first` is the first one that is still
/// stored, and the transcript has the complete content.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/turns/{turn}/events", operation_id = "follow_turn", tag = "sessions",
    params(
        ("after" = Option<String>, Query,
         description = "Only what came after this place, a number or, for a stream, the id of an event; from the start if it is left out."),
        ("tail" = Option<u64>, Query, description = "Only so many before the end, and what comes."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 10000,
         description = "How many at most; 1000 if it is left out. A stream has no limit."),
        ("Last-Event-ID" = Option<String>, Header, description = "For a stream: goes before `after`."),
    ),
    responses(
        (status = 200, description = "The events.",
         content((TurnEventList = "application/json"), (String = "text/event-stream"))),
        problems::ReadTurn,
        OpenStream,
    ),
)]
pub(crate) async fn events(State(app): State<Arc<App>>, request: Request) -> Response {
    if wants_stream(request.headers()) {
        return stream::follow.call(request, app).await;
    }
    let (mut parts, _) = request.into_parts();
    let turn = Ids::<SessionId, TurnId>::from_request_parts(&mut parts, &app).await;
    let query = Query::<EventParameters>::from_request_parts(&mut parts, &app).await;
    match (turn, query) {
        (Ok(turn), Ok(Query(parameters))) => page(&app, turn, &parameters).await.into_response(),
        (Err(problem), _) | (_, Err(problem)) => problem.into_response(),
    }
}

async fn page(
    app: &App,
    turn: Ids<SessionId, TurnId>,
    parameters: &EventParameters,
) -> Result<Json<TurnEventList>, Problem> {
    let limit = checked_limit(parameters.limit, USUAL_EVENTS, MOST_EVENTS)?;
    let found = find(app, turn).await?;
    let after = match (parameters.after, parameters.tail) {
        (Some(after), _) => after,
        (None, Some(tail)) => found.last_sequence.get().saturating_sub(tail),
        (None, None) => 0,
    };
    let page = app
        .sessions
        .turn_events(found.id, Sequence::from_u64(after), limit)
        .await?;
    Ok(Json(TurnEventList {
        events: page.events.iter().map(event_to_wire).collect(),
        first: page.first.get(),
        last: page.last.get(),
    }))
}

/// A stored event. If it can't be read, it is reported as unknown.
fn event_to_wire(event: &Event) -> protocol::TurnEvent {
    protocol::TurnEvent {
        sequence: event.sequence.get(),
        at_ms: event.at_ms,
        data: serde_json::from_slice(&event.body).unwrap_or(protocol::TurnEventBody::Unknown),
    }
}

/// Returns the transcript of a turn: the combined result of all of its events so far.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/turns/{turn}/transcript", operation_id = "show_transcript", tag = "sessions",
    responses((status = 200, description = "The transcript.", body = protocol::TurnTranscript), problems::ReadTurn),
)]
pub(crate) async fn transcript(
    State(app): State<Arc<App>>,
    turn: Ids<SessionId, TurnId>,
) -> Result<Json<TurnTranscript>, Problem> {
    let found = find(&app, turn).await?;
    let (_, transcript) = app.sessions.transcript(found.id).await?;
    Ok(Json(transcript))
}

/// A turn of a session, including turns from before it was forked.
///
/// *Cancel safety*: it only reads.
pub(super) async fn find(app: &App, Ids(session, id): Ids<SessionId, TurnId>) -> Result<Turn, SessionError> {
    let turn = app.sessions.turn(id).await;
    if let Ok(turn) = &turn
        && turn.record.session == session
    {
        return Ok(turn.clone());
    }
    // If the session doesn't exist, report that, whatever the turn is.
    let mut fork = app.sessions.get(session).await?.record.facts.forked_from;
    let turn = turn?;
    for _ in 0..FORKS_LIMIT {
        let Some(from) = fork else { break };
        if is_before(app, &turn, from.turn).await? {
            return Ok(turn);
        }
        fork = parent_of(app, from.session).await?;
    }
    Err(SessionError::TurnNotFound(id))
}

async fn is_before(app: &App, turn: &Turn, shared: TurnId) -> Result<bool, SessionError> {
    let shared = app.sessions.turn(shared).await?.record;
    Ok(turn.record.session == shared.session && turn.record.number <= shared.number)
}

async fn parent_of(app: &App, session: SessionId) -> Result<Option<sessions::Fork>, SessionError> {
    Ok(app.sessions.get(session).await?.record.facts.forked_from)
}
