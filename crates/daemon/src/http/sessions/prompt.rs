//! A session gets a prompt.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use protocol::StartTurn;
use sessions::{NewTurn, Prompt, RunOn, Started};

use super::TheSession;
use super::problems::session_problem_of;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::idempotency::one_key;
use crate::http::problem::Problem;
use crate::sessions::wire;

/// Sends a prompt. When the answer comes, it is on disk, and its turn runs or waits.
///
/// Nobody has to stay: the turn goes on whether the caller does or not. While a turn runs, further prompts wait for it in
/// their order, unless `if_busy` is `refuse`. If several machines share a database, it runs on that of the session, unless
/// `here` is true: then it runs here, if the directory of the session is here too. A second request with the same idempotency key is the same turn.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/turns", operation_id = "start_turn", tag = "sessions", request_body = StartTurn,
    params(
        ("id" = String, Path, description = "The id of the session."),
        ("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`."),
    ),
    responses(
        (status = 200, description = "It was sent before with the same idempotency key.", body = protocol::TurnAccepted),
        (status = 202, description = "It was taken.", body = protocol::TurnAccepted),
        (status = 404, description = "`session_not_found` or `agent_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`turn_active`, `stale_generation` or `session_archived` with the session as `current`, \
          `idempotency_key_reused` with the turn that has it", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_prompt` or `invalid_request`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 424, description = "`agent_not_ready`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 429, description = "`queue_full`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing` or `shutting_down`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    TheSession(id): TheSession,
    headers: HeaderMap,
    Actor(actor): Actor,
    body::Json(request): body::Json<StartTurn>,
) -> Result<Response, Problem> {
    let new = NewTurn {
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
        by: actor.into(),
    };
    let accepted = match app.conversations.start_turn(id, new).await {
        Ok(accepted) => accepted,
        Err(error) => return Err(session_problem_of(&app, error).await),
    };
    let status = match accepted.started {
        Started::New => StatusCode::ACCEPTED,
        Started::Before => StatusCode::OK,
    };
    Ok((
        status,
        Json(wire::accepted_to_wire(
            &app.conversations,
            &app.durable.machines,
            &accepted,
        )),
    )
        .into_response())
}
