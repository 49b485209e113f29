//! Indexes and strategies over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{
    ChangeContextIndex, ContextIndex, ContextIndexList, ContextIndexRemoved, ContextStrategyList,
};

use super::problems;
use crate::app::App;
use crate::context::acts::directory_of;
use crate::context::wire;
use crate::http::body;
use crate::http::problem::Problem;

/// Lists the available strategies and their settings.
#[utoipa::path(
    get, path = "/v1/context/strategies", operation_id = "list_context_strategies", tag = "context",
    responses(
        (status = 200, description = "The strategies, in the order in which they are reported.",
         body = ContextStrategyList),
    ),
)]
pub(crate) async fn strategies(State(app): State<Arc<App>>) -> Json<ContextStrategyList> {
    let strategies = app.contexts.strategies().into_iter();
    Json(ContextStrategyList {
        strategies: strategies.map(wire::strategy_info_to_wire).collect(),
    })
}

/// Lists the indexes that have been used since the daemon started.
#[utoipa::path(
    get, path = "/v1/context/indexes", operation_id = "list_context_indexes", tag = "context",
    responses((status = 200, description = "The indexes, by root.", body = ContextIndexList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<ContextIndexList> {
    Json(ContextIndexList {
        indexes: app.contexts.indexes().iter().map(wire::index_to_wire).collect(),
    })
}

/// Rebuilds the index of a workspace from scratch, in the background. Questions are still answered in the
/// meantime.
#[utoipa::path(
    post, path = "/v1/context/indexes/rebuild", operation_id = "rebuild_context_index", tag = "context",
    request_body = ChangeContextIndex,
    responses(
        (status = 200, description = "The index, which is being made.", body = ContextIndex),
        problems::ChangeIndex,
    ),
)]
pub(crate) async fn rebuild(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<ChangeContextIndex>,
) -> Result<Json<ContextIndex>, Problem> {
    let directory = directory_of(&request.directory)?;
    let index = app.contexts.rebuild(directory).await?;
    Ok(Json(wire::index_to_wire(&index)))
}

/// Removes the index of a workspace. The next question about the workspace builds it again.
#[utoipa::path(
    post, path = "/v1/context/indexes/remove", operation_id = "remove_context_index", tag = "context",
    request_body = ChangeContextIndex,
    responses(
        (status = 200, description = "Whether there was one.", body = ContextIndexRemoved),
        problems::ChangeIndex,
    ),
)]
pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<ChangeContextIndex>,
) -> Result<Json<ContextIndexRemoved>, Problem> {
    let directory = directory_of(&request.directory)?;
    let (root, removed) = app.contexts.forget(directory, &app.life.scope()).await?;
    Ok(Json(ContextIndexRemoved {
        root: root.display().to_string(),
        removed,
    }))
}
