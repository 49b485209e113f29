//! Plans are applied, taken back, moved to the present, and cleared away.
//!
//! A conflict is an answer and no problem: nothing was changed, and the answer says what is in the way. So it has the
//! status 200 and `outcome: conflicted`, also in a dry run.

use std::sync::Arc;
use std::time::Duration;

use ::plans::{ApplyRequest, LandingOutcome, ManifestId, PlanError, UndoRequest};
use axum::Json;
use axum::extract::State;
use protocol::{
    ApplyPlans, ChangePlan, CollectPlans, CommitPlans, PlanId, PlanOutcome, PlansCollected, UndoPlan,
};

use super::problems;
use crate::app::App;
use crate::http::actor::Actor;
use crate::http::body;
use crate::http::consent::{Peer, may_apply};
use crate::http::ids::{Id, id_in, id_of};
use crate::http::problem::Problem;
use crate::jobs::wire::invalid;
use crate::plans;
use crate::plans::wire;

/// For how long sandboxes of plans that are over are kept, unless the caller says so.
const USUAL_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// How many plans can be applied together. Each of them is read whole.
const TOGETHER: usize = 100;
/// The longest message of a commit.
const MESSAGE_LIMIT_BYTES: usize = 64 * 1024;

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
    Actor(actor): Actor,
    peer: Peer,
    body::Json(request): body::Json<ApplyPlans>,
) -> Result<Json<PlanOutcome>, Problem> {
    let plans = several(&request.plans)?;
    if !request.dry_run {
        may_apply(&app, peer, &plans).await?;
    }
    let order = ApplyRequest {
        plans,
        seen: seen_in(&request)?,
        by: actor.into(),
        run: wire::run_of(request.dry_run),
        commit: request.commit.map(message).transpose()?,
    };
    answer(&app, plans::apply(&app, order).await).await
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
    Id(plan): Id<PlanId>,
    Actor(actor): Actor,
    peer: Peer,
    body::OptionalJson(request): body::OptionalJson<UndoPlan>,
) -> Result<Json<PlanOutcome>, Problem> {
    if !request.dry_run {
        may_apply(&app, peer, &[plan]).await?;
    }
    let order = UndoRequest {
        plan,
        changeset: request.changeset.as_deref().map(id_of).transpose()?,
        seen: request.version,
        by: actor.into(),
        run: wire::run_of(request.dry_run),
    };
    answer(&app, plans::undo(&app, order).await).await
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
    Id(plan): Id<PlanId>,
    Actor(actor): Actor,
    body::OptionalJson(request): body::OptionalJson<ChangePlan>,
) -> Result<Json<PlanOutcome>, Problem> {
    let outcome = plans::refresh(&app, plan, actor.into(), request.version).await;
    answer(&app, outcome).await
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
    let age = request.older_than_ms.map_or(USUAL_AGE, Duration::from_millis);
    let collected = plans::collect(&app, age, wire::run_of(request.dry_run)).await?;
    Ok(Json(collected))
}

async fn answer(app: &App, outcome: Result<LandingOutcome, PlanError>) -> Result<Json<PlanOutcome>, Problem> {
    let outcome = wire::outcome_to_wire(&app.plans, &app.durable.machines, &outcome?).await?;
    Ok(Json(outcome))
}

fn several(ids: &[String]) -> Result<Vec<PlanId>, Problem> {
    if ids.is_empty() {
        return Err(invalid("plans", "is empty"));
    }
    if ids.len() > TOGETHER {
        return Err(invalid("plans", &format!("has more than {TOGETHER} plans")));
    }
    let mut plans = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let field = format!("plans.{index}");
        let plan = id_in(&field, id)?;
        if plans.contains(&plan) {
            return Err(invalid(&field, "is there twice"));
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// What the caller saw in each plan; nothing if it has not looked.
fn seen_in(request: &ApplyPlans) -> Result<Vec<ManifestId>, Problem> {
    if !request.seen.is_empty() && request.seen.len() != request.plans.len() {
        return Err(invalid("seen", "does not have one fingerprint for each plan"));
    }
    let seen = request.seen.iter().enumerate().map(|(index, text)| {
        text.parse()
            .map_err(|_| invalid(&format!("seen.{index}"), "is not a fingerprint"))
    });
    seen.collect()
}

/// The message of a commit, once it has been checked.
fn message(commit: CommitPlans) -> Result<CommitPlans, Problem> {
    match &commit.message {
        Some(text) if text.trim().is_empty() => Err(invalid("commit.message", "is empty")),
        Some(text) if text.len() > MESSAGE_LIMIT_BYTES => {
            let why = format!("has more than {MESSAGE_LIMIT_BYTES} bytes");
            Err(invalid("commit.message", &why))
        }
        Some(text) if text.contains('\0') => Err(invalid("commit.message", "has a NUL in it")),
        _ => Ok(commit),
    }
}
