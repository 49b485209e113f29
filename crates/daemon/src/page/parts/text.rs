//! Text for people: names and contents of files, titles, numbers, and text in URLs.
//!
//! An attacker may have written a file, so nothing in it is trusted and nothing in it is hidden: a character that is
//! invisible, or that changes the direction of the text around it, is shown as its code point.

use std::fmt::Write;

use maud::{Markup, html};

use super::ansi::one_line;

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Odd(char),
}

/// A text on one line, with every character visible. Tabs stay tabs.
pub(crate) fn exact(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Text(text) => (text),
                Piece::Odd(character) => span class="odd" { (name(character)) },
            }
        }
    }
}

/// The same where markup isn't possible: in attributes and titles.
pub(crate) fn exact_words(text: &str) -> String {
    let words = pieces(text).into_iter().map(|piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Odd(character) => name(character),
    });
    words.collect()
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_odd) {
        let (before, odd) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let mut characters = odd.chars();
        pieces.extend(characters.next().map(Piece::Odd));
        rest = characters.as_str();
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Whether a character doesn't look like what it is: it controls a terminal, has no width, or changes the text
/// direction.
fn is_odd(character: char) -> bool {
    (character.is_control() && character != '\t')
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn name(character: char) -> String {
    match character {
        '\r' => "CR".to_owned(),
        '\n' => "LF".to_owned(),
        other => format!("<U+{:04X}>", u32::from(other)),
    }
}

/// A title on one line, or the id if there is no title. It is never empty, because it is a link.
pub(crate) fn titled(title: &str, id: &str) -> String {
    let title = one_line(title);
    match title.trim().is_empty() {
        true => id.to_owned(),
        false => title,
    }
}

pub(crate) fn capitalized(text: &str) -> String {
    let text = one_line(text);
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", letters.as_str())
}

pub(crate) fn badge((class, word): (&str, &str)) -> Markup {
    html! { span class=(class) { (word) } }
}

pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A size in mebibytes, for values that are never small.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}

pub(crate) fn size(bytes: u64, word: &str) -> String {
    match bytes {
        0..1024 => format!("{bytes} {word}"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => mebibytes(bytes),
    }
}

pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte))
            }
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

pub(crate) fn counted_files(count: u64) -> String {
    counted(count, "file", "files")
}

/// Helpers for the page's tests.
#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Would run in the page if it were treated as markup, or change a terminal.
    pub(crate) const HOSTILE: &str =
        "\u{1b}]0;owned\u{7}\u{1b}[31m<script>alert(1)</script>\u{1b}[0m\"'&\u{202e}";

    /// What a reader sees instead.
    pub(crate) const HARMLESS: &str = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;'&amp;";

    /// The current time in tests.
    pub(crate) const NOW: &str = "2026-01-31T09:31:00Z";

    /// Checks that [`HOSTILE`] has no effect.
    #[track_caller]
    pub(crate) fn assert_harmless(page: &str) {
        assert_absent(
            page,
            &["<script>alert", "owned", "\u{1b}", "\u{7}", "\u{202e}", "31m"],
        );
        assert_parts(page, &[HARMLESS]);
    }

    #[track_caller]
    pub(crate) fn assert_parts(page: &str, parts: &[&str]) {
        for part in parts {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    /// Checks that none of these texts is on the page.
    #[track_caller]
    pub(crate) fn assert_absent(page: &str, parts: &[&str]) {
        for part in parts {
            assert!(!page.contains(part), "{part:?}: {page}");
        }
    }

    #[test]
    fn what_cannot_be_seen_stands_by_its_number() {
        for (text, markup, words) in [
            ("", "", ""),
            ("let a\t= \"ü\";", "let a\t= &quot;ü&quot;;", "let a\t= \"ü\";"),
            ("<script>", "&lt;script&gt;", "<script>"),
            ("end\r", "end<span class=\"odd\">CR</span>", "endCR"),
            (
                "\u{1b}[31mred",
                "<span class=\"odd\">&lt;U+001B&gt;</span>[31mred",
                "<U+001B>[31mred",
            ),
            (
                "a\u{202e}\u{200b}b",
                "a<span class=\"odd\">&lt;U+202E&gt;</span><span class=\"odd\">&lt;U+200B&gt;</span>b",
                "a<U+202E><U+200B>b",
            ),
        ] {
            assert_eq!(exact(text).into_string(), markup);
            assert_eq!(exact_words(text), words);
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (16 << 20, "16.0 MiB"),
        ] {
            assert_eq!(size(bytes, "bytes"), expected);
        }
    }

    #[test]
    fn any_text_fits_into_an_address() {
        for (text, expected) in [
            ("model-api_1~x.y", "model-api_1~x.y"),
            ("lsp/a b&c=ü", "lsp%2Fa%20b%26c%3D%C3%BC"),
            ("../a?b", "..%2Fa%3Fb"),
        ] {
            assert_eq!(percent_encode(text), expected);
        }
    }

    #[test]
    fn a_title_is_never_empty_and_never_markup() {
        for nothing in [" \n ", "\u{1b}[0m \u{7}"] {
            assert_eq!(titled(nothing, "job_1"), "job_1");
        }
        assert_harmless(&html! { (titled(HOSTILE, "job_1")) }.into_string());
    }
}
