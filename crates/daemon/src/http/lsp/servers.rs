//! Language servers themselves: list, start, stop and inspect.
//!
//! A handler that waits for a server waits in its own future. If the caller disconnects, the connection drops the
//! future and the wait with it. Shared work, such as a start that others also wait for, continues.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use http::request::Parts;
use lsp::{ExpectedProcess, ServerGeneration};
use protocol::{
    ChangeServer, ErrorCode, LspConfig, Server, ServerHealth, ServerList, ServerLog, StartServer,
    TrustConfig, Trusted,
};
use serde::Deserialize;

use crate::app::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::language_servers::problems;

/// The id of the server in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerId(pub(super) String);

impl FromRequestParts<Arc<App>> for ServerId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) => Err(Problem::new(ErrorCode::InvalidName, "The id is not UTF-8.")),
        }
    }
}

/// A manual change to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerChange {
    StartAgain,
    Stop,
    Restart,
}

/// Lists all language servers that have been used, sorted by root and name.
#[utoipa::path(
    get, path = "/v1/lsp/servers", operation_id = "list_servers", tag = "lsp",
    responses((status = 200, description = "The servers.", body = ServerList)),
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<ServerList> {
    Json(ServerList {
        servers: app.language_servers.list(),
    })
}

/// Starts the servers for a path, or one of them by name, and waits until they are ready.
#[utoipa::path(
    post, path = "/v1/lsp/servers", operation_id = "start_servers", tag = "lsp", request_body = StartServer,
    responses((status = 200, description = "The servers, which answer.", body = ServerList), problems::Start),
)]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<StartServer>,
) -> Result<Json<ServerList>, Problem> {
    absolute("path", &request.path)?;
    if let Some(workspace) = &request.workspace {
        absolute("workspace", workspace)?;
    }
    let servers = app.language_servers.start(request, &app.life.scope()).await?;
    Ok(Json(ServerList { servers }))
}

/// Returns a language server.
#[utoipa::path(
    get, path = "/v1/lsp/servers/{id}", operation_id = "show_server", tag = "lsp",
    responses((status = 200, description = "The server.", body = Server), problems::Find),
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
) -> Result<Json<Server>, Problem> {
    app.language_servers.find(&id).map(Json)
}

/// Stops a server and waits until its process has ended. It stays stopped until a user starts it.
#[utoipa::path(
    post, path = "/v1/lsp/servers/{id}/stop", operation_id = "stop_server", tag = "lsp",
    request_body = Option<ChangeServer>,
    responses((status = 200, description = "The server, stopped.", body = Server), problems::Change),
)]
pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
    body::OptionalJson(request): body::OptionalJson<ChangeServer>,
) -> Result<Json<Server>, Problem> {
    change(&app, &id, request, ServerChange::Stop).await.map(Json)
}

/// Restarts a server with a new process, and waits until it is ready. Concurrent requests share one restart.
#[utoipa::path(
    post, path = "/v1/lsp/servers/{id}/restart", operation_id = "restart_server", tag = "lsp",
    request_body = Option<ChangeServer>,
    responses((status = 200, description = "The server, which answers.", body = Server), problems::Change),
)]
pub(crate) async fn restart(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
    body::OptionalJson(request): body::OptionalJson<ChangeServer>,
) -> Result<Json<Server>, Problem> {
    change(&app, &id, request, ServerChange::Restart).await.map(Json)
}

/// Stops all servers at once, and waits until their processes have ended. They stay stopped until a user
/// starts them.
#[utoipa::path(
    post, path = "/v1/lsp/stop", operation_id = "stop_servers", tag = "lsp",
    responses(
        (status = 200, description = "Those that had a process. One that does not go is still `stopping`.",
         body = ServerList),
        problems::Process,
    ),
)]
pub(crate) async fn stop_all(State(app): State<Arc<App>>) -> Result<Json<ServerList>, Problem> {
    let servers = app.language_servers.stop_all(&app.life.scope()).await?;
    tracing::info!(count = servers.len(), "all language servers were stopped by hand");
    Ok(Json(ServerList { servers }))
}

/// Checks whether a server is alive and answers requests. This works in every state, even while it restarts.
#[utoipa::path(
    get, path = "/v1/lsp/servers/{id}/health", operation_id = "check_server", tag = "lsp",
    responses((status = 200, description = "How it is.", body = ServerHealth), problems::Find),
)]
pub(crate) async fn health(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
) -> Result<Json<ServerHealth>, Problem> {
    let health = app.language_servers.health(&id).await;
    health.map(Json)
}

/// Returns the recent log of a server, including changes of its state.
#[utoipa::path(
    get, path = "/v1/lsp/servers/{id}/log", operation_id = "show_server_log", tag = "lsp",
    responses((status = 200, description = "The last lines, oldest first.", body = ServerLog), problems::Find),
)]
pub(crate) async fn log(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
) -> Result<Json<ServerLog>, Problem> {
    app.language_servers.log(&id).map(Json)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfigParameters {
    workspace: String,
}

/// Lists the servers configured for a workspace, and whether they can be started here.
#[utoipa::path(
    get, path = "/v1/lsp/config", operation_id = "show_lsp_config", tag = "lsp",
    params(("workspace" = String, Query, description = "The workspace, as an absolute path.")),
    responses((status = 200, description = "The configuration.", body = LspConfig), problems::ReadConfig),
)]
pub(crate) async fn config(
    State(app): State<Arc<App>>,
    Query(parameters): Query<ConfigParameters>,
) -> Result<Json<LspConfig>, Problem> {
    if !FilePath::new(&parameters.workspace).is_absolute() {
        let detail = "In `workspace`: an absolute path is needed.";
        return Err(Problem::new(ErrorCode::InvalidQuery, detail).in_field("workspace"));
    }
    app.language_servers.config(&parameters.workspace).await.map(Json)
}

/// Trusts a repository's configuration, with the content that was shown.
#[utoipa::path(
    post, path = "/v1/lsp/config/trust", operation_id = "trust_lsp_config", tag = "lsp", request_body = TrustConfig,
    responses((status = 200, description = "It is trusted.", body = Trusted), problems::TrustConfig),
)]
pub(crate) async fn trust(
    State(app): State<Arc<App>>,
    body::Json(request): body::Json<TrustConfig>,
) -> Result<Json<Trusted>, Problem> {
    absolute("path", &request.path)?;
    let path = request.path.clone();
    let trusted = app.language_servers.trust(request).await?;
    tracing::info!(
        path,
        "a repository's configuration of language servers was trusted"
    );
    Ok(Json(trusted))
}

/// Starts, stops or restarts a server, if it is still the one that the caller saw.
///
/// Cancel safety: dropping it gives up the wait. What has started continues.
pub(crate) async fn change(
    app: &App,
    id: &str,
    seen: ChangeServer,
    change: ServerChange,
) -> Result<Server, Problem> {
    let scope = app.life.scope();
    let seen = match seen.generation {
        Some(generation) => ExpectedProcess::Exactly(ServerGeneration::from_u64(generation)),
        None => ExpectedProcess::Any,
    };
    let changed = match change {
        ServerChange::StartAgain => app.language_servers.start_again(id, seen, &scope).await?,
        ServerChange::Stop => app.language_servers.stop(id, seen, &scope).await?,
        ServerChange::Restart => app.language_servers.restart(id, seen, &scope).await?,
    };
    tracing::info!(
        server = changed.id,
        ?change,
        "a language server was changed by hand"
    );
    Ok(changed)
}

/// The daemon has its own working directory, so a relative path would be meaningless.
fn absolute(field: &'static str, path: &str) -> Result<(), Problem> {
    if FilePath::new(path).is_absolute() {
        return Ok(());
    }
    let detail = format!("In `{field}`: an absolute path is needed.");
    Err(Problem::new(ErrorCode::InvalidRequest, detail).in_field(field))
}
