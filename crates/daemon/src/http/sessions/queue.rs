//! Queued prompts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{EditQueued, SessionId, TurnId, TurnList};

use super::look::shown;
use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::{Id, Ids};
use crate::http::problem::Problem;
use crate::sessions::{edit_queued, wire};

/// Lists the queued turns, in the order they will run.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/queue", operation_id = "list_queue", tag = "sessions",
    responses((status = 200, description = "The turns.", body = TurnList), problems::Read),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
) -> Result<Json<TurnList>, Problem> {
    let turns = app.sessions.queue(id).await?;
    Ok(Json(TurnList {
        turns: turns.iter().map(wire::turn_to_wire).collect(),
        next: None,
    }))
}

/// Changes a queued prompt, or its position in the queue.
///
/// Its attachments stay the same.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/queue/{turn}", operation_id = "edit_queued", tag = "sessions",
    request_body = EditQueued,
    responses((status = 200, description = "The turn.", body = protocol::Turn), problems::EditQueued),
)]
pub(crate) async fn edit(
    State(app): State<Arc<App>>,
    Ids(session, turn): Ids<SessionId, TurnId>,
    caller: Caller,
    body::Json(request): body::Json<EditQueued>,
) -> Result<Json<protocol::Turn>, Problem> {
    let turn = edit_queued(&app, session, turn, request, caller.by()).await?;
    Ok(Json(wire::turn_to_wire(&turn)))
}

/// Removes a queued prompt.
///
/// Its turn becomes `cancelled`.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/queue/{turn}", operation_id = "remove_queued", tag = "sessions",
    responses((status = 200, description = "The session.", body = protocol::Session), problems::ChangeQueued),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Ids(session, turn): Ids<SessionId, TurnId>,
    caller: Caller,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.remove_queued(session, turn, caller.by()).await?;
    Ok(shown(&app, &session))
}
