//! Plans over HTTP: opened, worked in, looked at, followed, checked, applied, taken back, and given up.

mod acts;
mod change;
mod check;
mod events;
mod history;
mod look;
mod open;
mod problems;
mod show_diff;
mod work;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path};
use axum::routing::{get, post};
use http::request::Parts;
use protocol::{ChangesetId, ErrorCode, PlanId};
use utoipa::OpenApi;

pub(crate) use look::read_file as read_plan_file;
pub(super) use open::checked_checks;
pub(crate) use open::to_new_plan;
pub(crate) use problems::plan_problem;
pub(super) use problems::sentence;

use super::problem::Problem;
use crate::app::App;

/// The paths of plans.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/plans", get(look::list).post(open::open))
        .route("/v1/plans/strategies", get(look::strategies))
        .route("/v1/plans/events", get(events::follow))
        .route("/v1/plans/apply", post(acts::apply))
        .route("/v1/plans/gc", post(acts::collect))
        .route("/v1/plans/{id}", get(look::show))
        .route("/v1/plans/{id}/seal", post(change::seal))
        .route("/v1/plans/{id}/discard", post(change::discard))
        .route("/v1/plans/{id}/forget", post(change::forget))
        .route("/v1/plans/{id}/refresh", post(acts::refresh))
        .route("/v1/plans/{id}/undo", post(acts::undo))
        .route("/v1/plans/{id}/check", post(check::check))
        .route("/v1/plans/{id}/diff", get(show_diff::diff))
        .route("/v1/plans/{id}/file", get(look::file))
        .route("/v1/plans/{id}/changes", post(work::change_files))
        .route(
            "/v1/plans/{id}/changesets",
            get(work::changesets).post(work::start_changeset),
        )
        .route("/v1/plans/{id}/changesets/{changeset}", get(work::changeset))
        .route(
            "/v1/plans/{id}/changesets/{changeset}/close",
            post(work::close_changeset),
        )
        .route("/v1/plans/{id}/history", get(history::history))
        .route("/v1/plans/{id}/events", get(history::follow))
}

/// The part of the description that is about plans.
#[derive(OpenApi)]
#[openapi(
    paths(
        open::open,
        look::list,
        look::strategies,
        look::show,
        look::file,
        show_diff::diff,
        change::seal,
        change::discard,
        change::forget,
        acts::apply,
        acts::undo,
        acts::refresh,
        acts::collect,
        check::check,
        work::change_files,
        work::changesets,
        work::start_changeset,
        work::changeset,
        work::close_changeset,
        history::history,
        history::follow,
        events::follow,
        super::workspaces::list,
        super::workspaces::forget,
        super::workspaces::set_checks,
        super::workspaces::repair,
        super::rescued::list,
        super::rescued::restore,
        super::rescued::drop_it,
    ),
    components(schemas(protocol::PlanMoment)),
    tags(
        (name = "plans", description = "Isolated pieces of work on a workspace, applied whole or not at all."),
        (name = "workspaces", description = "Directories that plans are for."),
    ),
)]
struct Description;

/// The part of the description that is about plans.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}

/// The plan that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThePlan(PlanId);

impl FromRequestParts<Arc<App>> for ThePlan {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(no_plan("The id of the plan is not UTF-8."));
        };
        plan_id(&text).map(Self)
    }
}

/// The changeset that a request is about, and its plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheChangeset(PlanId, ChangesetId);

impl FromRequestParts<Arc<App>> for TheChangeset {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let Ok(Path((plan, changeset))) = Path::<(String, String)>::from_request_parts(parts, app).await
        else {
            return Err(no_plan("The id of the plan or of the changeset is not UTF-8."));
        };
        Ok(Self(plan_id(&plan)?, changeset_id(&changeset)?))
    }
}

/// What is not the id of a plan is not the id of one that is there.
fn plan_id(text: &str) -> Result<PlanId, Problem> {
    text.parse()
        .map_err(|_| no_plan(format!("`{}` is not the id of a plan.", text.escape_debug())))
}

fn changeset_id(text: &str) -> Result<ChangesetId, Problem> {
    text.parse().map_err(|_| {
        let detail = format!("`{}` is not the id of a changeset.", text.escape_debug());
        Problem::new(ErrorCode::ChangesetNotFound, detail)
    })
}

fn no_plan(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::PlanNotFound, detail)
}
