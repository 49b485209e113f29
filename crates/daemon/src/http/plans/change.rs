//! Plans are sealed, given up, and forgotten.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{ChangePlan, ForgetPlan, PlanForgotten, PlanId};

use super::look::shown;
use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::ids::Id;
use crate::http::problem::Problem;
use crate::plans::wire;

/// Says that the work is done. The plan waits to be applied or discarded; whoever works in it opens it again.
#[utoipa::path(
    post, path = "/v1/plans/{id}/seal", operation_id = "seal_plan", tag = "plans", request_body = Option<ChangePlan>,
    responses((status = 200, description = "The plan.", body = protocol::Plan), problems::Change),
)]
pub(crate) async fn seal(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    let plan = app.plans.seal(id, actor.into(), request.version).await?;
    shown(&app, &plan).await
}

/// Gives a plan up. One with work that was not applied is kept unless that is said.
#[utoipa::path(
    post, path = "/v1/plans/{id}/discard", operation_id = "discard_plan", tag = "plans",
    request_body = Option<ChangePlan>,
    responses((status = 200, description = "The plan.", body = protocol::Plan), problems::Discard),
)]
pub(crate) async fn discard(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    let work = wire::unapplied_of(request.even_with_work);
    let plan = crate::plans::discard(&app, id, actor.into(), request.version, work).await?;
    shown(&app, &plan).await
}

/// Forgets a plan that is over, for good: its changes, their contents as far as nobody else has them, and what an apply of
/// it did. It can no longer be undone.
#[utoipa::path(
    post, path = "/v1/plans/{id}/forget", operation_id = "forget_plan", tag = "plans",
    request_body = Option<ForgetPlan>,
    responses((status = 200, description = "What was freed.", body = PlanForgotten), problems::Change),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ForgetPlan>,
) -> Result<Json<PlanForgotten>, Problem> {
    let forgotten = crate::plans::forget(&app, id, actor.into(), request.version).await?;
    Ok(Json(PlanForgotten {
        plan: id.to_string(),
        bytes: forgotten.bytes,
    }))
}
