//! Rescued content over HTTP: listed, restored and dropped.

use std::sync::Arc;

use ::plans::{Occupied, RestoreOrder};
use axum::extract::{FromRequestParts, Path, State};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use http::StatusCode;
use http::request::Parts;
use protocol::{ErrorCode, RescuedId, RescuedList, RescuedRestored, RestoreRescued};

use super::body;
use super::plans::plan_problem;
use super::problem::Problem;
use crate::app::App;
use crate::plans::wire::{rescued_list_to_wire, rescued_to_wire};

/// The paths of rescued content.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/rescued", get(list))
        .route("/v1/rescued/{id}", delete(drop_it))
        .route("/v1/rescued/{id}/restore", post(restore))
}

/// Content of users that applies and undos could not leave in the workspace, newest first.
#[utoipa::path(
    get, path = "/v1/rescued", operation_id = "list_rescued", tag = "workspaces",
    responses(
        (status = 200, description = "What is kept.", body = RescuedList),
        (status = 500, description = "`sandbox_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<Json<RescuedList>, Problem> {
    match app.plans.rescued().await {
        Ok(list) => Ok(Json(rescued_list_to_wire(&list))),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Puts rescued content back into its workspace, and takes it off the list.
#[utoipa::path(
    post, path = "/v1/rescued/{id}/restore", operation_id = "restore_rescued", tag = "workspaces",
    request_body = Option<RestoreRescued>,
    params(("id" = String, Path, description = "The id of the rescued content.")),
    responses(
        (status = 200, description = "Where it is now.", body = RescuedRestored),
        (status = 404, description = "`rescued_not_found` or `workspace_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`restore_occupied`, `landing_stuck`, `path_not_permitted`, `path_read_only` or \
          `special_file_in_the_way`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 410, description = "`workspace_gone`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 422, description = "`path_not_allowed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    TheRescued(id): TheRescued,
    body::OptionalJson(request): body::OptionalJson<RestoreRescued>,
) -> Result<Json<RescuedRestored>, Problem> {
    let to = match request.to.as_deref().map(str::parse).transpose() {
        Ok(to) => to,
        Err(bad) => return Err(plan_problem(&app.plans, ::plans::PlanError::BadPath(bad)).await),
    };
    let order = RestoreOrder {
        id,
        to,
        occupied: match request.swap {
            true => Occupied::Swap,
            false => Occupied::Refuse,
        },
    };
    match app.plans.restore_rescued(order).await {
        Ok(restored) => Ok(Json(RescuedRestored {
            path: restored.path.to_string(),
            replaced: restored.replaced.as_ref().map(rescued_to_wire),
        })),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// Removes rescued content for good.
#[utoipa::path(
    delete, path = "/v1/rescued/{id}", operation_id = "drop_rescued", tag = "workspaces",
    params(("id" = String, Path, description = "The id of the rescued content.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "`rescued_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 500, description = "`sandbox_failed`", body = protocol::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn drop_it(
    State(app): State<Arc<App>>,
    TheRescued(id): TheRescued,
) -> Result<StatusCode, Problem> {
    match app.plans.drop_rescued(id).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(plan_problem(&app.plans, error).await),
    }
}

/// The rescued content that a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TheRescued(RescuedId);

impl FromRequestParts<Arc<App>> for TheRescued {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let unknown = |detail: String| Problem::new(ErrorCode::RescuedNotFound, detail);
        let Ok(Path(text)) = Path::<String>::from_request_parts(parts, app).await else {
            return Err(unknown("The id is not UTF-8.".to_owned()));
        };
        text.parse().map(Self).map_err(|_| {
            let shown = text.escape_debug();
            unknown(format!("`{shown}` is not the id of rescued content."))
        })
    }
}
