//! Converts answers for the wire.

use lsp::{ActionEffect, Answered, QueryResult};
use protocol::{
    AnsweredBy, CallsAnswer, CodeAction, CodeActionsAnswer, CodeAnswer, CodeVerb, CompletionsAnswer,
    DiagnosticsAnswer, EditAnswer, HoverAnswer, LocationsAnswer, NotAnswered, SignatureAnswer, SymbolsAnswer,
};

use super::problems::code_of;

/// Converts the answer to a verb. The kind of the outcome always matches the question.
pub(super) fn answer(verb: CodeVerb, answered: Answered) -> CodeAnswer {
    match verb {
        CodeVerb::Diagnostics => CodeAnswer::Diagnostics(diagnostics(answered)),
        CodeVerb::Hover => CodeAnswer::Hover(hover(answered)),
        CodeVerb::Completions => CodeAnswer::Completions(completions(answered)),
        CodeVerb::Definition
        | CodeVerb::Declaration
        | CodeVerb::TypeDefinition
        | CodeVerb::Implementation
        | CodeVerb::References => CodeAnswer::Locations(locations(answered)),
        CodeVerb::Rename | CodeVerb::Format => CodeAnswer::Edit(edit(answered)),
        CodeVerb::CodeActions => CodeAnswer::CodeActions(code_actions(answered)),
        CodeVerb::Signature => CodeAnswer::Signature(signatures(answered)),
        CodeVerb::Symbols | CodeVerb::WorkspaceSymbols => CodeAnswer::Symbols(symbols(answered)),
        CodeVerb::Calls => CodeAnswer::Calls(calls(answered)),
    }
}

fn locations(answered: Answered) -> LocationsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (locations, total) = match answered.answer.result {
        QueryResult::Locations(list) => (list.items, list.total),
        _ => (Vec::new(), 0),
    };
    LocationsAnswer {
        locations,
        total: total as u64,
        workspace,
        answered_by,
    }
}

fn hover(answered: Answered) -> HoverAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let hover = match answered.answer.result {
        QueryResult::Hover(hover) => hover,
        _ => None,
    };
    HoverAnswer {
        range: hover.as_ref().and_then(|hover| hover.range),
        text: hover.map(|hover| hover.text),
        workspace,
        answered_by,
    }
}

fn completions(answered: Answered) -> CompletionsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (completions, total, incomplete) = match answered.answer.result {
        QueryResult::Completions(found) => (found.list.items, found.list.total, found.incomplete),
        _ => (Vec::new(), 0, false),
    };
    CompletionsAnswer {
        completions,
        total: total as u64,
        incomplete,
        workspace,
        answered_by,
    }
}

fn edit(answered: Answered) -> EditAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (files, diff) = match answered.answer.result {
        QueryResult::Edit(edit) => (edit.files, edit.diff),
        _ => (Vec::new(), String::new()),
    };
    EditAnswer {
        files,
        diff,
        workspace,
        answered_by,
    }
}

fn code_actions(answered: Answered) -> CodeActionsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let not_answered = not_answered(&answered);
    let actions = match answered.answer.result {
        QueryResult::CodeActions(list) => list.items.into_iter().map(code_action).collect(),
        _ => Vec::new(),
    };
    CodeActionsAnswer {
        actions,
        workspace,
        answered_by,
        not_answered,
    }
}

fn signatures(answered: Answered) -> SignatureAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (signatures, active) = match answered.answer.result {
        QueryResult::Signatures(found) => (found.signatures, found.active),
        _ => (Vec::new(), None),
    };
    SignatureAnswer {
        signatures,
        active,
        workspace,
        answered_by,
    }
}

fn symbols(answered: Answered) -> SymbolsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (symbols, total) = match answered.answer.result {
        QueryResult::Symbols(list) => (list.items, list.total),
        _ => (Vec::new(), 0),
    };
    SymbolsAnswer {
        symbols,
        total: total as u64,
        workspace,
        answered_by,
    }
}

fn calls(answered: Answered) -> CallsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (calls, total) = match answered.answer.result {
        QueryResult::Calls(list) => (list.items, list.total),
        _ => (Vec::new(), 0),
    };
    CallsAnswer {
        calls,
        total: total as u64,
        workspace,
        answered_by,
    }
}

fn diagnostics(answered: Answered) -> DiagnosticsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let not_answered = not_answered(&answered);
    let (diagnostics, total) = match answered.answer.result {
        QueryResult::Diagnostics(list) => (list.items, list.total),
        _ => (Vec::new(), 0),
    };
    DiagnosticsAnswer {
        diagnostics,
        total: total as u64,
        workspace,
        answered_by,
        not_answered,
    }
}

fn workspace(answered: &Answered) -> String {
    answered.workspace.to_string_lossy().into_owned()
}

fn answered_by(answered: &Answered) -> Vec<AnsweredBy> {
    let origins = answered.answer.origins.iter().zip(&answered.ids);
    origins
        .map(|(origin, id)| AnsweredBy {
            id: id.clone(),
            server: origin.server.clone(),
            generation: origin.generation,
            document_version: origin.document_version,
        })
        .collect()
}

fn not_answered(answered: &Answered) -> Vec<NotAnswered> {
    let missing = answered.not_answered.iter();
    missing
        .map(|(server, error)| NotAnswered {
            server: server.to_string(),
            code: code_of(error).to_string(),
            detail: error.to_string(),
        })
        .collect()
}

fn code_action(action: lsp::CodeAction) -> CodeAction {
    CodeAction {
        title: action.title,
        kind: action.kind,
        preferred: action.preferred,
        disabled: action.disabled,
        files: match action.effect {
            ActionEffect::Edit { edit } => edit.files,
            ActionEffect::Command { .. } | ActionEffect::Unknown { .. } => Vec::new(),
        },
    }
}
