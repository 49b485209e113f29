//! The OpenAPI description, generated from the handlers.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::problem::Problem;
use super::{
    activity, boots, breakers, context, events, health, jobs, log, lsp, plans, processes, quarantine,
    refusals, rescued, sessions, short_ids, workspaces,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tidelock",
        description = "One local daemon on which many coding agents share a machine without racing each other. \
                       Every error is a problem detail (RFC 9457) with a stable `code`; see `/docs/errors`.",
        license(name = "MIT OR Apache-2.0"),
    ),
    paths(
        health::health,
        health::readiness,
        health::status,
        health::shutdown,
        health::make_page_link,
        health::needs,
        short_ids::resolve,
        activity::list,
        activity::follow,
        boots::list,
        health::config,
        log::show,
        log::check,
        log::back_up,
        log::export,
        quarantine::list,
        quarantine::show,
        quarantine::forget,
        health::clients,
        processes::list,
        processes::explain,
        breakers::list,
        breakers::show,
        breakers::reset,
        breakers::reset_all,
        breakers::force,
        breakers::record,
        events::list,
        crate::metrics::show,
        show,
    ),
    components(schemas(
        protocol::BreakerEvent,
        protocol::IdKind,
        protocol::Problem,
        protocol::Resync
    )),
    security(("token" = [])),
    modifiers(&BearerToken),
    tags(
        (name = "daemon", description = "The daemon itself."),
        (name = "breakers", description = "Circuit breakers that all agents share."),
        (name = "processes", description = "Processes that the daemon owns."),
        (name = "log", description = "The durable log: its state, and copies of it."),
        (name = "page", description = "The page for people."),
    ),
)]
struct Description;

/// Describes how callers authenticate.
struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", scheme);
    }
}

pub(super) fn description() -> utoipa::openapi::OpenApi {
    let mut document = Description::openapi();
    document.merge(lsp::Description::openapi());
    document.merge(lsp::queries::Description::openapi());
    document.merge(jobs::Description::openapi());
    document.merge(plans::Description::openapi());
    document.merge(workspaces::Description::openapi());
    document.merge(rescued::Description::openapi());
    document.merge(sessions::Description::openapi());
    document.merge(context::Description::openapi());
    refusals::describe(&mut document);
    document
}

/// The description as served, and as stored in the repository.
///
/// # Errors
/// It can't be serialized as JSON, which would be a bug in one of the types.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&description())?;
    text.push('\n');
    Ok(text)
}

/// Returns this OpenAPI description.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "describe", tag = "daemon", security(()),
    responses((status = 200, description = "The description of this interface.", content_type = "application/json")),
)]
pub(crate) async fn show() -> Result<Response, Problem> {
    // It never changes, takes a while to generate, and anyone may request it.
    static MADE: OnceLock<Bytes> = OnceLock::new();
    let text = match MADE.get() {
        Some(text) => text.clone(),
        None => {
            let text = Bytes::from(openapi_json().map_err(Problem::internal)?);
            MADE.get_or_init(|| text).clone()
        }
    };
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{env, fs};

    use super::*;

    #[test]
    fn the_committed_description_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let current = openapi_json().unwrap();
        if env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::write(&path, &current).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == current,
            "docs/openapi.json is not what the daemon serves; look at the change with \
             `UPDATE_SNAPSHOTS=1 cargo test -p daemon` and `git diff`"
        );
    }
}
