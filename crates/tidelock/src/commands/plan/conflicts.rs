//! Why an attempt failed: the conflicts, file by file.

use protocol::{PlanConflict, PlanConflictHunk};

use crate::output::{Palette, Tone};
use crate::printable::cut;
use crate::units::format_count;

/// How many files are shown. With more, it's better to view them one by one.
const FILES: usize = 20;
const HUNKS: usize = 5;
const LINES: usize = 12;
const LINE_CHARACTERS: usize = 160;

/// All conflicts, for people. The texts must be printable.
pub(super) fn describe(palette: Palette, conflicts: &[PlanConflict]) -> String {
    let mut text = String::new();
    for conflict in conflicts.iter().take(FILES) {
        let other = conflict
            .other
            .as_deref()
            .map_or_else(String::new, |other| format!(" (with {other})"));
        let heading = format!("{}{other}: {}", conflict.path, kind(conflict));
        text.push_str(&palette.paint(&heading, Tone::Bad));
        text.push('\n');
        for hunk in conflict.hunks.iter().take(HUNKS) {
            describe_hunk(palette, hunk, &mut text);
        }
        more(conflict.hunks.len(), HUNKS, "place", "  ", &mut text);
    }
    more(conflicts.len(), FILES, "file", "", &mut text);
    text
}

fn describe_hunk(palette: Palette, hunk: &PlanConflictHunk, text: &mut String) {
    text.push_str(&format!("  line {} of the workspace\n", hunk.line));
    for (label, lines, tone) in [
        ("base", &hunk.base, Tone::Quiet),
        ("workspace", &hunk.ours, Tone::Warning),
        ("plan", &hunk.theirs, Tone::Good),
    ] {
        let lines: Vec<&str> = lines.lines().collect();
        let nothing = if lines.is_empty() { " (nothing)" } else { "" };
        text.push_str(&format!(
            "    {}\n",
            palette.paint(&format!("{label}{nothing}"), Tone::Quiet)
        ));
        for line in lines.iter().take(LINES) {
            let line = bounded(line);
            text.push_str(format!("      | {}", palette.paint(&line, tone)).trim_end());
            text.push('\n');
        }
        more(lines.len(), LINES, "line", "      ", text);
    }
}

/// A line with its indentation, cut to a maximum length.
fn bounded(line: &str) -> String {
    if line.chars().count() <= LINE_CHARACTERS {
        return line.trim_end().to_owned();
    }
    cut(line, LINE_CHARACTERS)
}

fn more(count: usize, shown: usize, thing: &str, indent: &str, text: &mut String) {
    if count > shown {
        let left = format_count((count - shown) as u64, &format!("more {thing}"));
        text.push_str(&format!("{indent}… and {left}\n"));
    }
}

fn kind(conflict: &PlanConflict) -> &str {
    match conflict.kind.as_str() {
        "content" => "the workspace and the plan changed the same lines",
        "binary" => "the workspace and the plan changed it, and it is not text",
        "both_added" => "the workspace and the plan added it, with different contents",
        "deleted_by_workspace" => "the workspace deleted it, and the plan changed it",
        "deleted_by_plan" => "the plan deleted it, and the workspace changed it",
        "both_renamed" => "the workspace and the plan renamed it differently",
        "directory_and_file" => "it is a directory on one side and a file on the other",
        "type" => "the workspace and the plan turned it into different kinds of files",
        "moving" => "something wrote to it at that moment",
        // From a daemon of another version.
        _ => &conflict.text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{conflict, content_conflict};
    use super::*;

    #[test]
    fn every_kind_has_words_and_hunks_are_in_three_blocks() {
        let mut conflicts = vec![content_conflict()];
        conflicts.extend(
            [
                "binary",
                "both_added",
                "deleted_by_workspace",
                "deleted_by_plan",
                "directory_and_file",
                "type",
                "moving",
                "from_the_future",
            ]
            .map(conflict),
        );
        conflicts.push(PlanConflict {
            other: Some("src/elsewhere.rs".to_owned()),
            ..conflict("both_renamed")
        });
        insta::assert_snapshot!(describe(Palette::Plain, &conflicts));
    }

    #[test]
    fn the_sides_have_colours() {
        let one = PlanConflict {
            hunks: vec![PlanConflictHunk {
                line: 1,
                base: "b\n".to_owned(),
                ours: "w\n".to_owned(),
                theirs: "p\n".to_owned(),
            }],
            ..conflict("content")
        };
        let text = describe(Palette::Coloured, &[one]);
        for part in [
            "\u{1b}[31msrc/main.rs: ",
            "| \u{1b}[2mb\u{1b}[0m",
            "| \u{1b}[33mw\u{1b}[0m",
            "| \u{1b}[32mp\u{1b}[0m",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text:?}");
        }
    }

    #[test]
    fn a_report_is_bounded_whatever_there_is() {
        let hunk = PlanConflictHunk {
            line: 1,
            base: "x\n".repeat(1000),
            ours: "y".repeat(10_000),
            theirs: String::new(),
        };
        let large = PlanConflict {
            hunks: vec![hunk; 100],
            ..conflict("content")
        };
        let text = describe(Palette::Plain, &vec![large; 500]);
        assert!(
            text.lines().count() < FILES * (2 + HUNKS * (6 + 2 * LINES)),
            "{}",
            text.lines().count()
        );
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= LINE_CHARACTERS + 8)
        );
        assert!(
            text.ends_with("  … and 95 more places\n… and 480 more files\n"),
            "{}",
            &text[text.len() - 100..]
        );
    }
}
