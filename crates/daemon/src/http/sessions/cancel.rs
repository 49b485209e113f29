//! Stops turns, and clears those that no longer belong to a running daemon.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use kernel::Deadline;
use protocol::{CancelTurn, ClearStaleTurn, SessionId, TurnId};
use serde::Deserialize;
use sessions::{Session, SessionError};

use super::look::shown;
use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::{Id, id_in};
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_wait};

/// How long to wait by default for a turn to end. A stopped turn first has to end its processes.
const USUAL_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParameters {
    wait_ms: Option<u64>,
}

/// Stops the running turn, or removes a queued one.
///
/// The stop request is stored on disk when the request returns. The request waits up to `wait_ms` for the
/// turn to end; if `state` is `stopping` afterwards, the turn is still being stopped. If nothing is running,
/// the request has no effect.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/cancel", operation_id = "cancel_turn", tag = "sessions",
    request_body = Option<CancelTurn>,
    params(
        ("wait_ms" = Option<u64>, Query, maximum = 60000,
         description = "How long to wait for its end; 10 seconds if it is left out, 0 for not at all."),
    ),
    responses(
        (status = 200, description = "The session as it is now.", body = protocol::Session),
        problems::CancelTurn,
    ),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    Query(parameters): Query<CancelParameters>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<CancelTurn>,
) -> Result<Json<protocol::Session>, Problem> {
    let turn = request.turn.as_deref().map(|id| id_in("turn", id)).transpose()?;
    let wait = checked_wait(parameters.wait_ms)?.unwrap_or(USUAL_WAIT);
    let why = request.why.unwrap_or_default();
    let session = app.sessions.cancel_turn(id, turn, caller.by(), why).await?;
    let session = see_the_end(&app, session, turn, wait).await?;
    Ok(shown(&app, &session))
}

/// The session once the stopped turn has ended, or its current state when the time runs out.
async fn see_the_end(
    app: &App,
    session: Session,
    wanted: Option<TurnId>,
    wait: Duration,
) -> Result<Session, SessionError> {
    let active = session.record.active.as_ref().map(|active| active.turn);
    let stopping = active.filter(|active| wanted.is_none_or(|wanted| wanted == *active));
    let Some(turn) = stopping.filter(|_| !wait.is_zero()) else {
        return Ok(session);
    };
    let deadline = Deadline::after(&app.clock, wait);
    app.sessions.wait(turn, &deadline, &app.life.scope()).await?;
    app.sessions.get(session.id).await
}

/// Clears a stale turn from a session, if the session hasn't changed since the caller saw it.
///
/// A turn is stale if the daemon that ran it is gone, no matter for how long. It ends as `interrupted`, its
/// output is kept, and the prompts queued behind it continue.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/clear-stale-turn", operation_id = "clear_stale_turn", tag = "sessions",
    request_body = ClearStaleTurn,
    responses(
        (status = 200, description = "The session as it is now.", body = protocol::Session),
        problems::ClearStaleTurn,
    ),
)]
pub(crate) async fn clear_stale_turn(
    State(app): State<Arc<App>>,
    Id(id): Id<SessionId>,
    body::Json(request): body::Json<ClearStaleTurn>,
) -> Result<Json<protocol::Session>, Problem> {
    let turn = id_in("turn", &request.turn)?;
    let session = clear(&app, id, request.seen, turn).await?;
    Ok(shown(&app, &session))
}

async fn clear(app: &App, id: SessionId, seen: u64, turn: TurnId) -> Result<Session, SessionError> {
    let session = app.sessions.get(id).await?;
    if session.version.get() != seen {
        return Err(SessionError::Stale {
            current: Box::new(session),
        });
    }
    if session.record.active.as_ref().map(|active| active.turn) != Some(turn) {
        let state = app.sessions.turn(turn).await?.record.state;
        return Err(SessionError::TurnNotActive {
            session: id,
            turn,
            state,
        });
    }
    // This decides on the state that the caller saw: if the session moves on, the commit is refused.
    app.sessions.clear_stale_turn(id, &session).await
}
