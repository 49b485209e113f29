//! Splits texts into words.

/// The words of a text, each with the blanks after it; blanks before the first word belong to it. Joined together, they
/// are the text.
pub(super) fn words(mut rest: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let word = rest
            .find(|char: char| !char.is_whitespace())
            .unwrap_or(rest.len());
        let blank = after(rest, word, char::is_whitespace);
        let end = after(rest, blank, |char| !char.is_whitespace());
        let (piece, left) = rest.split_at(end);
        rest = left;
        Some(piece)
    })
}

/// The position of the first matching character at or after `from`; the end of the text if there isn't one.
fn after(text: &str, from: usize, wanted: impl Fn(char) -> bool) -> usize {
    text.get(from..)
        .and_then(|rest| rest.find(wanted))
        .map_or(text.len(), |found| from + found)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn words_keep_every_blank() {
        let cases: [(&str, &[&str]); 7] = [
            ("", &[]),
            ("one", &["one"]),
            ("one two", &["one ", "two"]),
            ("  one\n\n two \n", &["  one\n\n ", "two \n"]),
            (" \n ", &[" \n "]),
            ("ä\u{2003}ö ü", &["ä\u{2003}", "ö ", "ü"]),
            ("a\tb", &["a\t", "b"]),
        ];
        for (text, expected) in cases {
            let found: Vec<_> = words(text).collect();
            assert_eq!(found, expected, "{text:?}");
            assert_eq!(found.concat(), text);
        }
    }
}
