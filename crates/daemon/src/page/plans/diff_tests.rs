use protocol::{DiffHunk, DiffLine, DiffLineKind, DiffSummary};

use super::*;
use crate::page::parts::text::tests::{assert_absent, assert_parts};

/// A hunk: each line begins with its sign.
pub(crate) fn hunk(old_start: u64, new_start: u64, lines: &[&str]) -> DiffHunk {
    let lines: Vec<DiffLine> = lines
        .iter()
        .map(|line| DiffLine {
            kind: match line.as_bytes()[0] {
                b'+' => DiffLineKind::Added,
                b'-' => DiffLineKind::Removed,
                _ => DiffLineKind::Context,
            },
            text: line[1..].to_owned(),
            no_newline: false,
        })
        .collect();
    let count = |not: DiffLineKind| lines.iter().filter(|line| line.kind != not).count() as u64;
    DiffHunk {
        old_start,
        old_lines: count(DiffLineKind::Added),
        new_start,
        new_lines: count(DiffLineKind::Removed),
        lines,
    }
}

pub(crate) fn file(path: &str, hunks: Vec<DiffHunk>) -> FileDiff {
    let count = |kind: DiffLineKind| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.kind == kind).count() as u64
    };
    FileDiff {
        path: path.to_owned(),
        from: None,
        kind: "modify".to_owned(),
        old_mode: Some("100644".to_owned()),
        new_mode: Some("100644".to_owned()),
        binary: false,
        added_lines: count(DiffLineKind::Added),
        removed_lines: count(DiffLineKind::Removed),
        hunks,
        cut: false,
    }
}

pub(crate) fn diff(files: Vec<FileDiff>) -> PlanDiff {
    PlanDiff {
        plan: "plan_1".to_owned(),
        fingerprint: "f1a6".to_owned(),
        summary: DiffSummary {
            files: files.len() as u64,
            added_lines: Some(files.iter().map(|file| file.added_lines).sum()),
            removed_lines: Some(files.iter().map(|file| file.removed_lines).sum()),
        },
        files,
    }
}

fn many(count: usize) -> Vec<DiffHunk> {
    vec![hunk(1, 1, &vec!["+line"; count])]
}

fn shown(diff: &PlanDiff, view: &View) -> String {
    section(diff, view).into_string()
}

#[test]
fn an_address_says_what_is_seen() {
    for (view, expected) in [
        (View::default(), "/plans/plan_1"),
        (
            View {
                arrangement: Arrangement::Split,
                changeset: Some("changeset_1".to_owned()),
                file: Some("a b/ü&c".to_owned()),
            },
            "/plans/plan_1?view=split&changeset=changeset_1&file=a%20b%2F%C3%BC%26c",
        ),
    ] {
        assert_eq!(view.address("plan_1"), expected);
    }
}

#[test]
fn what_happened_to_a_file_is_said_in_words() {
    let modes = |old: &str, new: &str| {
        let mode = |mode: &str| (!mode.is_empty()).then(|| mode.to_owned());
        FileDiff {
            old_mode: mode(old),
            new_mode: mode(new),
            ..file("a", vec![hunk(1, 1, &["+x"])])
        }
    };
    let of = |kind: &str, file: FileDiff| FileDiff {
        kind: kind.to_owned(),
        ..file
    };
    let renamed = FileDiff {
        from: Some("<old>".to_owned()),
        ..of("rename", modes("100644", "100644"))
    };
    let binary = FileDiff {
        binary: true,
        hunks: Vec::new(),
        ..modes("100644", "100644")
    };
    let empty = FileDiff {
        hunks: Vec::new(),
        ..of("create", modes("", "100644"))
    };
    let directory = FileDiff {
        hunks: Vec::new(),
        ..of("create", modes("", "040000"))
    };
    for (file, expected) in [
        (modes("100644", "100644"), vec![]),
        (of("create", modes("", "100644")), vec!["New file."]),
        (of("create", modes("", "100755")), vec!["New executable file."]),
        (of("create", modes("", "120000")), vec!["New symlink."]),
        (of("delete", modes("100644", "")), vec!["Deleted file."]),
        (empty, vec!["New file.", "Empty."]),
        (directory, vec!["New directory."]),
        (renamed, vec!["Renamed from <code>&lt;old&gt;</code>."]),
        (
            of("chmod", modes("100644", "100755")),
            vec!["Now executable (<code>100644</code> → <code>100755</code>)."],
        ),
        (
            of("chmod", modes("100755", "100644")),
            vec!["No longer executable (<code>100755</code> → <code>100644</code>)."],
        ),
        (
            of("chmod", modes("100644", "100744")),
            vec!["Now executable (<code>100644</code> → <code>100744</code>)."],
        ),
        (
            of("chmod", modes("100600", "100644")),
            vec!["Permissions changed (<code>100600</code> → <code>100644</code>)."],
        ),
        (
            of("symlink", modes("100644", "120000")),
            vec!["Now a symlink (<code>100644</code> → <code>120000</code>)."],
        ),
        (binary, vec!["Binary, or too large to show."]),
    ] {
        let found: Vec<String> = remarks(&file).into_iter().map(Markup::into_string).collect();
        assert_eq!(found, expected, "{file:?}");
    }
}

#[test]
fn a_long_file_is_cut_and_its_own_page_has_all_of_it() {
    let diff = diff(vec![file("long", many(FILE_LINES + 3)), file("short", many(2))]);
    let all = shown(&diff, &View::default());
    assert_eq!(all.matches("<td class=\"code added\">").count(), FILE_LINES + 2);
    assert_parts(
        &all,
        &[
            "3 more lines. <a href=\"/plans/plan_1?file=long#changes\">Show the whole file</a>",
            "<section class=\"diff-file\" id=\"file-1\" aria-label=\"short\">",
        ],
    );
    let view = View {
        file: Some("long".to_owned()),
        ..View::default()
    };
    let one = shown(&diff, &view);
    assert_eq!(one.matches("<td class=\"code added\">").count(), FILE_LINES + 3);
    assert_absent(&one, &["Show all", "aria-label=\"short\""]);
    assert!(one.contains(">All files</a>"), "{one}");
}

#[test]
fn a_page_has_an_end_and_every_file_is_still_named() {
    let count = PAGE_LINES / FILE_LINES + 5;
    let mut diff = diff(
        (0..count)
            .map(|number| file(&format!("{number}"), many(FILE_LINES)))
            .collect(),
    );
    diff.summary.files += 7;
    let all = shown(&diff, &View::default());
    assert_eq!(all.matches("<td class=\"code added\">").count(), PAGE_LINES);
    assert_eq!(all.matches("<section class=\"diff-file\"").count(), count);
    assert!(all.contains("7 more files are not shown."), "{all}");
    assert!(all.contains(&format!("{FILE_LINES} more lines. <a ")), "{all}");
}

#[test]
fn the_switch_keeps_the_rest_of_the_address() {
    let view = View {
        arrangement: Arrangement::Split,
        changeset: Some("changeset_1".to_owned()),
        file: Some("a".to_owned()),
    };
    let page = shown(&diff(vec![file("a", many(1))]), &view);
    assert_parts(
        &page,
        &[
            "<h2 id=\"changes\">Changes in this changeset</h2>",
            "<a href=\"/plans/plan_1?changeset=changeset_1&amp;file=a#changes\" data-key=\"view Unified\">Unified</a>",
            "aria-current=\"true\">Side by side</a>",
            "<a href=\"/plans/plan_1?view=split&amp;changeset=changeset_1#changes\" data-key=\"all files\">",
            "<a href=\"/plans/plan_1?view=split#changes\" data-key=\"all changes\">",
            "<table class=\"diff split\">",
        ],
    );
}

#[test]
fn names_of_files_are_shown_as_text() {
    let hostile = "<script>alert(1)</script>\"'\u{202e}";
    let page = shown(&diff(vec![file(hostile, many(1))]), &View::default());
    for trace in ["<script>", "\u{202e}", "\"'"] {
        assert!(!page.contains(trace), "{trace:?}: {page}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
}

#[test]
fn nothing_is_said_to_be_nothing() {
    let nothing = shown(&diff(Vec::new()), &View::default());
    assert!(nothing.contains("No changes."), "{nothing}");
    let view = View {
        file: Some("gone".to_owned()),
        ..View::default()
    };
    let gone = shown(&diff(vec![file("a", many(1))]), &view);
    assert_parts(&gone, &["This file has no changes, or no longer has any."]);
}
