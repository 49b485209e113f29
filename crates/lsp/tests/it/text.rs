//! Positions, excerpts, edits, differences and URIs, case by case.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, path::Path};

use PositionEncoding::{Utf8, Utf16, Utf32};
use lsp::{
    EditError, LineIndex, PositionEncoding, PositionError, TextEdit, UriError, WirePosition, WireRange,
    apply_edits, excerpt, path_of_uri, smallest_change, unified_diff, uri_of_path,
};
use protocol::{Position, Range};

fn wire(line: u32, character: u32) -> WirePosition {
    WirePosition { line, character }
}

fn at(line: u32, column: u32) -> Position {
    Position { line, column }
}

fn span(start: (u32, u32), end: (u32, u32)) -> WireRange {
    WireRange {
        start: wire(start.0, start.1),
        end: wire(end.0, end.1),
    }
}

#[test]
fn lines_end_as_the_protocol_says() {
    let cases: [(&str, &[&str]); 7] = [
        ("", &[""]),
        ("a", &["a"]),
        ("a\n", &["a", ""]),
        ("a\r\nb\rc\nd", &["a", "b", "c", "d"]),
        ("\r\r\n\n", &["", "", "", ""]),
        ("a\r", &["a", ""]),
        ("ä\u{2028}b\u{85}c", &["ä\u{2028}b\u{85}c"]),
    ];
    for (text, expected) in cases {
        let index = LineIndex::new(text);
        let lines: Vec<&str> = (0..index.line_count())
            .filter_map(|line| index.line(line))
            .collect();
        assert_eq!(lines, expected, "{text:?}");
        assert_eq!(index.line(index.line_count()), None);
    }
}

#[test]
fn a_place_has_a_name_in_every_encoding() {
    // One byte, two bytes, three bytes, four bytes and two units, then a second line.
    let index = LineIndex::new("aä€😀b\r\nc");
    let cases = [
        (0, wire(0, 0), wire(0, 0), wire(0, 0), at(1, 1)),
        (1, wire(0, 1), wire(0, 1), wire(0, 1), at(1, 2)),
        (3, wire(0, 3), wire(0, 2), wire(0, 2), at(1, 3)),
        (6, wire(0, 6), wire(0, 3), wire(0, 3), at(1, 4)),
        (10, wire(0, 10), wire(0, 5), wire(0, 4), at(1, 5)),
        (11, wire(0, 11), wire(0, 6), wire(0, 5), at(1, 6)),
        (13, wire(1, 0), wire(1, 0), wire(1, 0), at(2, 1)),
        (14, wire(1, 1), wire(1, 1), wire(1, 1), at(2, 2)),
    ];
    for (offset, utf8, utf16, utf32, people) in cases {
        for (encoding, expected) in [(Utf8, utf8), (Utf16, utf16), (Utf32, utf32)] {
            assert_eq!(index.wire_at(offset, encoding), expected, "{offset} {encoding:?}");
            assert_eq!(
                index.offset_of_wire(expected, encoding),
                offset,
                "{expected:?} {encoding:?}"
            );
            assert_eq!(index.wire_of(people, encoding), Ok(expected));
        }
        assert_eq!(index.position_at(offset), people);
        assert_eq!(index.offset_of(people), Ok(offset));
    }
    // Inside of the line break is the end of the line; behind the text is its end.
    assert_eq!(index.wire_at(12, Utf16), wire(0, 6));
    assert_eq!(index.wire_at(99, Utf16), wire(1, 1));
    assert_eq!(
        index.wire_at(7, Utf16),
        wire(0, 3),
        "inside of a character is its beginning"
    );
}

#[test]
fn positions_of_a_server_are_moved_into_the_text() {
    let index = LineIndex::new("aä😀\nb\r\n");
    let cases = [
        (wire(0, 99), Utf16, 7),
        (wire(0, u32::MAX), Utf8, 7),
        (wire(1, 2), Utf16, 9),
        (wire(2, 5), Utf16, 11),
        (wire(3, 0), Utf16, 11),
        (wire(u32::MAX, u32::MAX), Utf32, 11),
        (wire(0, 2), Utf8, 1),
        (wire(0, 3), Utf16, 3),
        (wire(0, 5), Utf8, 3),
    ];
    for (position, encoding, expected) in cases {
        assert_eq!(
            index.offset_of_wire(position, encoding),
            expected,
            "{position:?} {encoding:?}"
        );
    }
    let inverted = span((1, 0), (0, 0));
    assert_eq!(index.offsets_of_wire(inverted, Utf16), 8..8);
}

#[test]
fn positions_of_people_are_refused_with_what_would_be_right() {
    let index = LineIndex::new("aä😀\n\nb");
    let cases = [
        (at(1, 4), Ok(7)),
        (at(2, 1), Ok(8)),
        (at(3, 2), Ok(10)),
        (at(0, 1), Err(PositionError::Zero { position: at(0, 1) })),
        (at(1, 0), Err(PositionError::Zero { position: at(1, 0) })),
        (at(4, 1), Err(PositionError::NoSuchLine { line: 4, lines: 3 })),
        (
            at(1, 5),
            Err(PositionError::NoSuchColumn {
                line: 1,
                column: 5,
                length: 3,
            }),
        ),
        (
            at(2, 2),
            Err(PositionError::NoSuchColumn {
                line: 2,
                column: 2,
                length: 0,
            }),
        ),
    ];
    for (position, expected) in cases {
        assert_eq!(index.offset_of(position), expected, "{position}");
    }
    let inverted = Range {
        start: at(2, 1),
        end: at(1, 1),
    };
    assert_eq!(
        index.wire_of_range(inverted, Utf8),
        Err(PositionError::Inverted { range: inverted })
    );
    assert_eq!(
        index.offset_of(at(1, 5)).unwrap_err().to_string(),
        "there is no column 5 in line 1: the line ends after column 3"
    );
}

#[test]
fn excerpts_are_short_and_show_the_range() {
    let text = LineIndex::new("first\nsecond\nthird\nfourth");
    let long = LineIndex::new(format!("{}needle{}", "ä".repeat(50), "ö".repeat(50)));
    let cases = [
        (&text, 6..12, 99, "second"),
        (&text, 0..25, 99, "first"),
        (&text, 25..25, 99, "fourth"),
        (&long, 100..106, 10, "…ääneedleöö…"),
        (&long, 0..2, 4, "ääää…"),
        (&long, 206..206, 4, "…öööö"),
        (&long, 100..106, 3, "…nee…"),
    ];
    for (text, offsets, max_columns, expected) in cases {
        assert_eq!(
            excerpt(text, &offsets, max_columns),
            expected,
            "{offsets:?} {max_columns}"
        );
    }
}

#[test]
fn edits_apply_together_or_not_at_all() {
    let edit = |range, new_text: &str| TextEdit {
        range,
        new_text: new_text.to_owned(),
    };
    let (first, second) = (span((0, 0), (0, 3)), span((0, 2), (0, 4)));
    let cases = [
        (vec![], Ok("one\ntwo\n")),
        (
            vec![edit(span((1, 0), (1, 3)), "2"), edit(span((0, 0), (0, 3)), "1")],
            Ok("1\n2\n"),
        ),
        (
            vec![edit(span((0, 1), (0, 1)), "a"), edit(span((0, 1), (0, 1)), "b")],
            Ok("oabne\ntwo\n"),
        ),
        (
            vec![edit(span((0, 1), (0, 2)), "X"), edit(span((0, 1), (0, 1)), "a")],
            Ok("oaXe\ntwo\n"),
        ),
        (
            vec![edit(span((0, 0), (0, 1)), ""), edit(span((0, 1), (0, 2)), "")],
            Ok("e\ntwo\n"),
        ),
        (vec![edit(span((0, 0), (99, 0)), "all")], Ok("all")),
        (
            vec![edit(second, ""), edit(first, "")],
            Err(EditError::Overlap { first, second }),
        ),
        (
            vec![edit(span((1, 0), (0, 0)), "")],
            Err(EditError::Inverted {
                range: span((1, 0), (0, 0)),
            }),
        ),
    ];
    let text = LineIndex::new("one\ntwo\n");
    for (edits, expected) in cases {
        let applied = apply_edits(&text, &edits, Utf16);
        assert_eq!(
            applied.as_deref(),
            expected.as_ref().map(|text| *text),
            "{edits:?}"
        );
    }
}

#[test]
fn a_change_is_as_small_as_it_can_be() {
    let cases = [
        ("abc", "abXc", span((0, 2), (0, 2)), "X"),
        ("aaa", "aa", span((0, 2), (0, 3)), ""),
        ("a\nb\nc", "a\nB\nc", span((1, 0), (1, 1)), "B"),
        ("", "new", span((0, 0), (0, 0)), "new"),
        ("same", "same", span((0, 0), (0, 0)), ""),
        // Both characters begin and end with the same bytes.
        ("x😀y", "x😁y", span((0, 1), (0, 3)), "😁"),
        // There is no position between the two halves of a line break.
        ("a\r\nb", "a\rb", span((0, 1), (1, 0)), "\r"),
        ("a\r\nb", "a\nb", span((0, 1), (1, 0)), "\n"),
        ("a\nb", "a\r\nb", span((0, 1), (0, 1)), "\r"),
    ];
    for (old, new, range, text) in cases {
        let change = smallest_change(&LineIndex::new(old), new, Utf16);
        assert_eq!(
            (change.range, change.text.as_str()),
            (Some(range), text),
            "{old:?} {new:?}"
        );
    }
}

#[test]
fn paths_and_uris() {
    let there_and_back = [
        ("/a/b.rs", "file:///a/b.rs"),
        ("/a b/c#d?e%f", "file:///a%20b/c%23d%3Fe%25f"),
        (
            "/ä/:@&=+$,[]!'()*",
            "file:///%C3%A4/%3A%40%26%3D%2B%24%2C%5B%5D%21%27%28%29%2A",
        ),
        ("/-._~", "file:///-._~"),
    ];
    for (path, uri) in there_and_back {
        assert_eq!(uri_of_path(Path::new(path)).as_deref(), Ok(uri));
        assert_eq!(path_of_uri(uri).as_deref(), Ok(Path::new(path)));
    }
    let back = [
        ("file:///a:b/%c3%a4", "/a:b/ä"),
        ("file:/a", "/a"),
        ("FILE://localhost/a", "/a"),
        ("file:///100%", "/100%"),
        ("file:///a%zz", "/a%zz"),
        ("file:///a?query#fragment", "/a"),
    ];
    for (uri, path) in back {
        assert_eq!(path_of_uri(uri).as_deref(), Ok(Path::new(path)), "{uri}");
    }
    let not_a_file = |uri: &str| UriError::NotAFile { uri: uri.to_owned() };
    let bad_encoding = |uri: &str| UriError::BadEncoding { uri: uri.to_owned() };
    for uri in [
        "http://a/b",
        "a",
        "",
        "file://host/a",
        "file://host",
        "file:a",
        "untitled:1",
    ] {
        assert_eq!(path_of_uri(uri), Err(not_a_file(uri)));
    }
    for uri in ["file:///%ff", "file:///a%00b"] {
        assert_eq!(path_of_uri(uri), Err(bad_encoding(uri)));
    }
    let not_text = Path::new(OsStr::from_bytes(b"/\xff"));
    assert_eq!(
        uri_of_path(not_text),
        Err(UriError::NotUtf8 {
            path: not_text.into()
        })
    );
    assert_eq!(
        uri_of_path(Path::new("a")),
        Err(UriError::NotAbsolute { path: "a".into() })
    );
}

#[test]
fn differences_are_unified() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10";
    assert_eq!(
        unified_diff("a/x", "b/x", old, new),
        "--- a/x\n+++ b/x\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+10\n\\ No newline at end of file\n"
    );
    assert_eq!(unified_diff("a/x", "b/x", old, old), "");
}

#[test]
fn a_difference_that_would_take_for_ever_is_shown_as_a_whole() {
    let lines = |word: &str| {
        (0..5000)
            .map(|line| format!("{word} {line}\n"))
            .collect::<String>()
    };
    let diff = unified_diff("a/x", "b/x", &lines("old"), &lines("new"));
    assert!(
        diff.starts_with("--- a/x\n+++ b/x\n@@ -1,5000 +1,5000 @@\n-old 0\n"),
        "{}",
        &diff[..80]
    );
    let count = |mark| diff.lines().filter(|line| line.starts_with(mark)).count();
    assert_eq!((count('-'), count('+')), (5001, 5001));
}
