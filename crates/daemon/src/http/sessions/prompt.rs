//! Sends a prompt to a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use protocol::{FinishThen, SessionId, StartTurn};
use sessions::{NewTurn, Prompt, RunOn, Started};

use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::consent::{ChangeUserFiles, may_change_workspace};
use crate::http::idempotency::one_key;
use crate::http::ids::Id;
use crate::http::problem::Problem;
use crate::sessions::wire;

/// Sends a prompt.
///
/// When the request returns, the prompt is stored on disk, and its turn is running or queued. The turn
/// continues whether or not the caller stays connected. While a turn is running, further prompts are queued
/// in order, unless `if_busy` is `refuse`. If several machines share a database, the turn runs on the
/// session's machine. If `here` is true, it runs on this machine instead, provided that the session's
/// directory exists here too. A second request with the same idempotency key returns the same turn.
///
/// With `finish`, the daemon seals, checks and applies the plan when the turn ends as `done`. This happens
/// exactly once, even if the caller has disconnected or the daemon was restarted. The turn's `finish_job` is
/// the job that does it, and `finished` has the result.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/turns", operation_id = "start_turn", tag = "sessions", request_body = StartTurn,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`.")),
    responses(
        (status = 200, description = "It was sent before with the same idempotency key.", body = protocol::TurnAccepted),
        (status = 202, description = "It was taken.", body = protocol::TurnAccepted),
        problems::Prompt,
        ChangeUserFiles,
    ),
)]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    headers: HeaderMap,
    caller: Caller,
    body::Json(request): body::Json<StartTurn>,
) -> Result<Response, Problem> {
    let finish = request.finish;
    if finish
        .as_ref()
        .is_some_and(|finish| finish.then == FinishThen::Apply)
    {
        // Applying the plan at the end of the turn changes the user's files.
        may_change_workspace(&app, caller.peer).await?;
    }
    let new = NewTurn {
        finish,
        idempotency_key: one_key(&headers, request.idempotency_key)?,
        prompt: Prompt {
            text: request.prompt,
            attachments: wire::attachments_of(&app.durable.log, request.attachments).await?,
        },
        agent: request.agent,
        if_busy: request.if_busy.unwrap_or_default(),
        seen: request.seen,
        run_on: match request.here {
            true => RunOn::Here,
            false => RunOn::ItsMachine,
        },
        by: caller.by(),
    };
    let accepted = app.sessions.start_turn(id, new).await?;
    let status = match accepted.started {
        Started::New => StatusCode::ACCEPTED,
        Started::Before => StatusCode::OK,
    };
    let answer = wire::accepted_to_wire(&app.sessions, &app.durable.machines, &app.jobs, &accepted).await?;
    Ok((status, Json(answer)).into_response())
}
