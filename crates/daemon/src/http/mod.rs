//! The HTTP interface: its routes, and the layers in front of them.

mod activity;

pub(crate) mod body;
mod boots;
pub(crate) mod breakers;
pub(crate) mod caller;
pub(crate) mod consent;
pub(crate) mod context;
mod events;
mod finish;
pub(crate) mod guard;
pub(crate) mod health;
mod idempotency;
pub(crate) mod ids;
pub(crate) mod jobs;
mod lists;
mod log;
pub(crate) mod log_problem;
pub(crate) mod lsp;
mod openapi;
pub(crate) mod pieces;
mod plans;
pub(crate) mod problem;
mod processes;
mod quarantine;
mod query;
pub(crate) mod refusals;
mod refused_lines;
mod rescued;
mod routes;
mod sessions;
mod short_ids;
mod sse;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::ACCEPT;
use http::{HeaderMap, Method, Uri};
use protocol::ErrorCode;

pub(crate) use body::read_body;
pub(crate) use finish::{REQUEST_ID_HEADER, STUMBLED, catch_panic, finish};
pub use openapi::openapi_json;
pub(crate) use problem::{Problem, blocking};
pub(crate) use refused_lines::RefusedLines;
pub(crate) use sse::{EVENT_STREAM, take_place};

use crate::app::App;
use crate::{mcp, metrics, page};

pub(crate) fn router(app: &Arc<App>) -> Router {
    let for_everybody = Router::new()
        .route("/healthz", get(health::health))
        .route("/readyz", get(health::readiness))
        .route("/openapi.json", get(openapi::show));
    let for_callers = for_callers()
        .merge(mcp::router(app))
        .route_layer(from_fn_with_state(Arc::clone(app), guard::authenticate));
    for_everybody
        .merge(for_callers)
        .merge(page::router())
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        // The last layer is the outermost.
        .layer(from_fn_with_state(Arc::clone(app), guard::admit))
        .layer(from_fn_with_state(Arc::clone(app), finish))
        .with_state(Arc::clone(app))
}

/// The routes for callers with the token, without the layers in front of them.
fn for_callers() -> Router<Arc<App>> {
    Router::new()
        .route("/metrics", get(metrics::show))
        .route("/v1/status", get(health::status))
        .route("/v1/shutdown", post(health::shutdown))
        .route("/v1/page-links", post(health::make_page_link))
        .route("/v1/needs", get(health::needs))
        .route("/v1/ids/{text}", get(short_ids::resolve))
        .route("/v1/activity", get(activity::list))
        .route("/v1/activity/events", get(activity::follow))
        .route("/v1/boots", get(boots::list))
        .route("/v1/config", get(health::config))
        .route("/v1/log", get(log::show))
        .route("/v1/log/check", post(log::check))
        .route("/v1/log/backup", post(log::back_up))
        .route("/v1/log/export", get(log::export))
        .route("/v1/log/quarantine", get(quarantine::list))
        .route(
            "/v1/log/quarantine/{stream}",
            get(quarantine::show).delete(quarantine::forget),
        )
        .route("/v1/clients", get(health::clients))
        .route("/v1/processes", get(processes::list))
        .route("/v1/processes/{pid}", get(processes::explain))
        .route("/v1/breakers", get(breakers::list))
        .route(
            "/v1/breakers/reset",
            post(breakers::reset_all).get(breakers::show_named_reset),
        )
        .route("/v1/breakers/{name}", get(breakers::show))
        .route("/v1/breakers/{name}/events", get(events::list))
        .route("/v1/breakers/{name}/reset", post(breakers::reset))
        .route("/v1/breakers/{name}/force", post(breakers::force))
        .route("/v1/breakers/{name}/record", post(breakers::record))
        .merge(lsp::router())
        .merge(lsp::queries::router())
        .merge(jobs::router())
        .merge(plans::router())
        .merge(sessions::router())
        .merge(context::router())
        .merge(workspaces::router())
        .merge(rescued::router())
}

async fn not_found(headers: HeaderMap, uri: Uri) -> Response {
    // Programs get a problem, and so do clients that accept anything.
    let accept = headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or_default();
    if accept.contains("text/html") {
        return page::not_found(&uri);
    }
    let path = uri.path().escape_debug().to_string();
    Problem::new(ErrorCode::NotFound, format!("There is nothing at `{path}`.")).into_response()
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let path = uri.path().escape_debug().to_string();
    Problem::new(
        ErrorCode::MethodNotAllowed,
        format!("`{path}` does not take {method}."),
    )
}
