//! The checks of a plan are run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::CheckPlan;

use super::ThePlan;
use super::look::shown;
use super::open::checked_checks;
use super::problems::{plan_problem, shutting_down};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::jobs::not_submitted;
use crate::http::problem::Problem;
use crate::plans::{CheckError, Which, run_checks};

/// Runs the checks of a plan that have not passed for what is in it now, each as a job, one after the other.
///
/// The answer comes when the jobs are submitted; each check names its job. A check that runs already goes on. Whoever
/// waits for a job with `GET /v1/jobs/{id}?wait_ms=` finds the check as it ended. What a check changes in the sandbox is
/// recorded like anything else, and makes it outdated.
#[utoipa::path(
    post, path = "/v1/plans/{id}/check", operation_id = "check_plan", tag = "plans", request_body = Option<CheckPlan>,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "The plan with its checks.", body = protocol::Plan),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`plan_wrong_state` with the plan as `current`, or `plan_elsewhere`",
         body = protocol::Problem, content_type = "application/problem+json"),
        (status = 410, description = "`sandbox_gone`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 422, description = "`invalid_request`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 429, description = "`jobs_full`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing` or `shutting_down`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<CheckPlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    let (by, added) = (plans::Actor::from(actor), checked_checks("add", request.add)?);
    if !added.is_empty()
        && let Err(error) = app.plans.add_checks(id, added).await
    {
        return Err(plan_problem(&app.plans, error).await);
    }
    let which = match request.all {
        true => Which::All,
        false => Which::NotPassed,
    };
    match run_checks(&app.plan_watch, id, (by, app.durable.home_id), which).await {
        Ok(plan) => shown(&app, &plan).await,
        Err(CheckError::Plan(error)) => Err(plan_problem(&app.plans, error).await),
        Err(CheckError::Submit(error)) => Err(not_submitted(&app, error).await),
        Err(CheckError::Encode(error)) => Err(Problem::internal(error)),
        Err(CheckError::Closing) => Err(shutting_down()),
    }
}
