//! A job is submitted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use jobs::Submitted;
use protocol::{FinishThen, JobSubmitted, PlanId, SubmitJob};

use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::consent::{ChangeUserFiles, Peer, StartedFor, may_apply, may_change_workspace};
use crate::http::idempotency::one_key;
use crate::http::plans;
use crate::http::problem::Problem;
use crate::jobs::wire::{invalid, to_new_job, view};
use crate::plans::{submit_in_new_plan, wire};

/// Submits a job. When the answer comes, it is on disk.
///
/// Nobody has to wait for it: it runs whether the caller stays or not. A second submission with the same idempotency
/// key is the same job. With `open`, a plan is opened for it: after a crash both are there, or neither.
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
    Actor(actor): Actor,
    (peer, started_for): (Peer, StartedFor),
    body::Json(mut request): body::Json<SubmitJob>,
) -> Result<Response, Problem> {
    match (&request.command.plan, &request.open) {
        (Some(_), Some(_)) => {
            return Err(invalid("open", "cannot be given together with `command.plan`"));
        }
        (None, None) => may_change_workspace(&app, peer).await?,
        // What is applied at its end reaches the user's files as well. An invalid id is refused below.
        (Some(id), None) if is_applied(&request) => {
            let plan: Option<PlanId> = id.parse().ok();
            may_apply(&app, peer, plan.as_slice()).await?;
        }
        (None, Some(open)) if is_applied(&request) && open.parent.is_none() => {
            may_change_workspace(&app, peer).await?;
        }
        (Some(_), None) | (None, Some(_)) => {}
    }
    request.idempotency_key = one_key(&headers, request.idempotency_key)?;
    if let Some(open) = request.open.take() {
        let (plan, submitted) = submit_in_new_plan(&app, open, request, actor.into(), started_for).await?;
        let plan = wire::show(&app.plans, &app.durable.machines, &plan).await?;
        return answer(&app, &submitted, Some(Box::new(plan))).await;
    }
    let place = (&app.durable.log, app.durable.home_id);
    let new = to_new_job(request, &actor, started_for, place, &app.plans).await?;
    let submitted = app.environments.submit(&app.jobs, new).await?;
    answer(&app, &submitted, None).await
}

async fn answer(
    app: &App,
    submitted: &Submitted,
    plan: Option<Box<protocol::Plan>>,
) -> Result<Response, Problem> {
    let (status, known) = match submitted {
        Submitted::New(_) => (StatusCode::CREATED, false),
        Submitted::Known(_) => (StatusCode::OK, true),
    };
    let job = view(&app.jobs, &app.durable.machines, submitted.job()).await?;
    Ok((status, Json(JobSubmitted { job, known, plan })).into_response())
}

/// Whether what the command changes is applied when it has ended.
fn is_applied(request: &SubmitJob) -> bool {
    let finish = request.finish.as_ref();
    finish.is_some_and(|finish| finish.then == FinishThen::Apply)
}
