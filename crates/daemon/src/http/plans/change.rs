//! Plans are sealed, given up, and forgotten.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{ChangePlan, ForgetPlan, PlanForgotten};

use super::ThePlan;
use super::look::shown;
use super::problems::plan_problem;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::problem::Problem;
use crate::plans::wire;

/// Says that the work is done. The plan waits to be applied or discarded; whoever works in it opens it again.
#[utoipa::path(
    post, path = "/v1/plans/{id}/seal", operation_id = "seal_plan", tag = "plans", request_body = Option<ChangePlan>,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "The plan.", body = protocol::Plan),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`stale_generation`, `plan_wrong_state` or `plan_busy`, with the plan as `current`",
         body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn seal(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    match app.plans.seal(id, actor.into(), request.version).await {
        Ok(plan) => shown(&app, &plan).await,
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Gives a plan up. One with work that was not applied is kept unless that is said.
#[utoipa::path(
    post, path = "/v1/plans/{id}/discard", operation_id = "discard_plan", tag = "plans",
    request_body = Option<ChangePlan>,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "The plan.", body = protocol::Plan),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`plan_has_work`, `stale_generation`, `plan_wrong_state` or `plan_busy`, with the \
          plan as `current`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn discard(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    let work = wire::unapplied_of(request.even_with_work);
    match crate::plans::discard(&app, id, actor.into(), request.version, work).await {
        Ok(plan) => shown(&app, &plan).await,
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Forgets a plan that is over, for good: its changes, their contents as far as nobody else has them, and what an apply of
/// it did. It can no longer be undone.
#[utoipa::path(
    post, path = "/v1/plans/{id}/forget", operation_id = "forget_plan", tag = "plans",
    request_body = Option<ForgetPlan>,
    params(("id" = String, Path, description = "The id of the plan.")),
    responses(
        (status = 200, description = "What was freed.", body = PlanForgotten),
        (status = 404, description = "`plan_not_found`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 409, description = "`stale_generation`, `plan_wrong_state` or `plan_busy`, with the plan as `current`",
         body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    ThePlan(id): ThePlan,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ForgetPlan>,
) -> Result<Json<PlanForgotten>, Problem> {
    match crate::plans::forget(&app, id, actor.into(), request.version).await {
        Ok(forgotten) => Ok(Json(PlanForgotten {
            plan: id.to_string(),
            bytes: forgotten.bytes,
        })),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}
