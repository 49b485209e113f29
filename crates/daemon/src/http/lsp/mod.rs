//! Language servers over HTTP: which there are, what becomes of them, and what they know.

mod events;
mod queries;
pub(crate) mod servers;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use utoipa::OpenApi;

pub(super) use events::Servers;

use crate::app::App;

/// The paths of language servers.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/lsp/servers", get(servers::list).post(servers::start))
        .route("/v1/lsp/servers/{id}", get(servers::show))
        .route("/v1/lsp/servers/{id}/stop", post(servers::stop))
        .route("/v1/lsp/servers/{id}/restart", post(servers::restart))
        .route("/v1/lsp/servers/{id}/health", get(servers::health))
        .route("/v1/lsp/servers/{id}/log", get(servers::log))
        .route("/v1/lsp/stop", post(servers::stop_all))
        .route("/v1/lsp/config", get(servers::config))
        .route("/v1/lsp/config/trust", post(servers::trust))
        .route("/v1/lsp/events", get(events::follow))
        .merge(queries::router())
}

/// The part that is about the servers themselves.
#[derive(OpenApi)]
#[openapi(
    paths(
        servers::list,
        servers::start,
        servers::show,
        servers::stop,
        servers::restart,
        servers::health,
        servers::log,
        servers::stop_all,
        servers::config,
        servers::trust,
        events::follow,
    ),
    tags((name = "lsp", description = "Language servers that all agents share.")),
)]
struct Description;

/// The part of the description that is about language servers.
pub(super) fn description() -> utoipa::openapi::OpenApi {
    let mut description = Description::openapi();
    description.merge(queries::Description::openapi());
    description
}

/// Whether a POST to this route is a question to a server, of which agents ask thousands.
pub(super) fn is_question(route: &str) -> bool {
    let rest = route.strip_prefix("/v1/lsp/").unwrap_or("/");
    let verb = !rest.contains('/') && !matches!(rest, "servers" | "stop");
    verb || rest == "servers/{id}/request"
}
