//! The newest plans as a stream of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use eventlog::{Moves, MovesEnd};
use kernel::{Deadline, Scope};
use plans::{PlanError, PlanQuery};
use protocol::PlanList;

use crate::app::App;
use crate::http::lists::{self, Listed, NEWEST};
use crate::http::problem::Problem;
use crate::plans::wire;

/// The newest plans now, and again after each change.
///
/// Each event is named `plans`, and its data is a `PlanList` with the newest 50. The first one comes at once. Several
/// changes in a short time may be one event. The stream ends when the daemon does.
#[utoipa::path(
    get, path = "/v1/plans/events", operation_id = "follow_plans", tag = "plans",
    responses(
        (status = 200, description = "The plans, again and again.", content((String = "text/event-stream"))),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let newest = Newest(app.plans.moves());
    lists::follow(app, newest)
}

/// Tells when one of them has moved.
struct Newest(Moves);

impl Listed for Newest {
    const NAME: &'static str = "plans";
    type List = PlanList;
    type Error = PlanError;

    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), MovesEnd> {
        self.0.next(silence, scope).await
    }

    async fn read(&self, app: &App) -> Result<PlanList, PlanError> {
        let newest = PlanQuery {
            limit: NEWEST,
            ..PlanQuery::default()
        };
        wire::list(&app.plans, &app.durable.machines, newest).await
    }
}
