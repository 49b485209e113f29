//! Answers that are texts, tables and edits.

use protocol::{
    CodeAction, CodeActionsAnswer, Completion, CompletionsAnswer, EditAnswer, FileEdit, HoverAnswer,
    Signature, SignatureAnswer,
};

use super::locations::{cut_note, missing_servers, or_none};
use crate::output::{Cell, Palette, list};
use crate::printable::{cut, one_line};
use crate::units::format_count;

const LABEL_CHARACTERS: usize = 60;
const DETAIL_CHARACTERS: usize = 80;

const NOTHING_CHANGED: &str = "nothing was changed; this is what the server proposes";

pub(super) fn hover(answer: &HoverAnswer) -> (String, Vec<String>) {
    let text = answer.text.as_deref().map(str::trim_end).unwrap_or_default();
    let text = if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    };
    (or_none(text, "no hover"), Vec::new())
}

pub(super) fn completions(palette: Palette, answer: &CompletionsAnswer) -> (String, Vec<String>) {
    let mut notes: Vec<String> = cut_note(answer.completions.len(), answer.total)
        .into_iter()
        .collect();
    if answer.incomplete {
        notes.push("the server has more completions; type more to narrow them down".to_owned());
    }
    let row = |completion: &Completion| {
        let kind = completion.kind.as_deref().unwrap_or("-");
        let detail = completion.detail.as_deref().unwrap_or_default();
        vec![
            Cell::new(cut(&completion.label, LABEL_CHARACTERS)),
            Cell::new(one_line(kind)),
            Cell::new(cut(detail, DETAIL_CHARACTERS)),
        ]
    };
    let rows = answer.completions.iter().map(row).collect();
    let text = list(palette, &["LABEL", "KIND", "DETAIL"], rows, "no completions");
    (text, notes)
}

pub(super) fn edit(answer: &EditAnswer) -> (String, Vec<String>) {
    if answer.files.is_empty() {
        return ("no changes\n".to_owned(), Vec::new());
    }
    let mut text = answer.diff.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if text.is_empty() {
        // Operations on whole files have no lines to show.
        text = answer
            .files
            .iter()
            .map(|file| format!("{}\n", whole_file(file)))
            .collect();
    }
    (text, vec![NOTHING_CHANGED.to_owned()])
}

fn whole_file(file: &FileEdit) -> String {
    match file {
        FileEdit::Edit { path, edits } => {
            format!("{}: {}", one_line(path), format_count(edits.len() as u64, "edit"))
        }
        FileEdit::Create { path } => format!("{}: created", one_line(path)),
        FileEdit::Rename { path, new_path } => {
            format!("{}: renamed to {}", one_line(path), one_line(new_path))
        }
        FileEdit::Delete { path } => format!("{}: removed", one_line(path)),
    }
}

pub(super) fn actions(answer: &CodeActionsAnswer) -> (String, Vec<String>) {
    let text: String = answer.actions.iter().map(action).collect();
    let mut notes = missing_servers(&answer.not_answered);
    if !text.is_empty() {
        notes.push("nothing was changed; these are what the servers offer".to_owned());
    }
    (or_none(text, "no code actions"), notes)
}

fn action(action: &CodeAction) -> String {
    let mut text = one_line(&action.title);
    if let Some(kind) = &action.kind {
        text.push_str(&format!(" [{}]", one_line(kind)));
    }
    if action.preferred {
        text.push_str(" (preferred)");
    }
    text.push('\n');
    if let Some(reason) = &action.disabled {
        text.push_str(&format!("    not now: {}\n", one_line(reason)));
    }
    for file in &action.files {
        text.push_str(&format!("    {}\n", whole_file(file)));
    }
    text
}

pub(super) fn signature(answer: &SignatureAnswer) -> (String, Vec<String>) {
    let several = answer.signatures.len() > 1;
    let active = answer.active.unwrap_or_default() as usize;
    let one = |(position, signature): (usize, &Signature)| {
        let mark = match (several, position == active) {
            (false, _) => "",
            (true, true) => "> ",
            (true, false) => "  ",
        };
        let mut text = format!("{mark}{}\n", one_line(&signature.label));
        let parameter = signature
            .active_parameter
            .and_then(|index| signature.parameters.get(index as usize));
        if let Some(parameter) = parameter {
            text.push_str(&format!("    at the parameter {}\n", one_line(parameter)));
        }
        if let Some(documentation) = signature.documentation.as_deref().map(str::trim) {
            for line in documentation.lines() {
                text.push_str(format!("    {line}").trim_end());
                text.push('\n');
            }
        }
        text
    };
    let text = answer.signatures.iter().enumerate().map(one).collect();
    (or_none(text, "no signature"), Vec::new())
}

#[cfg(test)]
mod tests {
    use protocol::{Completion, TextEdit};

    use super::super::locations::tests::range;
    use super::*;

    #[test]
    fn a_hover_is_its_text() {
        let answer = |text: Option<&str>| HoverAnswer {
            text: text.map(str::to_owned),
            range: None,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        for (text, expected) in [
            (Some("```rust\nfn a()\n```\n\n"), "```rust\nfn a()\n```\n"),
            (Some(" \n"), "no hover\n"),
            (None, "no hover\n"),
        ] {
            assert_eq!(hover(&answer(text)).0, expected);
        }
    }

    #[test]
    fn completions_are_a_table() {
        let completion = |label: &str, kind: Option<&str>, detail: Option<&str>| Completion {
            label: label.to_owned(),
            kind: kind.map(str::to_owned),
            detail: detail.map(str::to_owned),
            insert_text: None,
        };
        let answer = CompletionsAnswer {
            completions: vec![
                completion("push", Some("method"), Some("fn(&mut self, T)")),
                completion(&"x".repeat(70), None, None),
            ],
            total: 3,
            incomplete: true,
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        let (text, notes) = completions(Palette::Plain, &answer);
        let long = format!("{}…", "x".repeat(59));
        assert_eq!(
            text,
            format!(
                "LABEL{0}  KIND    DETAIL\npush{0}   method  fn(&mut self, T)\n{long}  -\n",
                " ".repeat(55)
            )
        );
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn an_edit_is_a_diff_and_says_that_nothing_was_changed() {
        let files = vec![FileEdit::Edit {
            path: "a.rs".to_owned(),
            edits: vec![TextEdit {
                range: range(1, 1),
                new_text: "b".to_owned(),
            }],
        }];
        let answer = |files: Vec<FileEdit>, diff: &str| EditAnswer {
            files,
            diff: diff.to_owned(),
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        let told = vec![NOTHING_CHANGED.to_owned()];
        assert_eq!(
            edit(&answer(files, "--- a/a.rs\n+b")),
            ("--- a/a.rs\n+b\n".to_owned(), told.clone())
        );
        let moved = vec![FileEdit::Rename {
            path: "a.rs".to_owned(),
            new_path: "b.rs".to_owned(),
        }];
        assert_eq!(
            edit(&answer(moved, "")),
            ("a.rs: renamed to b.rs\n".to_owned(), told)
        );
        assert_eq!(
            edit(&answer(Vec::new(), "")),
            ("no changes\n".to_owned(), Vec::new())
        );
    }

    #[test]
    fn actions_and_signatures_say_what_they_are() {
        let answer = CodeActionsAnswer {
            actions: vec![CodeAction {
                title: "Import `Vec`".to_owned(),
                kind: Some("quickfix".to_owned()),
                preferred: true,
                disabled: Some("still reading".to_owned()),
                files: vec![FileEdit::Create {
                    path: "b.rs".to_owned(),
                }],
            }],
            workspace: String::new(),
            answered_by: Vec::new(),
            not_answered: Vec::new(),
        };
        insta::assert_snapshot!(actions(&answer).0, @r"
        Import `Vec` [quickfix] (preferred)
            not now: still reading
            b.rs: created
        ");
        let one = |label: &str, active_parameter: Option<u32>| Signature {
            label: label.to_owned(),
            documentation: active_parameter.map(|_| "Adds.\n\nTwice.".to_owned()),
            parameters: vec!["a: u8".to_owned(), "b: u8".to_owned()],
            active_parameter,
        };
        let answer = SignatureAnswer {
            signatures: vec![one("f(a)", None), one("f(a, b)", Some(1))],
            active: Some(1),
            workspace: String::new(),
            answered_by: Vec::new(),
        };
        insta::assert_snapshot!(signature(&answer).0, @r"
          f(a)
        > f(a, b)
            at the parameter b: u8
            Adds.

            Twice.
        ");
    }
}
