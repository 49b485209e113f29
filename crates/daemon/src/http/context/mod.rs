//! Context over HTTP: questions about code, and the indexes that make them quick.

mod ask;
mod indexes;
mod problems;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

pub(crate) use ask::ask;
pub(crate) use indexes::{rebuild, remove};

use crate::app::App;

/// The paths of context.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/context", post(ask::ask))
        .route("/v1/context/strategies", get(indexes::strategies))
        .route("/v1/context/indexes", get(indexes::list))
        .route("/v1/context/indexes/rebuild", post(indexes::rebuild))
        .route("/v1/context/indexes/remove", post(indexes::remove))
}

/// The part of the description that is about context.
#[derive(OpenApi)]
#[openapi(
    paths(ask::ask, indexes::strategies, indexes::list, indexes::rebuild, indexes::remove),
    tags((name = "context", description = "The pieces of a code base that belong to a question, within a budget.")),
)]
struct Description;

/// The part of the description that is about context.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    Description::openapi()
}
