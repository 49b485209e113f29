//! Changes to plans: open, check, seal, apply, undo, refresh, discard and forget.
//!
//! A conflict is a result, not a problem: nothing was changed, and the response says what is in the way. So it has the
//! status 200 and `outcome: conflicted`, even in a dry run.

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

/// Opens a plan: captures the workspace in its current state and creates a sandbox from it.
///
/// When the request returns, commands can run in the sandbox (`POST /v1/jobs` with `command.plan`), and its
/// files can be read and written. A second request with the same idempotency key returns the same plan.
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

/// Runs the checks of a plan that haven't passed for its current content.
///
/// Each check is a job, and they run one after another. The request returns when the jobs are submitted; each
/// check has the id of its job. Checks that are already running continue. To wait for a result, use `GET
/// /v1/jobs/{id}?wait_ms=`; the check is up to date when it returns. Changes that a check makes in the
/// sandbox are recorded like any others, and make the check outdated.
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

/// Seals a plan, which marks its work as finished.
///
/// The plan can then be applied or discarded. Working in it opens it again.
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

/// Applies plans to their workspace or parent: either all of them or none.
///
/// The status is 200 for every outcome: `done`, `would_be_done` for a dry run, or `conflicted`. If it is
/// `conflicted`, nothing was changed and `conflicts` lists the conflicts.
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

/// Undoes an applied plan, or one changeset of it.
///
/// Changes that others made since are kept. The status is 200 for every outcome, as for an apply.
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

/// Updates an open plan's sandbox to the current state of the workspace.
///
/// The plan's changes are kept on top. The status is 200 for every outcome, as for an apply.
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

/// Discards a plan.
///
/// A plan with unapplied work is kept unless `even_with_work` is true.
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

/// Permanently removes a plan that was applied, undone or discarded.
///
/// This removes its changes, their content unless something else uses it, and the record of applying it. The
/// plan can no longer be undone.
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

/// Removes sandboxes of plans that were applied, undone or discarded.
///
/// A sandbox with unapplied work is never removed automatically.
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
