//! Language servers over HTTP: list them, control them, and query them.

mod events;
pub(super) mod queries;
pub(crate) mod servers;

pub(super) use events::Servers;

use protocol::CodeVerb;

use super::routes::routes;

routes! {
    "/v1/lsp/servers" => get servers::list, post servers::start;
    "/v1/lsp/servers/{id}" => get servers::show;
    "/v1/lsp/servers/{id}/stop" => post servers::stop;
    "/v1/lsp/servers/{id}/restart" => post servers::restart;
    "/v1/lsp/servers/{id}/health" => get servers::health;
    "/v1/lsp/servers/{id}/log" => get servers::log;
    "/v1/lsp/stop" => post servers::stop_all;
    "/v1/lsp/config" => get servers::config;
    "/v1/lsp/config/trust" => post servers::trust;
    "/v1/lsp/events" => get events::follow;
    describe(
        tags((name = "lsp", description = "Language servers that all agents share.")),
    )
}

/// Whether a POST to this route is a query to a server. Agents send thousands of these.
pub(super) fn is_question(route: &str) -> bool {
    let rest = route.strip_prefix("/v1/lsp/").unwrap_or_default();
    CodeVerb::named(rest).is_some() || rest == "servers/{id}/request"
}
