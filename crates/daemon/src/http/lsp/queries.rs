//! Questions about code, with one path for each kind.
//!
//! A question changes nothing; it is a POST because it has a body. If the caller disconnects, its question is dropped,
//! and the server is asked to cancel it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use protocol::{
    CallsAnswer, CodeActionsAnswer, CodeAnswer, CodeQuery, CodeVerb, CompletionsAnswer, DiagnosticsAnswer,
    EditAnswer, HoverAnswer, LocationsAnswer, RawAnswer, RawRequest, SignatureAnswer, SymbolsAnswer,
};

use super::servers::ServerId;
use crate::app::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::routes::routes;
use crate::language_servers::{self, problems};

/// Declares the route and the handler of each question.
macro_rules! questions {
    ($($name:ident = $verb:ident, $path:literal as $id:literal -> $answer:ident;)*) => {
        routes! {
            "/v1/lsp/servers/{id}/request" => post request;
            $($path => post $name;)*
        }

        $(
            #[utoipa::path(
                post, path = $path, operation_id = $id, tag = "lsp",
                summary = CodeVerb::$verb.description(),
                request_body(
                    content = CodeQuery,
                    description = taken(CodeVerb::$verb)
                ),
                responses(
                    (status = 200, description = "The answer, which may be that there is nothing.", body = $answer),
                    problems::Ask,
                ),
            )]
            async fn $name(
                State(app): State<Arc<App>>,
                body::Json(query): body::Json<CodeQuery>,
            ) -> Result<Json<CodeAnswer>, Problem> {
                language_servers::ask(&app, CodeVerb::$verb, query).await.map(Json)
            }
        )*
    };
}

questions! {
    diagnostics = Diagnostics, "/v1/lsp/diagnostics" as "diagnostics" -> DiagnosticsAnswer;
    hover = Hover, "/v1/lsp/hover" as "hover" -> HoverAnswer;
    completions = Completions, "/v1/lsp/completions" as "completions" -> CompletionsAnswer;
    definition = Definition, "/v1/lsp/definition" as "definition" -> LocationsAnswer;
    declaration = Declaration, "/v1/lsp/declaration" as "declaration" -> LocationsAnswer;
    type_definition = TypeDefinition, "/v1/lsp/type-definition" as "type_definition" -> LocationsAnswer;
    implementation = Implementation, "/v1/lsp/implementation" as "implementation" -> LocationsAnswer;
    references = References, "/v1/lsp/references" as "references" -> LocationsAnswer;
    rename = Rename, "/v1/lsp/rename" as "rename" -> EditAnswer;
    code_actions = CodeActions, "/v1/lsp/code-actions" as "code_actions" -> CodeActionsAnswer;
    format = Format, "/v1/lsp/format" as "format" -> EditAnswer;
    signature = Signature, "/v1/lsp/signature" as "signature" -> SignatureAnswer;
    symbols = Symbols, "/v1/lsp/symbols" as "document_symbols" -> SymbolsAnswer;
    workspace_symbols = WorkspaceSymbols, "/v1/lsp/workspace-symbols" as "workspace_symbols" -> SymbolsAnswer;
    calls = Calls, "/v1/lsp/calls" as "calls" -> CallsAnswer;
}

fn taken(verb: CodeVerb) -> String {
    let members: Vec<String> = verb.takes().iter().map(|name| format!("`{name}`")).collect();
    format!("Takes {}, and what all questions take.", members.join(", "))
}

/// Sends a raw LSP request, for methods without a path of their own.
///
/// Positions and types are those of LSP. The request is sent only once, because its effects are unknown: if
/// the server goes away in the meantime, the response is `server_restarting`.
#[utoipa::path(
    post, path = "/v1/lsp/servers/{id}/request", operation_id = "request_of_server", tag = "lsp",
    request_body = RawRequest,
    responses((status = 200, description = "What the server answered.", body = RawAnswer), problems::Request),
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
