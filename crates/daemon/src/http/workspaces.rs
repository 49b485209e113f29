//! Workspaces over HTTP: listed, forgotten, and given checks.

use std::sync::Arc;

use ::plans::Repair;
use axum::extract::{FromRequestParts, Path, State};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use http::StatusCode;
use http::request::Parts;
use protocol::{
    ErrorCode, RepairWorkspace, SetWorkspaceChecks, WorkspaceId, WorkspaceList, WorkspaceRepaired,
};

use super::body;
use super::plans::{checked_checks, plan_problem};
use super::problem::Problem;
use crate::app::App;
use crate::plans::wire::{repaired_to_wire, workspace_to_wire};

/// The paths of workspaces.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/workspaces", get(list))
        .route("/v1/workspaces/{id}", delete(forget))
        .route("/v1/workspaces/{id}/checks", put(set_checks))
        .route("/v1/workspaces/{id}/repair", post(repair))
}

/// The workspaces, by path.
#[utoipa::path(
    get, path = "/v1/workspaces", operation_id = "list_workspaces", tag = "workspaces",
    responses(
        (status = 200, description = "The workspaces.", body = WorkspaceList),
        (status = 500, description = "`log_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<WorkspaceList>, Problem> {
    match app.plans.workspaces().await {
        Ok(workspaces) => Ok(Json(WorkspaceList {
            workspaces: workspaces.iter().map(workspace_to_wire).collect(),
        })),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Forgets a workspace whose plans are all over. Its files are not touched, and it is registered again at its next use.
#[utoipa::path(
    delete, path = "/v1/workspaces/{id}", operation_id = "forget_workspace", tag = "workspaces",
    params(("id" = String, Path, description = "The id of the workspace.")),
    responses(
        (status = 204, description = "It is forgotten."),
        (status = 404, description = "`workspace_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`workspace_in_use`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    TheWorkspace(id): TheWorkspace,
) -> Result<StatusCode, Problem> {
    match app.plans.forget_workspace(id).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Sets the commands that every new plan of a workspace must pass, in place of those that there were.
#[utoipa::path(
    put, path = "/v1/workspaces/{id}/checks", operation_id = "set_workspace_checks", tag = "workspaces",
    request_body = SetWorkspaceChecks,
    params(("id" = String, Path, description = "The id of the workspace.")),
    responses(
        (status = 200, description = "The workspace.", body = protocol::Workspace),
        (status = 404, description = "`workspace_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 422, description = "`invalid_request`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn set_checks(
    State(app): State<Arc<App>>,
    TheWorkspace(id): TheWorkspace,
    body::Json(request): body::Json<SetWorkspaceChecks>,
) -> Result<Json<protocol::Workspace>, Problem> {
    let checks = checked_checks("checks", request.checks)?;
    match app.plans.set_workspace_checks(id, checks).await {
        Ok(workspace) => Ok(Json(workspace_to_wire(&workspace))),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Finishes an apply or undo that was left half-way, or takes it back.
///
/// If neither is possible, the answer is `stuck` and says why. With `abort` it is given up as it is then: everything that it
/// holds is kept and listed by `GET /v1/rescued`, and the workspace can be used again.
#[utoipa::path(
    post, path = "/v1/workspaces/{id}/repair", operation_id = "repair_workspace", tag = "workspaces",
    request_body = Option<RepairWorkspace>,
    params(("id" = String, Path, description = "The id of the workspace.")),
    responses(
        (status = 200, description = "What became of it.", body = WorkspaceRepaired),
        (status = 404, description = "`workspace_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 503, description = "`log_refusing` or `shutting_down`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn repair(
    State(app): State<Arc<App>>,
    TheWorkspace(id): TheWorkspace,
    body::OptionalJson(request): body::OptionalJson<RepairWorkspace>,
) -> Result<Json<WorkspaceRepaired>, Problem> {
    let how = match request.abort {
        true => Repair::Abort,
        false => Repair::Recover,
    };
    match app.plans.repair_workspace(id, how).await {
        Ok(repaired) => Ok(Json(repaired_to_wire(&repaired))),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// The workspace that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheWorkspace(WorkspaceId);

impl FromRequestParts<Arc<App>> for TheWorkspace {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let no_workspace = |detail: String| Problem::new(ErrorCode::WorkspaceNotFound, detail);
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(no_workspace("The id of the workspace is not UTF-8.".to_owned()));
        };
        // What is not the id of a workspace is not the id of one that is there.
        text.parse().map(Self).map_err(|_| {
            let shown = text.escape_debug();
            no_workspace(format!("`{shown}` is not the id of a workspace."))
        })
    }
}
