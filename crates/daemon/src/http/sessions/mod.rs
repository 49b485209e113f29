//! Sessions over HTTP: opened, prompted, looked at, followed, answered, stopped, forked, and put away.

mod agents;
mod answer;
mod cancel;
mod change;
mod events;
mod export;
mod history;
mod look;
mod open;
mod problems;
mod prompt;
mod queue;
mod stream;
mod turns;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::routing::{get, post, put};
use http::request::Parts;
use protocol::{ErrorCode, SessionId, TurnId};
use utoipa::OpenApi;

pub(crate) use problems::session_problem_of;

use super::problem::Problem;
use crate::app::App;

/// The paths of sessions and agents.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/agents", get(agents::list))
        .route("/v1/sessions", get(look::list).post(open::open))
        .route("/v1/sessions/events", get(events::follow))
        .route("/v1/sessions/{id}", get(look::show).delete(change::remove))
        .route("/v1/sessions/{id}/events", get(history::history))
        .route("/v1/sessions/{id}/export", get(export::export))
        .route("/v1/sessions/{id}/turns", get(turns::list).post(prompt::start))
        .route("/v1/sessions/{id}/turns/{turn}", get(turns::show))
        .route("/v1/sessions/{id}/turns/{turn}/events", get(turns::events))
        .route(
            "/v1/sessions/{id}/turns/{turn}/transcript",
            get(turns::transcript),
        )
        .route("/v1/sessions/{id}/queue", get(queue::list))
        .route(
            "/v1/sessions/{id}/queue/{turn}",
            put(queue::edit).delete(queue::remove),
        )
        .route("/v1/sessions/{id}/cancel", post(cancel::cancel))
        .route(
            "/v1/sessions/{id}/clear-stale-turn",
            post(cancel::clear_stale_turn),
        )
        .route("/v1/sessions/{id}/permissions/{permission}", post(answer::answer))
        .route("/v1/sessions/{id}/fork", post(change::fork))
        .route("/v1/sessions/{id}/here", post(change::move_here))
        .route("/v1/sessions/{id}/rename", post(change::rename))
        .route("/v1/sessions/{id}/archive", post(change::archive))
        .route("/v1/sessions/{id}/agent", put(change::set_agent))
}

/// The part of the description that is about sessions.
#[derive(OpenApi)]
#[openapi(
    paths(
        agents::list,
        open::open,
        look::list,
        look::show,
        events::follow,
        history::history,
        export::export,
        prompt::start,
        turns::list,
        turns::show,
        turns::events,
        turns::transcript,
        queue::list,
        queue::edit,
        queue::remove,
        cancel::cancel,
        cancel::clear_stale_turn,
        answer::answer,
        change::fork,
        change::move_here,
        change::rename,
        change::archive,
        change::set_agent,
        change::remove,
    ),
    components(schemas(
        protocol::SessionMoment,
        protocol::TurnEnd,
        protocol::TurnEvent,
        protocol::TurnEventBody,
        protocol::TurnResync,
    )),
    tags((name = "sessions", description = "Conversations with agents, which can be left, found again and stopped.")),
)]
struct Description;

/// The part of the description that is about sessions.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// The session that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheSession(SessionId);

impl FromRequestParts<Arc<App>> for TheSession {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(no_session("The id of the session is not UTF-8."));
        };
        session_id(&text).map(Self)
    }
}

/// The turn that a request is about, and its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheTurn(SessionId, TurnId);

impl FromRequestParts<Arc<App>> for TheTurn {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(Path((session, turn))) = Path::<(String, String)>::from_request_parts(parts, app).await else {
            return Err(no_session("The id of the session or of the turn is not UTF-8."));
        };
        Ok(Self(session_id(&session)?, turn_id(&turn)?))
    }
}

/// What is not the id of a session is not the id of one that is there.
fn session_id(text: &str) -> Result<SessionId, Problem> {
    text.parse()
        .map_err(|_| no_session(format!("`{}` is not the id of a session.", text.escape_debug())))
}

fn turn_id(text: &str) -> Result<TurnId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("`{}` is not the id of a turn.", text.escape_debug());
        Problem::new(ErrorCode::TurnNotFound, detail)
    })
}

fn no_session(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::SessionNotFound, detail)
}
