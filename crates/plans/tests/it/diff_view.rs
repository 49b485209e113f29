//! What people see of changes.

use std::time::{Duration, Instant};

use plans::{Change, ChangeKind, Diff, Entry, FileDiff, diff};
use protocol::{DiffHunk, DiffLine, DiffLineKind};

use crate::merge_kit::{Store, link, path};

fn change(name: &str, before: Option<Entry>, after: Option<Entry>) -> Change {
    Change {
        path: path(name),
        before,
        after,
        from: None,
    }
}

/// The lines of a hunk, each with the letter of a patch.
fn lines(text: &[&str]) -> Vec<DiffLine> {
    let line = |line: &&str| {
        let (kind, text) = line.split_at(1);
        let (text, no_newline) = match text.strip_suffix('$') {
            Some(text) => (text, true),
            None => (text, false),
        };
        DiffLine {
            kind: match kind {
                "+" => DiffLineKind::Added,
                "-" => DiffLineKind::Removed,
                _ => DiffLineKind::Context,
            },
            text: text.to_owned(),
            no_newline,
        }
    };
    text.iter().map(line).collect()
}

fn hunk(old: (u64, u64), new: (u64, u64), text: &[&str]) -> DiffHunk {
    DiffHunk {
        old_start: old.0,
        old_lines: old.1,
        new_start: new.0,
        new_lines: new.1,
        lines: lines(text),
    }
}

#[test]
fn a_file_is_shown_with_what_is_around_the_changes() {
    let mut store = Store::default();
    let numbers = |changed: &[u32]| {
        let line = |at: u32| {
            if changed.contains(&at) {
                format!("new {at}\n")
            } else {
                format!("{at}\n")
            }
        };
        (1..=30).map(line).collect::<String>()
    };
    let (before, after) = (
        store.file(numbers(&[])),
        store.file_with(numbers(&[2, 8, 20]), 0o755),
    );
    let mut renamed = change("b", Some(before), Some(after));
    renamed.from = Some(path("a"));
    let expected = FileDiff {
        path: path("b"),
        from: Some(path("a")),
        kind: ChangeKind::Rename,
        old_mode: Some(0o100_644),
        new_mode: Some(0o100_755),
        binary: false,
        added_lines: 3,
        removed_lines: 3,
        hunks: vec![
            // Two changes whose surroundings meet are one hunk.
            hunk(
                (1, 11),
                (1, 11),
                &[
                    " 1", "-2", "+new 2", " 3", " 4", " 5", " 6", " 7", "-8", "+new 8", " 9", " 10", " 11",
                ],
            ),
            hunk(
                (17, 7),
                (17, 7),
                &[" 17", " 18", " 19", "-20", "+new 20", " 21", " 22", " 23"],
            ),
        ],
        cut: false,
    };
    let expected = Diff {
        files: vec![expected],
        files_left_out: 0,
        added_lines: 3,
        removed_lines: 3,
    };
    assert_eq!(diff(&[renamed], &store.0).unwrap(), expected);
}

#[test]
fn the_ends_of_files_and_odd_contents() {
    let mut store = Store::default();
    let cases = [
        (
            None,
            Some(store.file("a\nb")),
            (2, 0),
            vec![hunk((0, 0), (1, 2), &["+a", "+b$"])],
        ),
        (
            Some(store.file("a")),
            None,
            (0, 1),
            vec![hunk((1, 1), (0, 0), &["-a$"])],
        ),
        (None, Some(store.file("")), (0, 0), vec![]),
        (
            Some(store.file("a")),
            Some(store.file("a\n")),
            (1, 1),
            vec![hunk((1, 1), (1, 1), &["-a$", "+a"])],
        ),
        (
            Some(store.file("a\r\n")),
            Some(store.file("a\n")),
            (1, 1),
            vec![hunk((1, 1), (1, 1), &["-a\r", "+a"])],
        ),
        (
            Some(link("x")),
            Some(link("y")),
            (1, 1),
            vec![hunk((1, 1), (1, 1), &["-x$", "+y$"])],
        ),
        (
            Some(store.file(b"\xff\n")),
            Some(store.file("a\n")),
            (1, 1),
            vec![hunk((1, 1), (1, 1), &["-\u{fffd}", "+a"])],
        ),
        (
            Some(store.file("a")),
            Some(store.file_with("a", 0o755)),
            (0, 0),
            vec![],
        ),
        (
            Some(store.file("a\n")),
            Some(Entry::Directory),
            (0, 1),
            vec![hunk((1, 1), (0, 0), &["-a"])],
        ),
    ];
    for (before, after, (added, removed), hunks) in cases {
        let change = change("f", before, after);
        let file = diff(std::slice::from_ref(&change), &store.0)
            .unwrap()
            .files
            .remove(0);
        let found = (
            file.added_lines,
            file.removed_lines,
            file.hunks,
            file.binary,
            file.cut,
        );
        assert_eq!(found, (added, removed, hunks, false, false), "{change:?}");
    }
    let binary = change("f", Some(store.file("a")), Some(store.file(b"\0")));
    let file = diff(&[binary], &store.0).unwrap().files.remove(0);
    assert_eq!((file.binary, file.hunks), (true, vec![]));
    // A content that is too large is not asked for: it is not even there.
    let Entry::File { hash, mode, .. } = Store::default().file("not in the store") else {
        unreachable!()
    };
    let size = plans::TEXT_LIMIT_BYTES + 1;
    let large = change("f", None, Some(Entry::File { hash, size, mode }));
    assert!(diff(&[large], &store.0).unwrap().files[0].binary);
}

#[test]
fn directories_are_shown_only_if_they_are_empty() {
    let mut store = Store::default();
    let changes = [
        change("d", None, Some(Entry::Directory)),
        change("d/e", None, Some(Entry::Directory)),
        change("d/f", None, Some(store.file("a"))),
        change("g", Some(Entry::Directory), None),
        change("h", Some(Entry::Directory), None),
        change("h/x", Some(store.file("a")), None),
    ];
    let shown = diff(&changes, &store.0).unwrap();
    let shown: Vec<_> = shown
        .files
        .iter()
        .map(|file| (file.path.to_string(), file.kind, file.new_mode))
        .collect();
    let expected = [
        ("d/e".to_owned(), ChangeKind::Create, Some(0o040_000)),
        ("d/f".to_owned(), ChangeKind::Create, Some(0o100_644)),
        ("g".to_owned(), ChangeKind::Delete, None),
        ("h/x".to_owned(), ChangeKind::Delete, None),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_diff_is_bounded_and_says_so() {
    let mut store = Store::default();
    let long = store.file("line\n".repeat(12_000));
    let wide = store.file("x".repeat(10_000));
    let mut changes = vec![change("a-wide", None, Some(wide))];
    changes.extend((0..12).map(|index| change(&format!("b{index:02}"), None, Some(long.clone()))));
    let shown = diff(&changes, &store.0).unwrap();
    let sizes: Vec<_> = shown
        .files
        .iter()
        .map(|file| file.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>())
        .collect();
    let expected = [&[1][..], &[10_000; 9], &[9_999, 0, 0]].concat();
    assert_eq!(sizes, expected);
    let cut: Vec<_> = shown.files.iter().map(|file| file.cut).collect();
    assert_eq!(cut, [&[false][..], &[true; 12]].concat());
    assert_eq!((shown.added_lines, shown.files_left_out), (12 * 12_000 + 1, 0));
    assert_eq!(shown.files[0].hunks[0].lines[0].text, "x".repeat(4096) + " [...]");

    let small = store.file("a");
    let many: Vec<_> = (0..3_010)
        .map(|index| change(&format!("{index:04}"), None, Some(small.clone())))
        .collect();
    let shown = diff(&many, &store.0).unwrap();
    assert_eq!((shown.files.len(), shown.files_left_out), (3_000, 10));
    assert_eq!(shown.added_lines, 3_010, "the totals are those of all files");
}

#[test]
fn a_file_of_many_lines_that_was_made_or_deleted_is_not_looked_at_line_by_line() {
    let mut store = Store::default();
    let large = store.file("y\n".repeat(20_000_000) + "y");
    let changes = [
        change("deleted", Some(large.clone()), None),
        change("made", None, Some(large)),
    ];
    let begun = Instant::now();
    let shown = diff(&changes, &store.0).unwrap();
    let took = begun.elapsed();
    assert_eq!((shown.added_lines, shown.removed_lines), (20_000_001, 20_000_001));
    assert!(
        shown
            .files
            .iter()
            .all(|file| file.cut && file.hunks[0].lines.len() == 10_000)
    );
    assert!(took < Duration::from_secs(5), "it took {took:?}");
}
