//! Turns are stopped, and those that are nobody's are cleared away.

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

/// How long the end of a turn is waited for, unless the caller says so. A turn that is stopped has to end its processes.
const USUAL_WAIT: Duration = Duration::from_secs(10);

/// What may be asked of a stop.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelParameters {
    wait_ms: Option<u64>,
}

/// Stops the turn that runs, or takes one away that waits.
///
/// The wish is on disk when the answer comes. The end of the turn is waited for, up to `wait_ms`; if `state` is `stopping`
/// then, it is still being stopped. Where nothing runs, nothing is done.
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

/// The session once the turn that is being stopped is over, or as it is when the time is.
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

/// Frees a session whose turn is nobody's any more, if it is still as the caller saw it.
///
/// A turn is stale when the daemon that ran it is gone, however long ago that was. It ends as `interrupted`, what was said
/// stays, and the prompts behind it go on.
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
    // It is decided on what the caller saw: if it moves from here on, the commit is refused.
    app.sessions.clear_stale_turn(id, &session).await
}
