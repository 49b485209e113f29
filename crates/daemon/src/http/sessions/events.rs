//! The newest sessions as a stream of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use eventlog::{Moves, MovesEnd};
use kernel::{Deadline, Scope};
use protocol::SessionList;
use sessions::{SessionError, SessionQuery};

use crate::app::App;
use crate::http::lists::{self, Listed, NEWEST};
use crate::http::problem::Problem;
use crate::sessions::wire;

/// The newest sessions now, and again after each change.
///
/// Each event is named `sessions`, and its data is a `SessionList` with the newest 50. The first one comes at once. Several
/// changes in a short time may be one event. The stream ends when the daemon does.
#[utoipa::path(
    get, path = "/v1/sessions/events", operation_id = "follow_sessions", tag = "sessions",
    responses(
        (status = 200, description = "The sessions, again and again.", content((String = "text/event-stream"))),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let newest = Newest(app.conversations.moves());
    lists::follow(app, newest)
}

/// Tells when one of them has moved.
struct Newest(Moves);

impl Listed for Newest {
    const NAME: &'static str = "sessions";
    type List = SessionList;
    type Error = SessionError;

    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), MovesEnd> {
        self.0.next(silence, scope).await
    }

    async fn read(&self, app: &App) -> Result<SessionList, SessionError> {
        let newest = SessionQuery {
            limit: NEWEST,
            ..SessionQuery::default()
        };
        wire::list(&app.conversations, &app.durable.machines, newest).await
    }
}
