//! The newest jobs as a stream of server-sent events.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use eventlog::{LogError, MovesEnd};
use jobs::{JobMoves, ListQuery};
use kernel::{Deadline, Scope};
use protocol::JobList;

use crate::app::App;
use crate::http::lists::{self, Listed, NEWEST};
use crate::http::problem::Problem;
use crate::jobs::wire;

/// The newest jobs now, and again after each change.
///
/// Each event is named `jobs`, and its data is a `JobList` with the newest 50. The first one comes at once. Several
/// changes in a short time may be one event. The stream ends when the daemon does.
#[utoipa::path(
    get, path = "/v1/jobs/events", operation_id = "follow_jobs", tag = "jobs",
    responses(
        (status = 200, description = "The jobs, again and again.", content((String = "text/event-stream"))),
        (status = 429, description = "`stream_limit_reached`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let newest = Newest(app.jobs.moves());
    lists::follow(app, newest)
}

/// Tells when one of them has moved.
struct Newest(JobMoves);

impl Listed for Newest {
    const NAME: &'static str = "jobs";
    type List = JobList;
    type Error = LogError;

    async fn moved(&mut self, silence: Deadline, scope: &Scope) -> Result<(), MovesEnd> {
        self.0.next(silence, scope).await
    }

    async fn read(&self, app: &App) -> Result<JobList, LogError> {
        let newest = ListQuery {
            state: None,
            before: None,
            limit: NEWEST,
        };
        wire::list(&app.jobs, &app.durable.machines, newest).await
    }
}
