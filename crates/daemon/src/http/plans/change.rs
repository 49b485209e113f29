//! Plans are opened, checked, sealed, applied, undone, moved to the present, given up, and forgotten.
//!
//! A conflict is an answer and no problem: nothing was changed, and the answer says what is in the way. So it has the
//! status 200 and `outcome: conflicted`, also in a dry run.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use protocol::{
    ApplyPlans, ChangePlan, CheckPlan, CollectPlans, ForgetPlan, OpenPlan, PlanForgotten, PlanId,
    PlanOutcome, PlansCollected, UndoPlan,
};

use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::idempotency::one_key;
use crate::http::ids::Id;
use crate::http::jobs;
use crate::http::problem::Problem;
use crate::plans::acts;

/// Opens a plan: takes the workspace as it is, and makes a sandbox of it.
///
/// When the answer comes, commands can run in the sandbox (`POST /v1/jobs` with `command.plan`), and files in it can be
/// read and written. A second request with the same idempotency key is the same plan.
#[utoipa::path(
    post, path = "/v1/plans", operation_id = "open_plan", tag = "plans", request_body = OpenPlan,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as `idempotency_key`.")),
    responses(
        (status = 200, description = "It was opened before with the same idempotency key.", body = protocol::Plan),
        (status = 201, description = "It is new.", body = protocol::Plan),
        problems::Open,
    ),
)]
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    caller: Caller,
    body::Json(mut request): body::Json<OpenPlan>,
) -> Result<(StatusCode, Json<protocol::Plan>), Problem> {
    request.idempotency_key = one_key(&headers, request.idempotency_key)?;
    let opened = acts::open(&app, &caller, request).await?;
    let status = match opened.known {
        true => StatusCode::OK,
        false => StatusCode::CREATED,
    };
    Ok((status, Json(acts::shown(&app, &opened.plan).await?)))
}

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
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<CheckPlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    acts::check(&app, &caller, id, request).await.map(Json)
}

/// Says that the work is done. The plan waits to be applied or discarded; whoever works in it opens it again.
#[utoipa::path(
    post, path = "/v1/plans/{id}/seal", operation_id = "seal_plan", tag = "plans", request_body = Option<ChangePlan>,
    responses((status = 200, description = "The plan.", body = protocol::Plan), problems::Change),
)]
pub(crate) async fn seal(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    acts::seal(&app, &caller, id, request).await.map(Json)
}

/// Applies plans to their workspace or their parent: all of them or none.
///
/// The answer has the status 200 whatever the outcome: `done`; `would_be_done` for a dry run; or `conflicted`, and then
/// nothing was changed and `conflicts` lists what is in the way.
#[utoipa::path(
    post, path = "/v1/plans/apply", operation_id = "apply_plans", tag = "plans", request_body = ApplyPlans,
    responses(
        (status = 200, description = "What became of it: done, or conflicted and nothing was changed.", body = PlanOutcome),
        problems::Apply,
    ),
)]
pub(crate) async fn apply(
    State(app): State<Arc<App>>,
    caller: Caller,
    body::Json(request): body::Json<ApplyPlans>,
) -> Result<Json<PlanOutcome>, Problem> {
    acts::apply(&app, &caller, request).await.map(Json)
}

/// Takes an applied plan back, or one changeset of it, and leaves alone what others have changed since.
///
/// The answer has the status 200 whatever the outcome, as for an apply.
#[utoipa::path(
    post, path = "/v1/plans/{id}/undo", operation_id = "undo_plan", tag = "plans", request_body = Option<UndoPlan>,
    responses(
        (status = 200, description = "What became of it: done, or conflicted and nothing was changed.", body = PlanOutcome),
        problems::Undo,
    ),
)]
pub(crate) async fn undo(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<UndoPlan>,
) -> Result<Json<PlanOutcome>, Problem> {
    acts::undo(&app, &caller, id, request).await.map(Json)
}

/// Moves an open plan's sandbox to the workspace's present state, with what was changed in it on top.
///
/// The answer has the status 200 whatever the outcome, as for an apply.
#[utoipa::path(
    post, path = "/v1/plans/{id}/refresh", operation_id = "refresh_plan", tag = "plans",
    request_body = Option<ChangePlan>,
    responses(
        (status = 200, description = "What became of it: done, or conflicted and nothing was changed.", body = PlanOutcome),
        problems::Land,
    ),
)]
pub(crate) async fn refresh(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<PlanOutcome>, Problem> {
    acts::refresh(&app, &caller, id, request).await.map(Json)
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
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<protocol::Plan>, Problem> {
    acts::discard(&app, &caller, id, request).await.map(Json)
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
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<ForgetPlan>,
) -> Result<Json<PlanForgotten>, Problem> {
    acts::forget(&app, &caller, id, request).await.map(Json)
}

/// Takes sandboxes away of plans that are over. One with unapplied work never goes by itself.
#[utoipa::path(
    post, path = "/v1/plans/gc", operation_id = "collect_plans", tag = "plans", request_body = Option<CollectPlans>,
    responses((status = 200, description = "What was or would be freed.", body = PlansCollected), problems::Collect),
)]
pub(crate) async fn collect(
    State(app): State<Arc<App>>,
    body::OptionalJson(request): body::OptionalJson<CollectPlans>,
) -> Result<Json<PlansCollected>, Problem> {
    acts::collect(&app, request).await.map(Json)
}
