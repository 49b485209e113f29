//! Jobs over HTTP: submitted, looked at, followed, cancelled, done once more, and forgotten.

mod change;
mod events;
mod input;
mod logs;
mod look;
mod problems;
mod said;
mod submit;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::routing::{get, post, put};
use http::request::Parts;
use protocol::JobId;
use utoipa::OpenApi;

pub(crate) use problems::not_submitted;

use super::problem::Problem;
use crate::app::App;

/// The paths of jobs.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/jobs", get(look::list).post(submit::submit))
        .route("/v1/jobs/events", get(events::follow))
        .route("/v1/jobs/gc", post(change::collect))
        .route("/v1/jobs/workers", put(change::set_workers))
        .route("/v1/jobs/{id}", get(look::show))
        .route("/v1/jobs/{id}/history", get(look::history))
        .route("/v1/jobs/{id}/logs", get(logs::logs))
        .route("/v1/jobs/{id}/output", get(logs::output))
        .route("/v1/jobs/{id}/input", get(input::connect))
        .route("/v1/jobs/{id}/cancel", post(change::cancel))
        .route("/v1/jobs/{id}/retry", post(change::retry))
}

/// The part of the description that is about jobs.
#[derive(OpenApi)]
#[openapi(
    paths(
        submit::submit,
        look::list,
        look::show,
        look::history,
        logs::logs,
        logs::output,
        input::connect,
        change::cancel,
        change::retry,
        change::collect,
        change::set_workers,
        events::follow,
    ),
    components(schemas(protocol::JobOutput, protocol::JobProgress, protocol::JobWaiting)),
    tags((name = "jobs", description = "Commands that outlive the call that started them.")),
)]
struct Description;

/// The part of the description that is about jobs.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// The job that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheJob(JobId);

impl FromRequestParts<Arc<App>> for TheJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(problems::no_job("The id of the job is not UTF-8."));
        };
        // What is not the id of a job is not the id of one that is there.
        text.parse().map(Self).map_err(|_| {
            let shown = text.escape_debug();
            problems::no_job(format!("`{shown}` is not the id of a job."))
        })
    }
}
