//! Questions about code, one path for each.
//!
//! A question is a request that changes nothing; it is a POST because it has a body. A caller that goes away drops its
//! question, and the server is told to give it up.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use lsp::Answered;
use protocol::{
    CallsAnswer, CodeActionsAnswer, CodeQuery, CompletionsAnswer, DiagnosticsAnswer, EditAnswer, HoverAnswer,
    LocationsAnswer, RawAnswer, RawRequest, SignatureAnswer, SymbolsAnswer,
};

use super::servers::ServerId;
use crate::app::App;
use crate::http::body;
use crate::http::problem::Problem;
use crate::http::routes::routes;
use crate::language_servers::{self as answers, Verb, problems};
use crate::metrics::QueryLabels;

/// Declares one handler for each question, with its path and what it takes, and routes to all of them.
macro_rules! questions {
    ($(
        $(#[$doc:meta])*
        $name:ident = $verb:ident, $path:literal as $id:literal, takes $takes:literal, $convert:ident -> $answer:ident;
    )*) => {
        routes! {
            "/v1/lsp/servers/{id}/request" => post request;
            $($path => post $name;)*
        }

        $(
            $(#[$doc])*
            #[utoipa::path(
                post, path = $path, operation_id = $id, tag = "lsp",
                request_body(
                    content = CodeQuery,
                    description = concat!("Takes ", $takes, " and what all questions take.")
                ),
                responses(
                    (status = 200, description = "The answer, which may be that there is nothing.", body = $answer),
                    problems::Ask,
                ),
            )]
            async fn $name(
                State(app): State<Arc<App>>,
                body::Json(query): body::Json<CodeQuery>,
            ) -> Result<Json<$answer>, Problem> {
                let answered = ask(&app, Verb::$verb, stringify!($name), query).await?;
                Ok(Json(answers::$convert(answered)))
            }
        )*
    };
}

questions! {
    /// What is wrong with a file, as it is on disk now. All servers of its language are asked.
    diagnostics = Diagnostics, "/v1/lsp/diagnostics" as "diagnostics",
        takes "`path`", diagnostics -> DiagnosticsAnswer;
    /// What stands at a place.
    hover = Hover, "/v1/lsp/hover" as "hover",
        takes "`path`, `line`, `column`", hover -> HoverAnswer;
    /// What could stand at a place.
    completions = Completions, "/v1/lsp/completions" as "completions",
        takes "`path`, `line`, `column`", completions -> CompletionsAnswer;
    /// Where a thing is defined.
    definition = Definition, "/v1/lsp/definition" as "definition",
        takes "`path`, `line`, `column`", locations -> LocationsAnswer;
    /// Where a thing is declared.
    declaration = Declaration, "/v1/lsp/declaration" as "declaration",
        takes "`path`, `line`, `column`", locations -> LocationsAnswer;
    /// Where the type of a thing is defined.
    type_definition = TypeDefinition, "/v1/lsp/type-definition" as "type_definition",
        takes "`path`, `line`, `column`", locations -> LocationsAnswer;
    /// What implements a thing.
    implementation = Implementation, "/v1/lsp/implementation" as "implementation",
        takes "`path`, `line`, `column`", locations -> LocationsAnswer;
    /// Where a thing is used.
    references = References, "/v1/lsp/references" as "references",
        takes "`path`, `line`, `column`, `without_declaration`", locations -> LocationsAnswer;
    /// What would have to be edited for another name. Nothing is changed.
    rename = Rename, "/v1/lsp/rename" as "rename",
        takes "`path`, `line`, `column`, `new_name`", edit -> EditAnswer;
    /// What the servers could do about a piece of code. Nothing is changed.
    code_actions = CodeActions, "/v1/lsp/code-actions" as "code_actions",
        takes "`path`, `line`, `column`, `end_line`, `end_column`, `kinds`", code_actions -> CodeActionsAnswer;
    /// What would have to be edited for a well-formatted file, or a part of it. Nothing is changed.
    format = Format, "/v1/lsp/format" as "format",
        takes "`path`; for a part `line`, `column`, `end_line`, `end_column`", edit -> EditAnswer;
    /// What can be passed to the call around a place.
    signature = Signature, "/v1/lsp/signature" as "signature",
        takes "`path`, `line`, `column`", signatures -> SignatureAnswer;
    /// What a file defines.
    symbols = Symbols, "/v1/lsp/symbols" as "document_symbols",
        takes "`path`", symbols -> SymbolsAnswer;
    /// What in the workspace has such a name.
    workspace_symbols = WorkspaceSymbols, "/v1/lsp/workspace-symbols" as "workspace_symbols",
        takes "`path` (a file or a directory), `query`", symbols -> SymbolsAnswer;
    /// Who calls a thing, or whom it calls.
    calls = Calls, "/v1/lsp/calls" as "calls",
        takes "`path`, `line`, `column`, `direction`", calls -> CallsAnswer;
}

async fn ask(app: &App, verb: Verb, name: &'static str, query: CodeQuery) -> Result<Answered, Problem> {
    let asked_at = app.clock.now();
    let answered = app.language_servers.ask(verb, query, &app.life.scope()).await?;
    let elapsed = app.clock.now().saturating_duration_since(asked_at);
    app.metrics
        .query_answered(QueryLabels::new(name, &answered), elapsed);
    Ok(answered)
}

/// Sends a request of the protocol itself, for what has no path of its own.
///
/// Positions and shapes are the protocol's. It is sent once, since nobody knows what it does: if the server goes away
/// meanwhile, the answer is `server_restarting`.
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
