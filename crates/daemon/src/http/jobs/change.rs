//! Changes to jobs: submit, cancel, retry and forget. Also sets how many jobs run at once.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use jobs::GcPolicy;
use protocol::{
    CancelJob, CollectJobs, JobCounts, JobId, JobSubmitted, JobsCollected, RetryJob, SetJobWorkers, SubmitJob,
};

use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::consent::{ChangeUserFiles, may_change_workspace};
use crate::http::idempotency::one_key;
use crate::http::ids::Id;
use crate::http::log_problem::{ReadLog, WriteLog};
use crate::http::plans;
use crate::http::problem::Problem;
use crate::jobs::wire::{counts_to_wire, invalid};
use crate::jobs::{MOST_WORKERS, acts};

/// How long finished jobs are kept by default.
const USUAL_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Submits a job.
///
/// When the request returns, the job is stored on disk. It runs whether or not the caller stays connected.
/// Submitting again with the same idempotency key returns the same job. With `open`, a plan is opened for the
/// job; even after a crash, either both exist or neither does.
#[utoipa::path(
    post, path = "/v1/jobs", operation_id = "submit_job", tag = "jobs", request_body = SubmitJob,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`.")),
    responses(
        (status = 200, description = "It was submitted before with the same idempotency key.", body = JobSubmitted),
        (status = 201, description = "It is new.", body = JobSubmitted),
        problems::Submit,
        plans::problems::Open,
        ChangeUserFiles,
    ),
)]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    caller: Caller,
    body::Json(mut request): body::Json<SubmitJob>,
) -> Result<(StatusCode, Json<JobSubmitted>), Problem> {
    request.idempotency_key = one_key(&headers, request.idempotency_key)?;
    let submitted = acts::submit(&app, &caller, request).await?;
    let status = match submitted.known {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    Ok((status, Json(submitted)))
}

/// Cancels a job.
///
/// A queued job is cancelled when the request returns. A running job is asked to stop, then forced to; it is
/// `cancelled` once none of its processes are running. Cancelling it again has no effect.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", operation_id = "cancel_job", tag = "jobs", request_body = Option<CancelJob>,
    responses((status = 200, description = "The job; the wish is on disk.", body = protocol::Job), problems::Cancel),
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<CancelJob>,
) -> Result<Json<protocol::Job>, Problem> {
    acts::cancel(&app, &caller, id, request).await.map(Json)
}

/// Submits a job that has ended again, as a new job with `retry_of`.
///
/// The environment of a command isn't kept after it ends, so the new job uses the environment in this
/// request, or the daemon's if there is none.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/retry", operation_id = "retry_job", tag = "jobs", request_body = Option<RetryJob>,
    responses((status = 201, description = "The new job.", body = JobSubmitted), problems::Retry),
)]
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Id(id): Id<JobId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<RetryJob>,
) -> Result<(StatusCode, Json<JobSubmitted>), Problem> {
    may_change_workspace(&app, caller.peer).await?;
    let retried = app
        .environments
        .retry(&app.jobs, id, &caller.actor, request.environment)
        .await?;
    let submitted = JobSubmitted {
        job: acts::shown(&app, &retried).await?,
        known: false,
        plan: None,
    };
    Ok((StatusCode::CREATED, Json(submitted)))
}

/// Removes jobs that have ended, including their output.
///
/// Jobs that other jobs depend on are kept.
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

/// Sets how many jobs run on this machine at once.
///
/// The setting persists across restarts of the daemon. Running jobs continue. With 0, no new jobs start.
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
    // The service applies the new limit a moment later; the response already reports it.
    let counts = JobCounts {
        max_workers: wanted,
        ..counts_to_wire(&app.jobs.counts())
    };
    Ok(Json(counts))
}
