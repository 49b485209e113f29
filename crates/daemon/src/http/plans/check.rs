//! The checks of a plan are run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{CheckPlan, PlanId};

use super::look::shown;
use super::open::checked_checks;
use super::problems::{self, shutting_down};
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::ids::Id;
use crate::http::jobs;
use crate::http::problem::Problem;
use crate::plans::{CheckError, Which, run_checks};

/// Runs the checks of a plan that have not passed for what is in it now, each as a job, one after the other.
///
/// The answer comes when the jobs are submitted; each check names its job. A check that runs already goes on. Whoever
/// waits for a job with `GET /v1/jobs/{id}?wait_ms=` finds the check as it ended. What a check changes in the sandbox is
/// recorded like anything else, and makes it outdated.
#[utoipa::path(
    post, path = "/v1/plans/{id}/check", operation_id = "check_plan", tag = "plans", request_body = Option<CheckPlan>,
    responses(
        (status = 200, description = "The plan with its checks.", body = protocol::Plan),
        problems::Change,
        jobs::problems::Submit,
    ),
)]
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<CheckPlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    let (by, added) = (plans::Actor::from(actor), checked_checks("add", request.add)?);
    if !added.is_empty()
        && let Err(error) = app.plans.add_checks(id, added).await
    {
        return Err(Problem::from(error));
    }
    let which = match request.all {
        true => Which::All,
        false => Which::NotPassed,
    };
    match run_checks(&app.plan_watch, id, (by, app.durable.home_id), which).await {
        Ok(plan) => shown(&app, &plan).await,
        Err(CheckError::Plan(error)) => Err(Problem::from(error)),
        Err(CheckError::Submit(error)) => Err(Problem::from(error)),
        Err(CheckError::Encode(error)) => Err(Problem::internal(error)),
        Err(CheckError::Closing) => Err(shutting_down()),
    }
}
