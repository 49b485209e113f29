//! Questions of agents about code, asked of the language servers that everybody shares.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use sessions::{LanguageError, LanguageOrder, Languages};

use crate::app::whole_ms;
use crate::http::Problem;
use crate::language_servers::{self as answers, LanguageServers, Verb};

/// The questions by name, as the paths of the interface have them.
const VERBS: [(&str, Verb); 15] = [
    ("diagnostics", Verb::Diagnostics),
    ("hover", Verb::Hover),
    ("completions", Verb::Completions),
    ("definition", Verb::Definition),
    ("declaration", Verb::Declaration),
    ("type-definition", Verb::TypeDefinition),
    ("implementation", Verb::Implementation),
    ("references", Verb::References),
    ("rename", Verb::Rename),
    ("code-actions", Verb::CodeActions),
    ("format", Verb::Format),
    ("signature", Verb::Signature),
    ("symbols", Verb::Symbols),
    ("workspace-symbols", Verb::WorkspaceSymbols),
    ("calls", Verb::Calls),
];

/// Asks the language servers of this daemon.
#[derive(Clone, Debug)]
pub(crate) struct SharedLanguages(pub(crate) LanguageServers);

#[async_trait]
impl Languages for SharedLanguages {
    fn verbs(&self) -> Vec<&'static str> {
        VERBS.iter().map(|(name, _)| *name).collect()
    }

    async fn ask(&self, order: LanguageOrder) -> Result<Value, LanguageError> {
        let Some((_, verb)) = VERBS.iter().find(|(name, _)| *name == order.verb) else {
            return Err(LanguageError {
                code: protocol::ErrorCode::InvalidRequest.as_str().to_owned(),
                text: format!("there is no question `{}`", order.verb),
            });
        };
        let scope = order.scope.clone();
        let answered = self.0.ask(*verb, query_of(*verb, order), &scope).await;
        let answered = answered.map_err(|problem| not_answered(&problem))?;
        match verb {
            Verb::Diagnostics => as_json(&answers::diagnostics(answered)),
            Verb::Hover => as_json(&answers::hover(answered)),
            Verb::Completions => as_json(&answers::completions(answered)),
            Verb::Definition
            | Verb::Declaration
            | Verb::TypeDefinition
            | Verb::Implementation
            | Verb::References => as_json(&answers::locations(answered)),
            Verb::Rename | Verb::Format => as_json(&answers::edit(answered)),
            Verb::CodeActions => as_json(&answers::code_actions(answered)),
            Verb::Signature => as_json(&answers::signatures(answered)),
            Verb::Symbols | Verb::WorkspaceSymbols => as_json(&answers::symbols(answered)),
            Verb::Calls => as_json(&answers::calls(answered)),
        }
    }
}

fn query_of(verb: Verb, order: LanguageOrder) -> protocol::CodeQuery {
    let (query, new_name) = match verb {
        Verb::WorkspaceSymbols => (order.name, None),
        _ => (None, order.name),
    };
    protocol::CodeQuery {
        path: order.path.display().to_string(),
        line: order.line,
        column: order.column,
        workspace: Some(order.workspace.display().to_string()),
        new_name,
        query,
        timeout_ms: Some(whole_ms(order.timeout)),
        ..protocol::CodeQuery::default()
    }
}

fn as_json(answer: &impl Serialize) -> Result<Value, LanguageError> {
    serde_json::to_value(answer).map_err(|error| LanguageError {
        code: protocol::ErrorCode::Internal.as_str().to_owned(),
        text: error.to_string(),
    })
}

fn not_answered(problem: &Problem) -> LanguageError {
    LanguageError {
        code: problem.code().as_str().to_owned(),
        text: problem.detail().to_owned(),
    }
}
