//! The diagnostics of a file, in the format of compilers.

use protocol::{Diagnostic, DiagnosticSeverity, DiagnosticsAnswer};

use super::locations::{at, cut_note, missing_servers};
use crate::output::{Palette, Tone};
use crate::printable::one_line;
use crate::units::format_count;

/// The text for people, and what goes to standard error.
pub(super) fn describe(palette: Palette, answer: &DiagnosticsAnswer) -> (String, Vec<String>) {
    let mut text: String = answer
        .diagnostics
        .iter()
        .map(|diagnostic| one(palette, diagnostic))
        .collect();
    text.push_str(&summary(answer));
    let mut notes = missing_servers(&answer.not_answered);
    notes.extend(cut_note(answer.diagnostics.len(), answer.total));
    (text, notes)
}

fn one(palette: Palette, diagnostic: &Diagnostic) -> String {
    let (word, tone) = match diagnostic.severity {
        DiagnosticSeverity::Error => ("error", Tone::Bad),
        DiagnosticSeverity::Warning => ("warning", Tone::Warning),
        DiagnosticSeverity::Information => ("info", Tone::Plain),
        DiagnosticSeverity::Hint => ("hint", Tone::Quiet),
    };
    let label = match &diagnostic.code {
        Some(code) => format!("{word}[{}]", one_line(code)),
        None => word.to_owned(),
    };
    let mut lines = diagnostic.message.trim_end().lines();
    let mut text = format!(
        "{}: {}: {} ({})\n",
        at(&diagnostic.path, diagnostic.range.start),
        palette.paint(&label, tone),
        lines.next().unwrap_or_default(),
        one_line(&diagnostic.source),
    );
    for line in lines {
        text.push_str(&format!("    {line}\n"));
    }
    for related in &diagnostic.related {
        let place = at(&related.location.path, related.location.range.start);
        text.push_str(&format!("    {place}: note: {}\n", one_line(&related.message)));
    }
    text
}

fn summary(answer: &DiagnosticsAnswer) -> String {
    let kinds = [
        (DiagnosticSeverity::Error, "error"),
        (DiagnosticSeverity::Warning, "warning"),
        (DiagnosticSeverity::Information, "remark"),
        (DiagnosticSeverity::Hint, "hint"),
    ];
    let counts: Vec<String> = kinds
        .into_iter()
        .filter_map(|(severity, word)| {
            let of_kind = |diagnostic: &&Diagnostic| diagnostic.severity == severity;
            let count = answer.diagnostics.iter().filter(of_kind).count();
            (count > 0).then(|| format_count(count as u64, word))
        })
        .collect();
    if counts.is_empty() {
        "no diagnostics\n".to_owned()
    } else {
        format!("{}\n", counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Location, NotAnswered, Related};

    use super::super::locations::tests::range;
    use super::*;

    #[test]
    fn diagnostics_read_like_those_of_a_compiler() {
        let diagnostic = |severity, code: Option<&str>, message: &str| Diagnostic {
            path: "src/a.py".to_owned(),
            range: range(3, 5),
            severity,
            code: code.map(str::to_owned),
            source: "Pyright".to_owned(),
            message: message.to_owned(),
            excerpt: None,
            tags: Vec::new(),
            related: Vec::new(),
        };
        let related = Related {
            location: Location {
                path: "src/b.py".to_owned(),
                range: range(1, 1),
                excerpt: None,
            },
            message: "declared here".to_owned(),
        };
        let answer = DiagnosticsAnswer {
            diagnostics: vec![
                Diagnostic {
                    related: vec![related],
                    ..diagnostic(
                        DiagnosticSeverity::Error,
                        Some("reportX"),
                        "not a str\nbut an int\n",
                    )
                },
                diagnostic(DiagnosticSeverity::Error, None, "again"),
                diagnostic(DiagnosticSeverity::Hint, None, "unused"),
            ],
            total: 7,
            workspace: String::new(),
            answered_by: Vec::new(),
            not_answered: vec![NotAnswered {
                server: "ruff".to_owned(),
                code: "server_failed".to_owned(),
                detail: "It ended with code 1.".to_owned(),
            }],
        };
        let (text, notes) = describe(Palette::Plain, &answer);
        insta::assert_snapshot!(text, @r"
        src/a.py:3:5: error[reportX]: not a str (Pyright)
            but an int
            src/b.py:1:1: note: declared here
        src/a.py:3:5: error: again (Pyright)
        src/a.py:3:5: hint: unused (Pyright)
        2 errors, 1 hint
        ");
        assert_eq!(
            notes,
            [
                "ruff did not answer (server_failed): It ended with code 1.",
                "showing 3 of 7"
            ]
        );
        let none = DiagnosticsAnswer {
            diagnostics: Vec::new(),
            total: 0,
            workspace: String::new(),
            answered_by: Vec::new(),
            not_answered: Vec::new(),
        };
        assert_eq!(
            describe(Palette::Plain, &none),
            ("no diagnostics\n".to_owned(), Vec::new())
        );
    }
}
