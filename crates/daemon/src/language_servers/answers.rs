//! Answers as they go over the wire.

use lsp::{ActionEffect, Answered, Completeness, DiagnosticTag, FileChange, Outcome, Severity};
use protocol::{
    AnsweredBy, Call, CallsAnswer, CodeAction, CodeActionsAnswer, CodeAnswer, CodeVerb, Completion,
    CompletionsAnswer, Diagnostic, DiagnosticSeverity, DiagnosticsAnswer, EditAnswer, FileEdit, HoverAnswer,
    Location, LocationsAnswer, NotAnswered, Position, Range, Related, Signature, SignatureAnswer, Symbol,
    SymbolsAnswer, TextEdit,
};

use super::problems::code_of;

/// The answer to a verb. An outcome of another kind never comes to a question.
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

/// Places. An answer of another kind does not come to this question.
fn locations(answered: Answered) -> LocationsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (locations, total) = match answered.answer.outcome {
        Outcome::Locations(list) => (list.items.iter().map(location).collect(), list.total),
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
    let hover = match answered.answer.outcome {
        Outcome::Hover(hover) => hover,
        _ => None,
    };
    HoverAnswer {
        range: hover.as_ref().and_then(|hover| hover.range).map(range),
        text: hover.map(|hover| hover.text),
        workspace,
        answered_by,
    }
}

fn completions(answered: Answered) -> CompletionsAnswer {
    let (workspace, answered_by) = (workspace(&answered), answered_by(&answered));
    let (completions, total, incomplete) = match answered.answer.outcome {
        Outcome::Completions(found) => (
            found.list.items.into_iter().map(completion).collect(),
            found.list.total,
            found.completeness == Completeness::Incomplete,
        ),
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
    let (files, diff) = match answered.answer.outcome {
        Outcome::Edit(edit) => (edit.changes.iter().map(file_edit).collect(), edit.diff),
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
    let actions = match answered.answer.outcome {
        Outcome::CodeActions(list) => list.items.into_iter().map(code_action).collect(),
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
    let (signatures, active) = match answered.answer.outcome {
        Outcome::Signatures(found) if !found.signatures.is_empty() => {
            let active = u32::try_from(found.active).ok();
            (found.signatures.into_iter().map(signature).collect(), active)
        }
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
    let (symbols, total) = match answered.answer.outcome {
        Outcome::Symbols(list) => (list.items.into_iter().map(symbol).collect(), list.total),
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
    let (calls, total) = match answered.answer.outcome {
        Outcome::Calls(list) => (list.items.into_iter().map(call).collect(), list.total),
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
    let (diagnostics, total) = match answered.answer.outcome {
        Outcome::Diagnostics(list) => (list.items.into_iter().map(diagnostic).collect(), list.total),
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

fn position(position: lsp::Position) -> Position {
    Position {
        line: position.line,
        column: position.column,
    }
}

fn range(range: lsp::Range) -> Range {
    Range {
        start: position(range.start),
        end: position(range.end),
    }
}

fn location(location: &lsp::Location) -> Location {
    Location {
        path: location.place.path.clone(),
        range: range(location.range),
        excerpt: excerpt(location),
    }
}

/// The line that a place begins in.
fn excerpt(location: &lsp::Location) -> Option<String> {
    let excerpt = location.excerpt.as_ref()?;
    let line = location.range.start.line.checked_sub(excerpt.first_line)?;
    excerpt.lines.get(usize::try_from(line).ok()?).cloned()
}

fn completion(completion: lsp::Completion) -> Completion {
    let insert_text = (completion.insert != completion.label).then_some(completion.insert);
    Completion {
        label: completion.label,
        kind: completion.kind.map(str::to_owned),
        detail: completion.detail,
        insert_text,
    }
}

fn file_edit(change: &FileChange) -> FileEdit {
    match change {
        FileChange::Edit {
            place, replacements, ..
        } => FileEdit::Edit {
            path: place.path.clone(),
            edits: replacements
                .iter()
                .map(|replacement| TextEdit {
                    range: range(replacement.range),
                    new_text: replacement.new_text.clone(),
                })
                .collect(),
        },
        FileChange::Create { place, .. } => FileEdit::Create {
            path: place.path.clone(),
        },
        FileChange::Rename { from, to, .. } => FileEdit::Rename {
            path: from.path.clone(),
            new_path: to.path.clone(),
        },
        FileChange::Delete { place, .. } => FileEdit::Delete {
            path: place.path.clone(),
        },
    }
}

fn code_action(action: lsp::CodeAction) -> CodeAction {
    let files = match &action.effect {
        ActionEffect::Edit { edit } => edit.changes.iter().map(file_edit).collect(),
        ActionEffect::Command { .. } | ActionEffect::Unknown { .. } => Vec::new(),
    };
    CodeAction {
        title: action.title,
        kind: action.kind,
        preferred: action.preferred,
        disabled: action.disabled,
        files,
    }
}

fn signature(signature: lsp::Signature) -> Signature {
    Signature {
        label: signature.label,
        documentation: signature.documentation,
        parameters: signature
            .parameters
            .into_iter()
            .map(|parameter| parameter.label)
            .collect(),
        active_parameter: signature
            .active_parameter
            .and_then(|active| u32::try_from(active).ok()),
    }
}

fn symbol(symbol: lsp::Symbol) -> Symbol {
    Symbol {
        name: symbol.name,
        kind: symbol.kind.to_owned(),
        detail: symbol.detail,
        container: symbol.container,
        path: symbol.place.path,
        range: symbol.location.map(|location| range(location.range)),
        depth: symbol.depth.unwrap_or_default(),
    }
}

fn call(call: lsp::Call) -> Call {
    Call {
        name: call.name,
        kind: call.kind.to_owned(),
        detail: call.detail,
        location: location(&call.location),
        calls: call.sites.items.iter().map(|site| range(site.range)).collect(),
    }
}

fn diagnostic(diagnostic: lsp::Diagnostic) -> Diagnostic {
    Diagnostic {
        excerpt: excerpt(&diagnostic.location),
        range: range(diagnostic.location.range),
        path: diagnostic.location.place.path,
        severity: match diagnostic.severity {
            Severity::Error => DiagnosticSeverity::Error,
            Severity::Warning => DiagnosticSeverity::Warning,
            Severity::Information => DiagnosticSeverity::Information,
            Severity::Hint => DiagnosticSeverity::Hint,
        },
        code: diagnostic.code,
        source: diagnostic.source.unwrap_or(diagnostic.server),
        message: diagnostic.message,
        tags: diagnostic
            .tags
            .iter()
            .map(|tag| match tag {
                DiagnosticTag::Unnecessary => "unnecessary".to_owned(),
                DiagnosticTag::Deprecated => "deprecated".to_owned(),
            })
            .collect(),
        related: diagnostic
            .related
            .iter()
            .map(|related| Related {
                location: location(&related.location),
                message: related.message.clone(),
            })
            .collect(),
    }
}
