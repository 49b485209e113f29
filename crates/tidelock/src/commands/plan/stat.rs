//! How much changed in each file, as git's `--stat` shows it.

use protocol::{DiffSummary, FileDiff, PlanDiff};

use crate::output::{Palette, Tone};
use crate::units::format_count;

/// The minimum width of a path, however narrow the terminal.
const LEAST_PATH: usize = 20;
const WIDEST_BAR: usize = 40;

/// A line for each of the first `files` files, and one for the total.
pub(in crate::commands) fn stat(palette: Palette, diff: &PlanDiff, files: usize, columns: usize) -> String {
    let shown: Vec<&FileDiff> = diff.files.iter().take(files).collect();
    let names: Vec<String> = shown.iter().map(|file| name(file)).collect();
    let counts: Vec<String> = shown.iter().map(|file| count(file)).collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let count_width = widest(&counts);
    let most = shown.iter().map(|file| changed(file)).max().unwrap_or(0);
    let remarks: Vec<String> = shown.iter().map(|file| remark(file)).collect();
    let room = columns.saturating_sub(count_width + widest(&remarks) + 6);
    let bar_width = WIDEST_BAR.min(room / 3);
    let name_width = widest(&names).min(room.saturating_sub(bar_width).max(LEAST_PATH));
    let mut text = String::new();
    for (((file, name), count), remark) in shown.iter().zip(&names).zip(&counts).zip(&remarks) {
        let name = keep_the_end(name, name_width);
        let padding = " ".repeat(name_width - name.chars().count());
        let bar = bar(palette, file, most, bar_width);
        let remark = match remark.as_str() {
            "" => String::new(),
            remark => palette.paint(remark, Tone::Quiet),
        };
        let line = format!(" {name}{padding} | {count:>count_width$} {bar}{remark}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if diff.files.len() > shown.len() {
        let more = format_count((diff.files.len() - shown.len()) as u64, "more file");
        text.push_str(&format!(" … and {more}\n"));
    }
    text.push_str(&total(&diff.summary));
    text
}

fn total(summary: &DiffSummary) -> String {
    let files = format_count(summary.files, "file");
    let lines = match (summary.added_lines, summary.removed_lines) {
        (Some(added), Some(removed)) => format!(", {added} added, {removed} removed"),
        _ => String::new(),
    };
    format!(" {files} changed{lines}\n")
}

fn name(file: &FileDiff) -> String {
    match &file.from {
        Some(from) => format!("{from} -> {}", file.path),
        None => file.path.clone(),
    }
}

fn changed(file: &FileDiff) -> u64 {
    file.added_lines.saturating_add(file.removed_lines)
}

fn count(file: &FileDiff) -> String {
    if file.binary {
        "Bin".to_owned()
    } else {
        changed(file).to_string()
    }
}

/// What the numbers don't show.
fn remark(file: &FileDiff) -> String {
    match (file.kind.as_str(), &file.old_mode, &file.new_mode) {
        ("create", ..) => " (new)".to_owned(),
        ("delete", ..) => " (gone)".to_owned(),
        ("symlink", ..) => " (symlink)".to_owned(),
        (_, Some(old), Some(new)) if old != new => format!(" (mode {new})"),
        _ => String::new(),
    }
}

/// One sign per line, or per several lines if there are too many. A changed file has at least one.
fn bar(palette: Palette, file: &FileDiff, most: u64, width: usize) -> String {
    if file.binary {
        return String::new();
    }
    let scale = |lines: u64| -> usize {
        let width_lines = width as u64;
        if most <= width_lines {
            return usize::try_from(lines).unwrap_or(width);
        }
        let signs = u128::from(lines) * u128::from(width_lines) / u128::from(most.max(1));
        usize::try_from(signs)
            .unwrap_or(width)
            .max(usize::from(lines > 0))
    };
    let plus = "+".repeat(scale(file.added_lines));
    let minus = "-".repeat(scale(file.removed_lines));
    let painted = |signs: &str, tone| match signs {
        "" => String::new(),
        signs => palette.paint(signs, tone),
    };
    format!("{}{}", painted(&plus, Tone::Good), painted(&minus, Tone::Bad))
}

/// The end of a long path says more than its beginning.
fn keep_the_end(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(length - width.saturating_sub(1)).collect();
    format!("…{kept}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn file(path: &str, added_lines: u64, removed_lines: u64) -> FileDiff {
        FileDiff {
            path: path.to_owned(),
            from: None,
            kind: "modify".to_owned(),
            old_mode: None,
            new_mode: None,
            binary: false,
            added_lines,
            removed_lines,
            hunks: Vec::new(),
            cut: false,
        }
    }

    pub(in super::super) fn diff(files: Vec<FileDiff>) -> PlanDiff {
        let sum = |count: fn(&FileDiff) -> u64| files.iter().map(count).sum();
        PlanDiff {
            plan: "plan_1".to_owned(),
            fingerprint: "f".to_owned(),
            summary: DiffSummary {
                files: files.len() as u64,
                added_lines: Some(sum(|file| file.added_lines)),
                removed_lines: Some(sum(|file| file.removed_lines)),
            },
            files,
        }
    }

    fn files() -> Vec<FileDiff> {
        let kind = |kind: &str, file: FileDiff| FileDiff {
            kind: kind.to_owned(),
            ..file
        };
        vec![
            file("src/main.rs", 7, 3),
            kind("create", file("src/new.rs", 12, 0)),
            kind("delete", file("old.rs", 0, 5)),
            FileDiff {
                from: Some("a.rs".to_owned()),
                ..kind("rename", file("b.rs", 0, 0))
            },
            FileDiff {
                binary: true,
                ..file("logo.png", 0, 0)
            },
            FileDiff {
                old_mode: Some("100644".to_owned()),
                new_mode: Some("100755".to_owned()),
                ..kind("chmod", file("run.sh", 0, 0))
            },
        ]
    }

    #[test]
    fn every_kind_of_change_has_its_line() {
        insta::assert_snapshot!(stat(Palette::Plain, &diff(files()), 100, 80));
    }

    #[test]
    fn bars_are_scaled_and_nothing_is_wider_than_the_terminal() {
        let mut many = files();
        many.push(file(&"deep/".repeat(40), 100_000, 1));
        many.push(file("one.rs", 1, 0));
        many.extend((0..50).map(|number| file(&format!("file{number}"), 1, 1)));
        let text = stat(Palette::Plain, &diff(many), 10, 60);
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn one_file_is_not_several_and_none_is_no_error() {
        for (files, expected) in [
            (
                vec![file("a", 1, 1)],
                " a | 2 +-\n 1 file changed, 1 added, 1 removed\n",
            ),
            (Vec::new(), " 0 files changed, 0 added, 0 removed\n"),
        ] {
            assert_eq!(stat(Palette::Plain, &diff(files), 10, 80), expected);
        }
    }
}
