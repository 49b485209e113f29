//! Names and contents of files for people. Whoever wrote them may mean harm, so that nothing of them is believed and
//! nothing of them is hidden: a character that cannot be seen, or that turns the direction of what stands around it,
//! stands there by its number.

use maud::{Markup, html};

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Odd(char),
}

/// A text in one line, with everything that is in it. Tabs stay tabs.
pub(super) fn exact(text: &str) -> Markup {
    html! {
        @for piece in pieces(text) {
            @match piece {
                Piece::Text(text) => (text),
                Piece::Odd(character) => span class="odd" { (name(character)) },
            }
        }
    }
}

/// The same where no markup can stand: in attributes and titles.
pub(super) fn exact_words(text: &str) -> String {
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

/// Whether a character is not seen as what it is: it steers a terminal, has no width, or turns directions.
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

/// A number and its noun.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// So many files.
pub(crate) fn counted_files(count: u64) -> String {
    counted(count, "file", "files")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
