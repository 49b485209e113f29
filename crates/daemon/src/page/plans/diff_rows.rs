//! The lines of one file, as a table: one below the other, or side by side.
//!
//! Each line has its numbers and its sign, so that the colours aren't essential. Copied text doesn't include numbers
//! and signs.

use maud::{Markup, html};
use protocol::{DiffHunk, DiffLine, DiffLineKind, FileDiff};

use super::diff::Arrangement;
use crate::page::parts::text::{exact, exact_words};

#[derive(Clone, Copy, Debug)]
struct Numbered<'a> {
    old: u64,
    new: u64,
    line: &'a DiffLine,
}

/// The first `limit` lines of a file's hunks.
pub(crate) fn rows(file: &FileDiff, arrangement: Arrangement, limit: usize) -> Markup {
    let mut left = limit;
    let bodies = file.hunks.iter().map_while(|hunk| {
        let taken = hunk.lines.len().min(left);
        left -= taken;
        (taken > 0).then(|| match arrangement {
            Arrangement::Unified => unified(hunk, taken),
            Arrangement::Split => split(hunk, taken),
        })
    });
    let class = match arrangement {
        Arrangement::Unified => "diff unified",
        Arrangement::Split => "diff split",
    };
    html! {
        // The keyboard can scroll it, for lines that are wider than the page.
        div class="diff-scroll" tabindex="0" role="region" aria-label={ "Lines of " (exact_words(&file.path)) } {
            table class=(class) {
                @if arrangement == Arrangement::Split { (columns()) }
                @for body in bodies { (body) }
            }
        }
    }
}

fn columns() -> Markup {
    html! {
        colgroup {
            @for _ in 0..2 { col class="line-column"; col class="mark-column"; col; }
        }
    }
}

fn numbered(hunk: &DiffHunk, taken: usize) -> Vec<Numbered<'_>> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let lines = hunk.lines.iter().take(taken).map(|line| {
        let numbered = Numbered { old, new, line };
        old += u64::from(line.kind != DiffLineKind::Added);
        new += u64::from(line.kind != DiffLineKind::Removed);
        numbered
    });
    lines.collect()
}

fn place(hunk: &DiffHunk) -> String {
    format!(
        "@@ −{},{} +{},{} @@",
        hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines
    )
}

fn unified(hunk: &DiffHunk, taken: usize) -> Markup {
    html! {
        tbody {
            tr class="hunk" { td colspan="4" { (place(hunk)) } }
            @for Numbered { old, new, line } in numbered(hunk, taken) {
                tr class=[class(line)] {
                    td class="line" { @if line.kind != DiffLineKind::Added { (old) } }
                    td class="line" { @if line.kind != DiffLineKind::Removed { (new) } }
                    (words(line))
                }
            }
        }
    }
}

fn split(hunk: &DiffHunk, taken: usize) -> Markup {
    html! {
        tbody {
            tr class="hunk" { td colspan="6" { (place(hunk)) } }
            @for (before, after) in pairs(&numbered(hunk, taken)) {
                tr {
                    (side(before, |numbered| numbered.old))
                    (side(after, |numbered| numbered.new))
                }
            }
        }
    }
}

/// Side by side: an unchanged line, or a removed line and the one added in its place.
fn pairs<'a>(lines: &[Numbered<'a>]) -> Vec<(Option<Numbered<'a>>, Option<Numbered<'a>>)> {
    let mut pairs = Vec::new();
    let mut rest = lines;
    while let Some((first, others)) = rest.split_first() {
        if first.line.kind == DiffLineKind::Context {
            pairs.push((Some(*first), Some(*first)));
            rest = others;
            continue;
        }
        let is_change = |numbered: &Numbered<'_>| numbered.line.kind != DiffLineKind::Context;
        let end = rest
            .iter()
            .position(|each| !is_change(each))
            .unwrap_or(rest.len());
        let (changed, after) = rest.split_at(end);
        let of = |kind: DiffLineKind| changed.iter().filter(move |each| each.line.kind == kind).copied();
        let (mut removed, mut added) = (of(DiffLineKind::Removed), of(DiffLineKind::Added));
        loop {
            let pair = (removed.next(), added.next());
            if let (None, None) = pair {
                break;
            }
            pairs.push(pair);
        }
        rest = after;
    }
    pairs
}

fn side<'a>(numbered: Option<Numbered<'a>>, number: impl Fn(Numbered<'a>) -> u64) -> Markup {
    html! {
        @match numbered {
            Some(numbered) => {
                td class={ "line " (class(numbered.line).unwrap_or_default()) } { (number(numbered)) }
                (words(numbered.line))
            }
            None => { td class="line none" {} td class="mark none" {} td class="code none" {} }
        }
    }
}

fn words(line: &DiffLine) -> Markup {
    let class = class(line).unwrap_or_default();
    let sign = match line.kind {
        DiffLineKind::Context => "",
        DiffLineKind::Added => "+",
        DiffLineKind::Removed => "−",
    };
    html! {
        td class={ "mark " (class) } { (sign) }
        td class={ "code " (class) } {
            (exact(&line.text))
            @if line.no_newline { span class="odd" { "no end of line" } }
        }
    }
}

fn class(line: &DiffLine) -> Option<&'static str> {
    match line.kind {
        DiffLineKind::Context => None,
        DiffLineKind::Added => Some("added"),
        DiffLineKind::Removed => Some("removed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::parts::text::tests::assert_parts;
    use crate::page::plans::diff::tests::{file, hunk};

    /// The visible text of each row: its cells, with a bar between them.
    fn seen(table: &Markup) -> Vec<String> {
        let rows = table.0.split("</tr>").filter(|row| row.contains("<td"));
        let cells = |row: &str| {
            let cells = row.split("<td").skip(1);
            let texts = cells.map(|cell| {
                let inner = cell.split_once('>').unwrap().1;
                let mut text = String::new();
                let mut within = false;
                for character in inner.chars() {
                    match character {
                        '<' => within = true,
                        '>' => within = false,
                        _ if !within => text.push(character),
                        _ => {}
                    }
                }
                text
            });
            texts.collect::<Vec<_>>().join("|")
        };
        rows.map(cells).collect()
    }

    #[test]
    fn lines_have_their_numbers_and_signs() {
        let file = file(
            "a.rs",
            vec![hunk(10, 20, &[" same", "-old", "+new", "+more", " end"])],
        );
        assert_eq!(
            seen(&rows(&file, Arrangement::Unified, 100)),
            [
                "@@ −10,3 +20,4 @@",
                "10|20||same",
                "11||−|old",
                "|21|+|new",
                "|22|+|more",
                "12|23||end",
            ]
        );
        assert_eq!(
            seen(&rows(&file, Arrangement::Split, 100)),
            [
                "@@ −10,3 +20,4 @@",
                "10||same|20||same",
                "11|−|old|21|+|new",
                "|||22|+|more",
                "12||end|23||end",
            ]
        );
    }

    #[test]
    fn what_was_removed_and_added_stands_side_by_side_place_by_place() {
        let lines = ["-a", "-b", " c", "+d", " e", "-f"];
        let file = file("a.rs", vec![hunk(1, 1, &lines)]);
        assert_eq!(
            seen(&rows(&file, Arrangement::Split, 100)),
            [
                "@@ −1,5 +1,3 @@",
                "1|−|a|||",
                "2|−|b|||",
                "3||c|1||c",
                "|||2|+|d",
                "4||e|3||e",
                "5|−|f|||",
            ]
        );
    }

    #[test]
    fn no_more_lines_than_wanted_are_shown() {
        let hunks = vec![
            hunk(1, 1, &["+a", "+b"]),
            hunk(9, 9, &["+c", "+d"]),
            hunk(20, 20, &["+e"]),
        ];
        let file = file("a.rs", hunks);
        for (limit, expected) in [(0, 0), (1, 2), (2, 3), (3, 5), (4, 6), (5, 8), (100, 8)] {
            for arrangement in [Arrangement::Unified, Arrangement::Split] {
                // Each hunk has a row that says where it is.
                assert_eq!(seen(&rows(&file, arrangement, limit)).len(), expected, "{limit}");
            }
        }
    }

    #[test]
    fn what_files_say_is_shown_as_text() {
        let mut hunk = hunk(1, 1, &["+<script>alert(1)</script>\u{202e}\u{1b}[31m\r"]);
        hunk.lines[0].no_newline = true;
        let file = file("<b>\u{202e}.rs", vec![hunk]);
        for arrangement in [Arrangement::Unified, Arrangement::Split] {
            let shown = rows(&file, arrangement, 100).into_string();
            for trace in ["<script>", "<b>", "\u{202e}", "\u{1b}", "\r"] {
                assert!(!shown.contains(trace), "{trace:?}: {shown}");
            }
            assert_parts(
                &shown,
                &[
                    "&lt;script&gt;alert(1)&lt;/script&gt;<span class=\"odd\">&lt;U+202E&gt;</span>",
                    "<span class=\"odd\">CR</span><span class=\"odd\">no end of line</span>",
                ],
            );
        }
    }
}
