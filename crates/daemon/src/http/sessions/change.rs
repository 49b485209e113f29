//! Changes to sessions: fork, rename, change the agent, archive and remove.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{AgentChoice, ArchiveSession, ForkSession, RenameSession, SessionId};

use super::look::shown;
use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::{Id, id_in};
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;

/// Creates a session that continues from a turn of this one.
///
/// Both sessions share the turns up to that point. Later turns belong to one session only.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/fork", operation_id = "fork_session", tag = "sessions",
    request_body = Option<ForkSession>,
    responses((status = 201, description = "The new session.", body = protocol::Session), problems::Fork),
)]
pub(crate) async fn fork(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<ForkSession>,
) -> Result<(StatusCode, Json<protocol::Session>), Problem> {
    if request.session.is_some_and(|session| session != id.to_string()) {
        return Err(invalid("session", "is not the one that is forked"));
    }
    let turn = request.turn.as_deref().map(|id| id_in("turn", id)).transpose()?;
    let forked = app.sessions.fork(id, turn, caller.by()).await?;
    Ok((StatusCode::CREATED, shown(&app, &forked)))
}

/// Changes the title of a session.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/rename", operation_id = "rename_session", tag = "sessions",
    request_body = RenameSession,
    responses((status = 200, description = "The session.", body = protocol::Session), problems::Rename),
)]
pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
    body::Json(request): body::Json<RenameSession>,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.rename(id, request.title, caller.by()).await?;
    Ok(shown(&app, &session))
}

/// Changes the agent of a session, starting with the next prompt.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/agent", operation_id = "set_session_agent", tag = "sessions",
    request_body = AgentChoice,
    responses((status = 200, description = "The session.", body = protocol::Session), problems::SetAgent),
)]
pub(crate) async fn set_agent(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
    body::Json(request): body::Json<AgentChoice>,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.set_agent(id, request, caller.by()).await?;
    Ok(shown(&app, &session))
}

/// Archives or unarchives a session.
///
/// An archived session accepts no prompts, and isn't listed.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/archive", operation_id = "archive_session", tag = "sessions",
    request_body = ArchiveSession,
    responses((status = 200, description = "The session.", body = protocol::Session), problems::Archive),
)]
pub(crate) async fn archive(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
    body::Json(request): body::Json<ArchiveSession>,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.archive(id, request.archived, caller.by()).await?;
    Ok(shown(&app, &session))
}

/// Moves a session to this machine, if several machines share a database.
///
/// From then on, its prompts run here, including those that are waiting.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/here", operation_id = "move_session_here", tag = "sessions",
    responses((status = 200, description = "The session.", body = protocol::Session), problems::MoveHere),
)]
pub(crate) async fn move_here(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
) -> Result<Json<protocol::Session>, Problem> {
    let session = app.sessions.move_here(id, caller.by()).await?;
    Ok(shown(&app, &session))
}

/// Permanently removes a session and all of its turns.
///
/// Its plan is kept.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", operation_id = "remove_session", tag = "sessions",
    responses((status = 204, description = "It is gone."), problems::Remove),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    caller: Caller,
) -> Result<StatusCode, Problem> {
    app.sessions.remove(id, caller.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
