//! Prompts that wait.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{EditQueued, TurnList};
use sessions::{Actor as By, Prompt, SessionError, Turn};

use super::problems::session_problem_of;
use super::{TheSession, TheTurn};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::problem::Problem;
use crate::sessions::wire;

/// The turns that wait, in the order in which they will run.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/queue", operation_id = "list_queue", tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 200, description = "The turns.", body = TurnList),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
) -> Result<Json<TurnList>, Problem> {
    match app.conversations.queue(id).await {
        Ok(turns) => Ok(Json(TurnList {
            turns: turns.iter().map(wire::turn_to_wire).collect(),
            next: None,
        })),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}

/// Changes a prompt that waits, or its place in the queue. What came with it stays.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/queue/{turn}", operation_id = "edit_queued", tag = "sessions",
    request_body = EditQueued,
    params(
        ("id" = String, Path, description = "The id of the session."),
        ("turn" = String, Path, description = "The id of the turn."),
    ),
    responses(
        (status = 200, description = "The turn.", body = protocol::Turn),
        (status = 404, description = "`session_not_found` or `turn_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`turn_not_queued`, with the turn as `current`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_prompt` or `invalid_request`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn edit(
    State(app): State<Arc<App>>,
    turn: TheTurn,
    Actor(actor): Actor,
    body::Json(request): body::Json<EditQueued>,
) -> Result<Json<protocol::Turn>, Problem> {
    match change(&app, turn, request, actor.into()).await {
        Ok(turn) => Ok(Json(wire::turn_to_wire(&turn))),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}

async fn change(
    app: &App,
    TheTurn(session, id): TheTurn,
    request: EditQueued,
    by: By,
) -> Result<Turn, SessionError> {
    let mut turn = app.conversations.turn(id).await?;
    if turn.record.session != session {
        return Err(SessionError::TurnNotFound(id));
    }
    if let Some(text) = request.prompt {
        let prompt = Prompt {
            text,
            attachments: turn.record.prompt.attachments,
        };
        turn = app
            .conversations
            .edit_queued(session, id, prompt, Arc::clone(&by))
            .await?;
    }
    if let Some(place) = request.place {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        app.conversations.move_queued(session, id, place, by).await?;
        turn = app.conversations.turn(id).await?;
    }
    Ok(turn)
}

/// Takes a prompt away that waits. Its turn is `cancelled`.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/queue/{turn}", operation_id = "remove_queued", tag = "sessions",
    params(
        ("id" = String, Path, description = "The id of the session."),
        ("turn" = String, Path, description = "The id of the turn."),
    ),
    responses(
        (status = 200, description = "The session.", body = protocol::Session),
        (status = 404, description = "`session_not_found` or `turn_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`turn_not_queued`, with the turn as `current`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    TheTurn(session, turn): TheTurn,
    Actor(actor): Actor,
) -> Result<Json<protocol::Session>, Problem> {
    match app.conversations.remove_queued(session, turn, actor.into()).await {
        Ok(session) => Ok(Json(wire::shown(
            &app.conversations,
            &app.durable.machines,
            &session,
        ))),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}
