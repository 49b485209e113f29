//! Jobs are looked at.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use eventlog::Sequence;
use jobs::ListQuery;
use kernel::Deadline;
use protocol::{ErrorCode, JobHistory, JobId, JobList, JobState};
use serde::Deserialize;

use super::TheJob;
use super::problems::{not_followed, not_found};
use crate::app::App;
use crate::http::log_problem::read_failed;
use crate::http::problem::Problem;
use crate::http::query::{Query, checked_limit};
use crate::jobs::wire::{self, moments_to_wire, view};

/// How many jobs are in a page, unless the caller says so.
const USUAL_LIMIT: u32 = 50;
/// How many jobs are in a page at most. One has about a kilobyte.
const MOST: u32 = 500;
/// How long one request may wait for the end of a job. Whoever wants to wait longer asks again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What may be asked of the list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParameters {
    state: Option<JobState>,
    before: Option<String>,
    limit: Option<u32>,
}

/// Jobs, newest first.
#[utoipa::path(
    get, path = "/v1/jobs", operation_id = "list_jobs", tag = "jobs",
    params(
        ("state" = Option<JobState>, Query, description = "Only those that are doing this."),
        ("before" = Option<String>, Query,
         description = "Only those that are older than this job: `next_before` of the page before."),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 500,
         description = "How many at most; 50 if it is left out."),
    ),
    responses(
        (status = 200, description = "The jobs.", body = JobList),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 500, description = "`log_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
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
    wire::list(&app.jobs, &app.durable.machines, query)
        .await
        .map(Json)
        .map_err(read_failed)
}

/// What may be asked of a job.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowParameters {
    wait_ms: Option<u64>,
}

/// One job; with `wait_ms`, as soon as it has ended or the time is over.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", operation_id = "show_job", tag = "jobs",
    params(
        ("id" = String, Path, description = "The id of the job."),
        ("wait_ms" = Option<u64>, Query, maximum = 60_000,
         description = "How long to wait for its end, at most a minute; not at all if it is left out."),
    ),
    responses(
        (status = 200, description = "The job.", body = protocol::Job),
        (status = 400, description = "`invalid_query`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 404, description = "`job_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    TheJob(id): TheJob,
    Query(parameters): Query<ShowParameters>,
) -> Result<Json<protocol::Job>, Problem> {
    let job = match parameters.wait_ms {
        None => find(&app, id).await?,
        Some(wait_ms) => {
            let deadline = Deadline::after(&app.clock, checked_wait(wait_ms)?);
            let ended = app.jobs.wait(id, &deadline, &app.life.scope()).await;
            ended.map_err(|end| not_followed(id, end))?
        }
    };
    view(&app.jobs, &app.durable.machines, &job)
        .await
        .map(Json)
        .map_err(read_failed)
}

/// What has happened to a job, oldest first.
#[utoipa::path(
    get, path = "/v1/jobs/{id}/history", operation_id = "show_job_history", tag = "jobs",
    params(("id" = String, Path, description = "The id of the job.")),
    responses(
        (status = 200, description = "The moments of its life.", body = JobHistory),
        (status = 404, description = "`job_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    TheJob(id): TheJob,
) -> Result<Json<JobHistory>, Problem> {
    let job = find(&app, id).await?;
    let moments = app.jobs.timeline(id, Sequence::from_u64(0)).await;
    let moments = moments.map_err(read_failed)?;
    Ok(Json(JobHistory {
        moments: moments_to_wire(&job, &moments),
    }))
}

/// The job of an id.
pub(super) async fn find(app: &App, id: JobId) -> Result<jobs::Job, Problem> {
    let found = app.jobs.get(id).await.map_err(read_failed)?;
    found.ok_or_else(|| not_found(id))
}

fn before_of(text: &str) -> Result<JobId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("In `before`: `{}` is not the id of a job.", text.escape_debug());
        Problem::new(ErrorCode::InvalidQuery, detail).in_field("before")
    })
}

fn checked_wait(wait_ms: u64) -> Result<Duration, Problem> {
    let wait = Duration::from_millis(wait_ms);
    if wait > LONGEST_WAIT {
        let detail = format!(
            "`wait_ms` is {wait_ms}, and must not be more than {}.",
            LONGEST_WAIT.as_millis()
        );
        return Err(Problem::new(ErrorCode::InvalidQuery, detail).in_field("wait_ms"));
    }
    Ok(wait)
}
