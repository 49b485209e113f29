//! Lists and shows sessions.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use protocol::{AgentList, SessionId, SessionList};
use serde::Deserialize;
use sessions::{Session, SessionQuery};

use super::problems;
use crate::app::App;
use crate::http::blocking;
use crate::http::ids::{Id, id_of};
use crate::http::lists::{self, NEWEST};
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit};
use crate::http::sse::OpenStream;
use crate::sessions::wire;

/// How many sessions are in a page by default.
const USUAL_LIMIT: u32 = 50;
/// How many sessions can be in a page. A session has a few kilobytes.
const MOST: u32 = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    state: Option<protocol::SessionState>,
    directory: Option<String>,
    before: Option<String>,
    limit: Option<u32>,
}

/// Lists sessions, newest first.
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions",
    params(
        ("state" = Option<protocol::SessionState>, Query,
         description = "Only those in this state; all but those that were put away if it is left out."),
        ("directory" = Option<String>, Query, description = "Only those of this directory, and below."),
        ("before" = Option<String>, Query,
         description = "Only those that were opened before this session: `next` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500,
         description = "How many at most; 50 if it is left out."),
    ),
    responses((status = 200, description = "The sessions.", body = SessionList), problems::List),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Query<ListParameters>,
) -> Result<Json<SessionList>, Problem> {
    let before = parameters.before.as_deref().map(id_of).transpose();
    let directory = match parameters.directory {
        Some(directory) => Some(blocking(move || as_opened(directory)).await?),
        None => None,
    };
    let query = SessionQuery {
        state: parameters.state,
        directory,
        before: before.map_err(|problem| {
            Problem::new(protocol::ErrorCode::InvalidQuery, problem.detail()).in_field("before")
        })?,
        limit: checked_limit(parameters.limit, USUAL_LIMIT, MOST)?,
    };
    let list = wire::list(&app.sessions, &app.durable.machines, query).await?;
    Ok(Json(list))
}

/// Lists the agents, sorted by name, including what is missing for those that can't be used yet.
#[utoipa::path(
    get, path = "/v1/agents", operation_id = "list_agents", tag = "sessions",
    responses((status = 200, description = "The agents.", body = AgentList)),
)]
pub(crate) async fn agents(State(app): State<Arc<App>>) -> Json<AgentList> {
    Json(wire::agents_to_wire(&app.sessions))
}

/// Streams the list of newest sessions, now and after each change.
///
/// Each event is named `sessions`, and its data is a `SessionList` with the newest 50. The first event is
/// sent immediately. Several changes in a short time may be combined into one event. The stream ends when the
/// daemon stops.
#[utoipa::path(
    get, path = "/v1/sessions/events", operation_id = "follow_sessions", tag = "sessions",
    responses(
        (status = 200, description = "The sessions, again and again.", content((String = "text/event-stream"))),
        OpenStream,
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let moves = app.sessions.moves();
    lists::follow(app, "sessions", moves, |app| {
        let newest = SessionQuery {
            limit: NEWEST,
            ..SessionQuery::default()
        };
        Box::pin(wire::list(&app.sessions, &app.durable.machines, newest))
    })
}

/// A directory as sessions store it. One that no longer exists is matched by the given name. This blocks.
fn as_opened(directory: String) -> PathBuf {
    let path = PathBuf::from(directory);
    path.canonicalize().unwrap_or(path) // tidy: on a thread for such things
}

/// Returns a session.
#[utoipa::path(
    get, path = "/v1/sessions/{id}", operation_id = "show_session", tag = "sessions",
    responses((status = 200, description = "The session.", body = protocol::Session), problems::Read),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.get(id).await?;
    Ok(shown(&app, &session))
}

/// The response for a session.
pub(super) fn shown(app: &App, session: &Session) -> Json<protocol::Session> {
    Json(wire::shown(&app.sessions, &app.durable.machines, session))
}
