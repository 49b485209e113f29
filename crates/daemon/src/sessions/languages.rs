//! Answers agents' questions about code with the shared language servers.

use async_trait::async_trait;
use protocol::{CodeVerb, ErrorCode};
use sessions::{LanguageError, LanguageOrder, Languages};

use crate::app::whole_ms;
use crate::language_servers::{LanguageServers, answer_text};

#[derive(Clone, Debug)]
pub(crate) struct SharedLanguages(pub(crate) LanguageServers);

#[async_trait]
impl Languages for SharedLanguages {
    fn verbs(&self) -> Vec<&'static str> {
        CodeVerb::ALL.iter().map(|verb| verb.name()).collect()
    }

    async fn ask(&self, order: LanguageOrder) -> Result<String, LanguageError> {
        let Some(verb) = CodeVerb::named(&order.verb) else {
            return Err(LanguageError {
                code: ErrorCode::InvalidRequest.as_str().to_owned(),
                text: format!("there is no question `{}`", order.verb),
            });
        };
        let scope = order.scope.clone();
        let answered = self.0.ask(verb, query_of(verb, order), &scope).await;
        match answered {
            Ok(answer) => Ok(answer_text(verb, &answer)),
            Err(problem) => Err(LanguageError {
                code: problem.code().as_str().to_owned(),
                text: problem.detail().to_owned(),
            }),
        }
    }
}

fn query_of(verb: CodeVerb, order: LanguageOrder) -> protocol::CodeQuery {
    let (query, new_name) = match verb {
        CodeVerb::WorkspaceSymbols => (order.name, None),
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
