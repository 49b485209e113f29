//! Questions about code, one path for each.
//!
//! A question is a request that changes nothing; it is a POST because it has a body. A caller that goes away drops its
//! question, and the server is told to give it up.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use protocol::{
    CallsAnswer, CodeActionsAnswer, CodeQuery, CompletionsAnswer, DiagnosticsAnswer, EditAnswer, HoverAnswer,
    LocationsAnswer, RawAnswer, RawRequest, SignatureAnswer, SymbolsAnswer,
};
use utoipa::OpenApi;

use super::servers::ServerId;
use crate::app::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::language_servers::{self as answers, Verb};
use crate::metrics::QueryLabels;

/// The paths of questions.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/lsp/servers/{id}/request", post(request))
        .route("/v1/lsp/diagnostics", post(diagnostics))
        .route("/v1/lsp/hover", post(hover))
        .route("/v1/lsp/completions", post(completions))
        .route("/v1/lsp/definition", post(definition))
        .route("/v1/lsp/declaration", post(declaration))
        .route("/v1/lsp/type-definition", post(type_definition))
        .route("/v1/lsp/implementation", post(implementation))
        .route("/v1/lsp/references", post(references))
        .route("/v1/lsp/rename", post(rename))
        .route("/v1/lsp/code-actions", post(code_actions))
        .route("/v1/lsp/format", post(format))
        .route("/v1/lsp/signature", post(signature))
        .route("/v1/lsp/symbols", post(symbols))
        .route("/v1/lsp/workspace-symbols", post(workspace_symbols))
        .route("/v1/lsp/calls", post(calls))
}

/// The part of the description that is about questions.
#[derive(OpenApi)]
#[openapi(paths(
    request,
    diagnostics,
    hover,
    completions,
    definition,
    declaration,
    type_definition,
    implementation,
    references,
    rename,
    code_actions,
    format,
    signature,
    symbols,
    workspace_symbols,
    calls,
))]
pub(super) struct Description;

/// A handler that asks one question.
macro_rules! question {
    ($(#[$doc:meta])* $name:ident, $verb:ident, $path:literal, $id:literal, $answer:ident, $convert:path, $takes:literal) => {
        $(#[$doc])*
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = "lsp",
            request_body(content = CodeQuery, description = $takes),
            responses(
                (status = 200, description = "The answer, which may be that there is nothing.", body = $answer),
                (status = 404, description = "`no_server_for_file` or `server_not_found`", body = protocol::Problem,
                 content_type = "application/problem+json"),
                (status = 409, description = "`server_stopped`", body = protocol::Problem,
                 content_type = "application/problem+json"),
                (status = 422, description = "`file_not_usable`, `position_invalid` or `invalid_request`",
                 body = protocol::Problem, content_type = "application/problem+json"),
                (status = 424, description = "`server_not_installed`", body = protocol::Problem,
                 content_type = "application/problem+json"),
                (status = 501, description = "`query_unsupported`", body = protocol::Problem,
                 content_type = "application/problem+json"),
                (status = 502, description = "`server_failed`, `server_error` or `server_protocol`",
                 body = protocol::Problem, content_type = "application/problem+json"),
                (status = 503, description = "`server_not_ready` or `server_restarting`", body = protocol::Problem,
                 content_type = "application/problem+json"),
                (status = 504, description = "`server_timeout`", body = protocol::Problem,
                 content_type = "application/problem+json"),
            ),
        )]
        async fn $name(
            State(app): State<Arc<App>>,
            body::Json(query): body::Json<CodeQuery>,
        ) -> Result<Json<$answer>, Problem> {
            let scope = app.life.scope();
            let asked_at = app.clock.now();
            let answered = app.language_servers.ask(Verb::$verb, query, &scope).await?;
            let labels = QueryLabels::new(stringify!($name), &answered);
            let elapsed = app.clock.now().saturating_duration_since(asked_at);
            app.metrics.query_answered(labels, elapsed);
            Ok(Json($convert(answered)))
        }
    };
}

question!(
    /// What is wrong with a file, as it is on disk now. All servers of its language are asked.
    diagnostics,
    Diagnostics,
    "/v1/lsp/diagnostics",
    "diagnostics",
    DiagnosticsAnswer,
    answers::diagnostics,
    "Takes `path` and what all questions take."
);
question!(
    /// What stands at a place.
    hover,
    Hover,
    "/v1/lsp/hover",
    "hover",
    HoverAnswer,
    answers::hover,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// What could stand at a place.
    completions,
    Completions,
    "/v1/lsp/completions",
    "completions",
    CompletionsAnswer,
    answers::completions,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// Where a thing is defined.
    definition,
    Definition,
    "/v1/lsp/definition",
    "definition",
    LocationsAnswer,
    answers::locations,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// Where a thing is declared.
    declaration,
    Declaration,
    "/v1/lsp/declaration",
    "declaration",
    LocationsAnswer,
    answers::locations,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// Where the type of a thing is defined.
    type_definition,
    TypeDefinition,
    "/v1/lsp/type-definition",
    "type_definition",
    LocationsAnswer,
    answers::locations,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// What implements a thing.
    implementation,
    Implementation,
    "/v1/lsp/implementation",
    "implementation",
    LocationsAnswer,
    answers::locations,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// Where a thing is used.
    references,
    References,
    "/v1/lsp/references",
    "references",
    LocationsAnswer,
    answers::locations,
    "Takes `path`, `line`, `column`, `without_declaration` and what all questions take."
);
question!(
    /// What would have to be edited for another name. Nothing is changed.
    rename,
    Rename,
    "/v1/lsp/rename",
    "rename",
    EditAnswer,
    answers::edit,
    "Takes `path`, `line`, `column`, `new_name` and what all questions take."
);
question!(
    /// What the servers could do about a piece of code. Nothing is changed.
    code_actions,
    CodeActions,
    "/v1/lsp/code-actions",
    "code_actions",
    CodeActionsAnswer,
    answers::code_actions,
    "Takes `path`, `line`, `column`, `end_line`, `end_column`, `kinds` and what all questions take."
);
question!(
    /// What would have to be edited for a well-formatted file, or a part of it. Nothing is changed.
    format,
    Format,
    "/v1/lsp/format",
    "format",
    EditAnswer,
    answers::edit,
    "Takes `path`; for a part `line`, `column`, `end_line`, `end_column` and what all questions take."
);
question!(
    /// What can be passed to the call around a place.
    signature,
    Signature,
    "/v1/lsp/signature",
    "signature",
    SignatureAnswer,
    answers::signatures,
    "Takes `path`, `line`, `column` and what all questions take."
);
question!(
    /// What a file defines.
    symbols,
    Symbols,
    "/v1/lsp/symbols",
    "document_symbols",
    SymbolsAnswer,
    answers::symbols,
    "Takes `path` and what all questions take."
);
question!(
    /// What in the workspace has such a name.
    workspace_symbols,
    WorkspaceSymbols,
    "/v1/lsp/workspace-symbols",
    "workspace_symbols",
    SymbolsAnswer,
    answers::symbols,
    "Takes `path` (a file or a directory), `query` and what all questions take."
);
question!(
    /// Who calls a thing, or whom it calls.
    calls,
    Calls,
    "/v1/lsp/calls",
    "calls",
    CallsAnswer,
    answers::calls,
    "Takes `path`, `line`, `column`, `direction` and what all questions take."
);

/// Sends a request of the protocol itself, for what has no path of its own.
///
/// Positions and shapes are the protocol's. It is sent once, since nobody knows what it does: if the server goes away
/// meanwhile, the answer is `server_restarting`.
#[utoipa::path(
    post, path = "/v1/lsp/servers/{id}/request", operation_id = "request_of_server", tag = "lsp",
    params(("id" = String, Path, description = "The id of the server.")),
    request_body = RawRequest,
    responses(
        (status = 200, description = "What the server answered.", body = RawAnswer),
        (status = 404, description = "`server_not_found`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 409, description = "`server_stopped`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 502, description = "`server_error`", body = protocol::Problem, content_type = "application/problem+json"),
        (status = 503, description = "`server_restarting`", body = protocol::Problem,
         content_type = "application/problem+json"),
        (status = 504, description = "`server_timeout`", body = protocol::Problem,
         content_type = "application/problem+json"),
    ),
)]
async fn request(
    State(app): State<Arc<App>>,
    ServerId(id): ServerId,
    body::Json(request): body::Json<RawRequest>,
) -> Result<Json<RawAnswer>, Problem> {
    let scope = app.life.scope();
    let answer = app.language_servers.request(&id, request, &scope).await?;
    Ok(Json(answer))
}
