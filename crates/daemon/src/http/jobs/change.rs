//! Jobs are cancelled, done once more, and forgotten; and the daemon is told how many to run.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use jobs::{GcPolicy, Requested};
use protocol::{
    CancelJob, CollectJobs, JobCounts, JobId, JobSubmitted, JobsCollected, RetryJob, SetJobWorkers,
};

use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::consent::{Peer, may_change_workspace};
use crate::http::ids::Id;
use crate::http::log_problem::{ReadLog, WriteLog};
use crate::http::problem::Problem;
use crate::jobs::MOST_WORKERS;
use crate::jobs::wire::{counts_to_wire, invalid, view};

/// The longest reason for a cancellation. It stands in the job.
const WHY_LIMIT_CHARACTERS: usize = 1000;
/// For how long jobs that have ended are kept, unless the caller says so.
const USUAL_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Asks for a job to be cancelled.
///
/// A job that waits is cancelled when the answer comes. One that runs is told to stop, then made to; it is `cancelled`
/// once nothing of it runs any more. To ask twice is to ask once.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", operation_id = "cancel_job", tag = "jobs", request_body = Option<CancelJob>,
    responses((status = 200, description = "The job; the wish is on disk.", body = protocol::Job), problems::Cancel),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<CancelJob>,
) -> Result<Json<protocol::Job>, Problem> {
    if request.why.chars().count() > WHY_LIMIT_CHARACTERS {
        let why = format!("has more than {WHY_LIMIT_CHARACTERS} characters");
        return Err(invalid("why", &why));
    }
    let requested = Requested {
        by: actor,
        why: request.why,
    };
    let job = app.jobs.cancel(id, requested).await?;
    tracing::info!(job = %id, "a job is to be cancelled");
    Ok(Json(view(&app.jobs, &app.durable.machines, &job).await?))
}

/// Submits a job that has ended once more, as a new one that names it in `retry_of`.
///
/// The environment of a command is not kept after its end, so the new one has the environment of this request, or else
/// that of the daemon.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/retry", operation_id = "retry_job", tag = "jobs", request_body = Option<RetryJob>,
    responses((status = 201, description = "The new job.", body = JobSubmitted), problems::Retry),
)]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    Actor(actor): Actor,
    peer: Peer,
    body::OptionalJson(request): body::OptionalJson<RetryJob>,
) -> Result<Response, Problem> {
    may_change_workspace(&app, peer).await?;
    let retried = app
        .environments
        .retry(&app.jobs, id, &actor, request.environment)
        .await;
    let job = retried?;
    let job = view(&app.jobs, &app.durable.machines, &job).await?;
    let submitted = JobSubmitted {
        job,
        known: false,
        plan: None,
    };
    Ok((StatusCode::CREATED, Json(submitted)).into_response())
}

/// Forgets jobs that have ended, with their output. One that others wait for is kept.
#[utoipa::path(
    post, path = "/v1/jobs/gc", operation_id = "collect_jobs", tag = "jobs", request_body = Option<CollectJobs>,
    responses((status = 200, description = "What was forgotten.", body = JobsCollected), ReadLog),
)]
pub(crate) async fn collect(
    State(app): State<Arc<App>>,
    body::OptionalJson(request): body::OptionalJson<CollectJobs>,
) -> Result<Json<JobsCollected>, Problem> {
    let policy = GcPolicy {
        older_than: request.older_than_ms.map_or(USUAL_AGE, Duration::from_millis),
        output_budget_bytes: None,
        keep_newest: request.keep_newest.unwrap_or_default(),
    };
    let collected = app.jobs.collect(policy).await?;
    tracing::info!(jobs = collected.jobs, "jobs that had ended were forgotten");
    Ok(Json(collected))
}

/// Changes how many jobs run here at once, also for later lives of the daemon. What runs goes on; with 0 nothing new is
/// begun.
#[utoipa::path(
    put, path = "/v1/jobs/workers", operation_id = "set_job_workers", tag = "jobs", request_body = SetJobWorkers,
    responses((status = 200, description = "How many there are now.", body = JobCounts), WriteLog),
)]
pub(crate) async fn set_workers(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<SetJobWorkers>,
) -> Result<Json<JobCounts>, Problem> {
    let wanted = request.max_workers;
    let Some(max_workers) = usize::try_from(wanted)
        .ok()
        .filter(|wanted| *wanted <= MOST_WORKERS)
    else {
        let why = format!("must lie between 0 and {MOST_WORKERS}");
        return Err(invalid("max_workers", &why));
    };
    app.job_workers.choose(&app.jobs, max_workers).await?;
    tracing::info!(max_workers, "the number of workers was changed");
    // The service takes the wish in when it comes to it; whoever asked is told what they asked for.
    let counts = JobCounts {
        max_workers: wanted,
        ..counts_to_wire(&app.jobs.counts())
    };
    Ok(Json(counts))
}
