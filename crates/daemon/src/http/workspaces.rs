//! Workspaces over HTTP: list them, forget them, and set their checks.

use std::sync::Arc;

use ::plans::Repair;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{RepairWorkspace, SetWorkspaceChecks, WorkspaceId, WorkspaceList, WorkspaceRepaired};

use super::body;
use super::ids::Id;
use super::plans::problems;
use super::problem::Problem;
use super::routes::routes;
use crate::app::App;
use crate::plans::wire::{checked_checks, repaired_to_wire, workspace_to_wire};

routes! {
    "/v1/workspaces" => get list;
    "/v1/workspaces/{id}" => delete forget;
    "/v1/workspaces/{id}/checks" => put set_checks;
    "/v1/workspaces/{id}/repair" => post repair;
}

/// Lists the workspaces, sorted by path.
#[utoipa::path(
    get, path = "/v1/workspaces", operation_id = "list_workspaces", tag = "workspaces",
    responses((status = 200, description = "The workspaces.", body = WorkspaceList), problems::List),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<WorkspaceList>, Problem> {
    let workspaces = app.plans.workspaces().await?;
    Ok(Json(WorkspaceList {
        workspaces: workspaces.iter().map(workspace_to_wire).collect(),
    }))
}

/// Removes a workspace that has no open or sealed plans.
///
/// Its files aren't touched, and it is registered again when it is next used.
#[utoipa::path(
    delete, path = "/v1/workspaces/{id}", operation_id = "forget_workspace", tag = "workspaces",
    responses((status = 204, description = "It is forgotten."), problems::ForgetWorkspace),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Id(id): Id<WorkspaceId>,
) -> Result<StatusCode, Problem> {
    app.plans.forget_workspace(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets the commands that every new plan of a workspace must pass. They replace the previous ones.
#[utoipa::path(
    put, path = "/v1/workspaces/{id}/checks", operation_id = "set_workspace_checks", tag = "workspaces",
    request_body = SetWorkspaceChecks,
    responses((status = 200, description = "The workspace.", body = protocol::Workspace), problems::FindWorkspace),
)]
pub(crate) async fn set_checks(
    State(app): State<Arc<App>>,
    Id(id): Id<WorkspaceId>,
    body::Json(request): body::Json<SetWorkspaceChecks>,
) -> Result<Json<protocol::Workspace>, Problem> {
    let checks = checked_checks("checks", request.checks)?;
    let workspace = app.plans.set_workspace_checks(id, checks).await?;
    Ok(Json(workspace_to_wire(&workspace)))
}

/// Finishes or rolls back an apply or undo that was left half-way.
///
/// If neither is possible, the state is `stuck`, with the reason. With `abort`, the operation is then
/// abandoned in its current state: everything it holds is kept and listed by `GET /v1/rescued`, and the
/// workspace can be used again.
#[utoipa::path(
    post, path = "/v1/workspaces/{id}/repair", operation_id = "repair_workspace", tag = "workspaces",
    request_body = Option<RepairWorkspace>,
    responses((status = 200, description = "What became of it.", body = WorkspaceRepaired), problems::RepairWorkspace),
)]
pub(crate) async fn repair(
    State(app): State<Arc<App>>,
    Id(id): Id<WorkspaceId>,
    body::OptionalJson(request): body::OptionalJson<RepairWorkspace>,
) -> Result<Json<WorkspaceRepaired>, Problem> {
    let how = match request.abort {
        true => Repair::Abort,
        false => Repair::Recover,
    };
    let repaired = app.plans.repair_workspace(id, how).await?;
    Ok(Json(repaired_to_wire(&repaired)))
}
