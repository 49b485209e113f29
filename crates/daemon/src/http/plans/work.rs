//! Work in a plan: its changesets, and writes to its sandbox.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{ChangeFiles, ChangesetId, ChangesetList, FilesChanged, PlanId, StartChangeset};

use super::problems;
use crate::app::App;
use crate::http::body;
use crate::http::caller::Caller;
use crate::http::ids::{Id, Ids};
use crate::http::problem::Problem;
use crate::plans::acts;
use crate::plans::wire::changeset_to_wire;

/// Writes to the sandbox of a plan, and records the changes as they happen.
///
/// The operations run in order. If one fails, the operations before it stay and are recorded, and the
/// response is the problem for the one that failed.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changes", operation_id = "change_plan_files", tag = "plans",
    request_body = ChangeFiles,
    responses((status = 200, description = "What was recorded.", body = FilesChanged), problems::WriteFiles),
)]
pub(crate) async fn change_files(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    caller: Caller,
    body::Json(request): body::Json<ChangeFiles>,
) -> Result<Json<FilesChanged>, Problem> {
    acts::change_files(&app, &caller, id, request).await.map(Json)
}

/// Lists the changesets of a plan, oldest first, without their changes.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets", operation_id = "list_changesets", tag = "plans",
    responses((status = 200, description = "The changesets.", body = ChangesetList), problems::Read),
)]
pub(crate) async fn changesets(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
) -> Result<Json<ChangesetList>, Problem> {
    acts::changesets(&app, id).await.map(Json)
}

/// Starts a changeset and makes it the caller's current one, in one step.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets", operation_id = "start_changeset", tag = "plans",
    request_body = Option<StartChangeset>,
    responses((status = 201, description = "The changeset.", body = protocol::Changeset), problems::Change),
)]
pub(crate) async fn start_changeset(
    State(app): State<Arc<App>>,
    Id(id): Id<PlanId>,
    caller: Caller,
    body::OptionalJson(request): body::OptionalJson<StartChangeset>,
) -> Result<(StatusCode, Json<protocol::Changeset>), Problem> {
    let started = acts::start_changeset(&app, &caller, id, request).await?;
    Ok((StatusCode::CREATED, Json(started)))
}

/// Returns a changeset with its changes, in the order they took effect.
#[utoipa::path(
    get, path = "/v1/plans/{id}/changesets/{changeset}", operation_id = "show_changeset", tag = "plans",
    responses((status = 200, description = "The changeset.", body = protocol::Changeset), problems::ReadChangeset),
)]
pub(crate) async fn changeset(
    State(app): State<Arc<App>>,
    Ids(plan, id): Ids<PlanId, ChangesetId>,
) -> Result<Json<protocol::Changeset>, Problem> {
    let changeset = app.plans.changeset(plan, id).await?;
    Ok(Json(changeset_to_wire(&changeset)))
}

/// Closes a changeset, so that it accepts no more changes.
///
/// Closing it again has no effect.
#[utoipa::path(
    post, path = "/v1/plans/{id}/changesets/{changeset}/close", operation_id = "close_changeset", tag = "plans",
    responses((status = 200, description = "The changeset.", body = protocol::Changeset), problems::CloseChangeset),
)]
pub(crate) async fn close_changeset(
    State(app): State<Arc<App>>,
    Ids(plan, id): Ids<PlanId, ChangesetId>,
) -> Result<Json<protocol::Changeset>, Problem> {
    let changeset = app.plans.close_changeset(plan, id).await?;
    Ok(Json(changeset_to_wire(&changeset)))
}
