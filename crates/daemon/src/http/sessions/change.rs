//! Sessions are forked, renamed, given another agent, put away, and removed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{AgentChoice, ArchiveSession, ForkSession, RenameSession};
use sessions::{Session, SessionError};

use super::problems::session_problem_of;
use super::{TheSession, turn_id};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;
use crate::sessions::wire;

/// A new session that goes on from a turn of this one. Both have the turns up to there; what comes later is each one's own.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/fork", operation_id = "fork_session", tag = "sessions",
    request_body = Option<ForkSession>,
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 201, description = "The new session.", body = protocol::Session),
        (status = 404, description = "`session_not_found` or `turn_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`turn_active`, with the session as `current`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_prompt`: no turn is over yet", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn fork(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ForkSession>,
) -> Result<(StatusCode, Json<protocol::Session>), Problem> {
    if request.session.is_some_and(|session| session != id.to_string()) {
        return Err(invalid("session", "is not the one that is forked"));
    }
    let turn = request.turn.as_deref().map(turn_id).transpose();
    let turn = turn.map_err(|problem| problem.in_field("turn"))?;
    let forked = app.conversations.fork(id, turn, actor.into()).await;
    Ok((StatusCode::CREATED, answer(&app, forked).await?))
}

/// Gives a session another title.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/rename", operation_id = "rename_session", tag = "sessions",
    request_body = RenameSession,
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 200, description = "The session.", body = protocol::Session),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_prompt`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
    body::Json(request): body::Json<RenameSession>,
) -> Result<Json<protocol::Session>, Problem> {
    let renamed = app.conversations.rename(id, request.title, actor.into()).await;
    answer(&app, renamed).await
}

/// Gives a session another agent. It is asked from the next prompt on.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/agent", operation_id = "set_session_agent", tag = "sessions",
    request_body = AgentChoice,
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 200, description = "The session.", body = protocol::Session),
        (status = 404, description = "`session_not_found` or `agent_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_prompt`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 424, description = "`agent_not_ready`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn set_agent(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
    body::Json(request): body::Json<AgentChoice>,
) -> Result<Json<protocol::Session>, Problem> {
    let set = app.conversations.set_agent(id, request, actor.into()).await;
    answer(&app, set).await
}

/// Puts a session away, or takes it back. One that is put away takes no prompts, and is not in the list.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/archive", operation_id = "archive_session", tag = "sessions",
    request_body = ArchiveSession,
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 200, description = "The session.", body = protocol::Session),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`session_in_use`, with the session as `current`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn archive(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
    body::Json(request): body::Json<ArchiveSession>,
) -> Result<Json<protocol::Session>, Problem> {
    let archived = app
        .conversations
        .archive(id, request.archived, actor.into())
        .await;
    answer(&app, archived).await
}

/// Moves a session to this machine, if several share a database: from now on its prompts run here, also those that wait.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/here", operation_id = "move_session_here", tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 200, description = "The session.", body = protocol::Session),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_request`: its directory is not on this machine", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn move_here(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
) -> Result<Json<protocol::Session>, Problem> {
    let moved = app.conversations.move_here(id, actor.into()).await;
    answer(&app, moved).await
}

/// Removes a session with all of its turns, for good. Its plan stays.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", operation_id = "remove_session", tag = "sessions",
    params(("id" = String, Path, description = "The id of the session.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "`session_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`session_in_use` or `session_has_forks`, with the session as `current`",
         body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    Actor(actor): Actor,
) -> Result<StatusCode, Problem> {
    match app.conversations.remove(id, actor.into()).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(session_problem_of(&app, error).await),
    }
}

async fn answer(
    app: &App,
    changed: Result<Session, SessionError>,
) -> Result<Json<protocol::Session>, Problem> {
    match changed {
        Ok(session) => Ok(Json(wire::shown(
            &app.conversations,
            &app.durable.machines,
            &session,
        ))),
        Err(error) => Err(session_problem_of(app, error).await),
    }
}
