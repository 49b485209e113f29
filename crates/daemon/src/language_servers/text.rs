//! Formats answers of language servers as short lines.

use protocol::{
    Call, CallsAnswer, CodeActionsAnswer, CodeAnswer, CodeVerb, CompletionsAnswer, DiagnosticSeverity,
    DiagnosticsAnswer, EditAnswer, FileEdit, HoverAnswer, Location, LocationsAnswer, NotAnswered, Position,
    SignatureAnswer, Symbol, SymbolsAnswer,
};

/// How many completions to list. A model that wants more types more.
const COMPLETIONS: usize = 100;
/// How much of a detail, such as a type, to show after a name.
const DETAIL_CHARACTERS: usize = 120;

/// An answer as text for a model.
pub(crate) fn answer_text(verb: CodeVerb, answer: &CodeAnswer) -> String {
    match answer {
        CodeAnswer::Diagnostics(answer) => diagnostics(answer),
        CodeAnswer::Hover(answer) => hover(answer),
        CodeAnswer::Completions(answer) => completions(answer),
        CodeAnswer::Locations(answer) => locations(answer),
        CodeAnswer::Edit(answer) => edit(answer),
        CodeAnswer::CodeActions(answer) => actions(answer),
        CodeAnswer::Signature(answer) => signatures(answer),
        CodeAnswer::Symbols(answer) if verb == CodeVerb::Symbols => outline(answer),
        CodeAnswer::Symbols(answer) => symbols(answer),
        CodeAnswer::Calls(answer) => calls(answer),
    }
}

fn hover(answer: &HoverAnswer) -> String {
    let text = answer.text.as_deref().map(str::trim_end).unwrap_or_default();
    or_none(lines([text.to_owned()]), "No information for this position.")
}

fn locations(answer: &LocationsAnswer) -> String {
    let text = lines(answer.locations.iter().map(location));
    let text = or_none(text, "No results from the language server.");
    with_cut(text, answer.locations.len(), answer.total)
}

fn diagnostics(answer: &DiagnosticsAnswer) -> String {
    let mut text = String::new();
    for diagnostic in &answer.diagnostics {
        let severity = match diagnostic.severity {
            DiagnosticSeverity::Error => "error",
            DiagnosticSeverity::Warning => "warning",
            DiagnosticSeverity::Information => "info",
            DiagnosticSeverity::Hint => "hint",
        };
        let code = diagnostic
            .code
            .as_ref()
            .map(|code| format!("[{code}]"))
            .unwrap_or_default();
        text.push_str(&format!(
            "{}: {severity}{code}: {} ({})\n",
            at(&diagnostic.path, diagnostic.range.start),
            diagnostic.message.trim_end().replace('\n', "\n    "),
            diagnostic.source
        ));
        for related in &diagnostic.related {
            let place = at(&related.location.path, related.location.range.start);
            text.push_str(&format!("    {place}: {}\n", one_line(&related.message)));
        }
    }
    let text = or_none(text, "No errors and no warnings.");
    let text = with_cut(text, answer.diagnostics.len(), answer.total);
    with_missing(text, &answer.not_answered)
}

fn outline(answer: &SymbolsAnswer) -> String {
    let line = |symbol: &Symbol| {
        let place = symbol
            .range
            .map(|range| format!("{}:{}", range.start.line, range.start.column));
        let indentation = "  ".repeat(symbol.depth as usize);
        format!("{indentation}{} {}", place.unwrap_or_default(), named(symbol))
    };
    let text = or_none(lines(answer.symbols.iter().map(line)), "The file has no symbols.");
    with_cut(text, answer.symbols.len(), answer.total)
}

fn symbols(answer: &SymbolsAnswer) -> String {
    let line = |symbol: &Symbol| {
        let place = match symbol.range {
            Some(range) => at(&symbol.path, range.start),
            None => symbol.path.clone(),
        };
        let container = symbol
            .container
            .as_deref()
            .filter(|container| !container.is_empty());
        let container = container
            .map(|container| format!(" in {container}"))
            .unwrap_or_default();
        format!("{place}: {}{container}", named(symbol))
    };
    let text = or_none(
        lines(answer.symbols.iter().map(line)),
        "No symbols match this name.",
    );
    with_cut(text, answer.symbols.len(), answer.total)
}

fn calls(answer: &CallsAnswer) -> String {
    let line = |call: &Call| {
        let places: Vec<String> = call
            .calls
            .iter()
            .map(|range| format!("{}:{}", range.start.line, range.start.column))
            .collect();
        let at_lines = match places.is_empty() {
            true => String::new(),
            false => format!(", called at {}", places.join(", ")),
        };
        let place = at(&call.location.path, call.location.range.start);
        format!("{place}: {} {}{at_lines}", call.kind, call.name)
    };
    let text = or_none(lines(answer.calls.iter().map(line)), "No calls.");
    with_cut(text, answer.calls.len(), answer.total)
}

fn signatures(answer: &SignatureAnswer) -> String {
    let mut text = String::new();
    for signature in &answer.signatures {
        text.push_str(&format!("{}\n", one_line(&signature.label)));
        let active = signature
            .active_parameter
            .and_then(|index| signature.parameters.get(index as usize));
        if let Some(active) = active {
            text.push_str(&format!("    the position is at the parameter {active}\n"));
        }
        if let Some(documentation) = &signature.documentation {
            text.push_str(&format!("    {}\n", documentation.trim().replace('\n', "\n    ")));
        }
    }
    or_none(text, "No call at this position.")
}

fn completions(answer: &CompletionsAnswer) -> String {
    let shown = answer.completions.iter().take(COMPLETIONS);
    let text = lines(shown.map(|completion| {
        let kind = completion
            .kind
            .as_ref()
            .map(|kind| format!(" ({kind})"))
            .unwrap_or_default();
        let detail = completion.detail.as_deref().map(short).unwrap_or_default();
        format!("{}{kind}  {detail}", one_line(&completion.label))
            .trim_end()
            .to_owned()
    }));
    let text = or_none(text, "No completions here.");
    with_cut(text, answer.completions.len().min(COMPLETIONS), answer.total)
}

fn edit(answer: &EditAnswer) -> String {
    if answer.files.is_empty() {
        return "No edits needed.\n".to_owned();
    }
    let mut text = answer.diff.clone();
    if text.is_empty() {
        text = lines(answer.files.iter().map(whole_file));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    format!("{text}[nothing was changed; make these edits in your plan]\n")
}

fn actions(answer: &CodeActionsAnswer) -> String {
    let mut text = String::new();
    for action in &answer.actions {
        let kind = action
            .kind
            .as_ref()
            .map(|kind| format!(" [{kind}]"))
            .unwrap_or_default();
        let preferred = match action.preferred {
            true => " (preferred)",
            false => "",
        };
        text.push_str(&format!("{}{kind}{preferred}\n", one_line(&action.title)));
        if let Some(why) = &action.disabled {
            text.push_str(&format!("    not now: {}\n", one_line(why)));
        }
        for file in &action.files {
            text.push_str(&format!("    {}\n", edited(file)));
        }
    }
    with_missing(or_none(text, "No code actions here."), &answer.not_answered)
}

/// The edits of an action to a file, with the new text.
fn edited(file: &FileEdit) -> String {
    match file {
        FileEdit::Edit { path, edits } => {
            let each = edits.iter().map(|edit| {
                let place = at(path, edit.range.start);
                format!(
                    "{place}-{}:{}: {:?}",
                    edit.range.end.line, edit.range.end.column, edit.new_text
                )
            });
            each.collect::<Vec<_>>().join("\n    ")
        }
        other => whole_file(other),
    }
}

fn whole_file(file: &FileEdit) -> String {
    match file {
        FileEdit::Edit { path, edits } => format!("{path}: {} edits", edits.len()),
        FileEdit::Create { path } => format!("{path}: created"),
        FileEdit::Rename { path, new_path } => format!("{path}: renamed to {new_path}"),
        FileEdit::Delete { path } => format!("{path}: removed"),
    }
}

fn location(location: &Location) -> String {
    let place = at(&location.path, location.range.start);
    match location.excerpt.as_deref().map(one_line) {
        Some(excerpt) if !excerpt.is_empty() => format!("{place}: {excerpt}"),
        _ => place,
    }
}

fn named(symbol: &Symbol) -> String {
    let name = format!("{} {}", symbol.kind, one_line(&symbol.name));
    match symbol.detail.as_deref().map(short) {
        Some(detail) if !detail.is_empty() => format!("{name}  {detail}"),
        _ => name,
    }
}

fn at(path: &str, position: Position) -> String {
    format!("{path}:{}:{}", position.line, position.column)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn short(text: &str) -> String {
    one_line(text).chars().take(DETAIL_CHARACTERS).collect()
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

fn or_none(text: String, none: &str) -> String {
    match text.is_empty() {
        true => format!("{none}\n"),
        false => text,
    }
}

fn with_cut(text: String, shown: usize, total: u64) -> String {
    match total > shown as u64 {
        true => format!("{text}[showing {shown} of {total}]\n"),
        false => text,
    }
}

fn with_missing(mut text: String, missing: &[NotAnswered]) -> String {
    for server in missing {
        text.push_str(&format!(
            "[{} did not answer: {}]\n",
            server.server,
            one_line(&server.detail)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use protocol::{Diagnostic, Range};

    use super::*;

    fn range(line: u32, column: u32) -> Range {
        let start = Position { line, column };
        Range { start, end: start }
    }

    #[test]
    fn answers_are_short_lines() {
        let place = |excerpt: Option<&str>| Location {
            path: "src/a.rs".to_owned(),
            range: range(3, 5),
            excerpt: excerpt.map(str::to_owned),
        };
        let found = LocationsAnswer {
            locations: vec![place(Some("    fn größe() {")), place(None)],
            total: 40,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        assert_eq!(
            locations(&found),
            "src/a.rs:3:5: fn größe() {\nsrc/a.rs:3:5\n[showing 2 of 40]\n"
        );
        let diagnostic = Diagnostic {
            path: "a.py".to_owned(),
            range: range(1, 2),
            severity: DiagnosticSeverity::Error,
            code: Some("E1".to_owned()),
            source: "Ruff".to_owned(),
            message: "not a str\nbut an int\n".to_owned(),
            excerpt: None,
            tags: Vec::new(),
            related: Vec::new(),
        };
        let answer = |diagnostics: Vec<Diagnostic>| DiagnosticsAnswer {
            total: diagnostics.len() as u64,
            diagnostics,
            workspace: String::new(),
            answered_by: Vec::new(),
            not_answered: vec![NotAnswered {
                server: "ty".to_owned(),
                code: "server_failed".to_owned(),
                detail: "It ended.".to_owned(),
            }],
        };
        assert_eq!(
            diagnostics(&answer(vec![diagnostic])),
            "a.py:1:2: error[E1]: not a str\n    but an int (Ruff)\n[ty did not answer: It ended.]\n"
        );
        assert_eq!(
            diagnostics(&answer(Vec::new())),
            "No errors and no warnings.\n[ty did not answer: It ended.]\n"
        );
    }
}
