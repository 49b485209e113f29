//! Lists and shows jobs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use eventlog::Sequence;
use jobs::ListQuery;
use protocol::{ErrorCode, JobHistory, JobId, JobList, JobState};
use serde::Deserialize;

use super::problems;
use crate::app::App;
use crate::http::ids::Id;
use crate::http::lists::{self, NEWEST};
use crate::http::log_problem::ReadLog;
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit, checked_wait};
use crate::http::sse::OpenStream;
use crate::jobs::acts;
use crate::jobs::wire::{self, moments_to_wire};

/// How many jobs are in a page by default.
const USUAL_LIMIT: u32 = 50;
/// How many jobs can be in a page. A job has about a kilobyte.
const MOST: u32 = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    state: Option<JobState>,
    before: Option<String>,
    limit: Option<u32>,
}

/// Lists jobs, newest first.
#[utoipa::path(
    get, path = "/v1/jobs", operation_id = "list_jobs", tag = "jobs",
    params(
        ("state" = Option<JobState>, Query, description = "Only those that are doing this."),
        ("before" = Option<String>, Query,
         description = "Only those that are older than this job: `next_before` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500,
         description = "How many at most; 50 if it is left out."),
    ),
    responses((status = 200, description = "The jobs.", body = JobList), ReadLog),
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Query(parameters): Query<ListParameters>,
) -> Result<Json<JobList>, Problem> {
    let query = ListQuery {
        state: parameters.state,
        before: parameters.before.as_deref().map(before_of).transpose()?,
        limit: checked_limit(parameters.limit, USUAL_LIMIT, MOST)?,
    };
    acts::list(&app, query).await.map(Json)
}

/// Streams the list of newest jobs, now and after each change.
///
/// Each event is named `jobs`, and its data is a `JobList` with the newest 50. The first event is sent
/// immediately. Several changes in a short time may be combined into one event. The stream ends when the
/// daemon stops.
#[utoipa::path(
    get, path = "/v1/jobs/events", operation_id = "follow_jobs", tag = "jobs",
    responses(
        (status = 200, description = "The jobs, again and again.", content((String = "text/event-stream"))),
        OpenStream,
    ),
)]
pub(crate) async fn follow(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let moves = app.jobs.moves();
    lists::follow(app, "jobs", moves, |app| {
        let newest = ListQuery {
            state: None,
            before: None,
            limit: NEWEST,
        };
        Box::pin(wire::list(&app.jobs, &app.durable.machines, newest))
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowParameters {
    wait_ms: Option<u64>,
}

/// Returns a job.
///
/// With `wait_ms`, the request returns as soon as the job has ended or the time is up.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", operation_id = "show_job", tag = "jobs",
    params(
        ("wait_ms" = Option<u64>, Query, maximum = 60_000,
         description = "How long to wait for its end, at most a minute; not at all if it is left out."),
    ),
    responses((status = 200, description = "The job.", body = protocol::Job), problems::Read),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    Query(parameters): Query<ShowParameters>,
) -> Result<Json<protocol::Job>, Problem> {
    let wait = checked_wait(parameters.wait_ms)?;
    acts::show(&app, id, wait).await.map(Json)
}

/// Lists the history of a job, oldest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/history", operation_id = "show_job_history", tag = "jobs",
    responses((status = 200, description = "The moments of its life.", body = JobHistory), problems::Read),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
) -> Result<Json<JobHistory>, Problem> {
    let job = acts::find(&app, id).await?;
    let moments = app.jobs.timeline(id, Sequence::from_u64(0)).await;
    let moments = moments?;
    Ok(Json(JobHistory {
        moments: moments_to_wire(&job, &moments),
    }))
}

fn before_of(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("In `before`: `{}` is not the id of a job.", text.escape_debug());
        Problem::new(ErrorCode::InvalidQuery, detail).in_field("before")
    })
}
