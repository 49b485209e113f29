//! Rescued content over HTTP: list, restore and drop.

use std::sync::Arc;

use ::plans::{Occupied, PlanError, RestoreRequest};
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use protocol::{RescuedId, RescuedList, RescuedRestored, RestoreRescued};

use super::body;
use super::ids::Id;
use super::plans::problems;
use super::problem::Problem;
use super::routes::routes;
use crate::app::App;
use crate::plans::wire::{rescued_list_to_wire, rescued_to_wire};

routes! {
    "/v1/rescued" => get list;
    "/v1/rescued/{id}" => delete drop_it;
    "/v1/rescued/{id}/restore" => post restore;
}

/// Lists user content that an apply or undo couldn't leave in the workspace, newest first.
#[utoipa::path(
    get, path = "/v1/rescued", operation_id = "list_rescued", tag = "workspaces",
    responses((status = 200, description = "What is kept.", body = RescuedList), problems::List),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<RescuedList>, Problem> {
    let list = app.plans.rescued().await?;
    Ok(Json(rescued_list_to_wire(&list)))
}

/// Restores rescued content to its workspace, and removes it from the list.
#[utoipa::path(
    post, path = "/v1/rescued/{id}/restore", operation_id = "restore_rescued", tag = "workspaces",
    request_body = Option<RestoreRescued>,
    responses((status = 200, description = "Where it is now.", body = RescuedRestored), problems::Restore),
)]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    Id(id): Id<RescuedId>,
    body::OptionalJson(request): body::OptionalJson<RestoreRescued>,
) -> Result<Json<RescuedRestored>, Problem> {
    let to = request.to.as_deref().map(str::parse).transpose();
    let order = RestoreRequest {
        id,
        to: to.map_err(PlanError::BadPath)?,
        occupied: match request.swap {
            true => Occupied::Swap,
            false => Occupied::Refuse,
        },
    };
    let restored = app.plans.restore_rescued(order).await?;
    Ok(Json(RescuedRestored {
        path: restored.path.to_string(),
        replaced: restored.replaced.as_ref().map(rescued_to_wire),
    }))
}

/// Permanently removes rescued content.
#[utoipa::path(
    delete, path = "/v1/rescued/{id}", operation_id = "drop_rescued", tag = "workspaces",
    responses((status = 204, description = "It is gone."), problems::FindRescued),
)]
pub(crate) async fn drop_it(
    State(app): State<Arc<App>>,
    Id(id): Id<RescuedId>,
) -> Result<StatusCode, Problem> {
    app.plans.drop_rescued(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
