//! Cuts a text into pieces that are encoded on their own.
//!
//! The patterns are tiktoken's, without its look-ahead: `\s+(?!\S)`, whitespace up to but not including the last character
//! before a word, becomes `\s+\s`, from which that last character is given back. So a regex engine without backtracking will do,
//! and a text takes linear time.

use regex_automata::meta::{BuildError, Regex};
use regex_automata::{Anchored, Input};

/// GPT-4o and later.
pub(crate) const O200K: [&str; 6] = [
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"\s*[\r\n]+",
    r"\s+$",
];

/// GPT-4 and GPT-3.5.
pub(crate) const CL100K: [&str; 6] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"[^\r\n\p{L}\p{N}]?\p{L}+",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+$",
];

/// Whitespace before a word, with one character too many.
const BEFORE_WORD: &str = r"\s+\s";
const WHITESPACE: &str = r"\s+";

/// Finds the pieces of a text.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The first pattern that matches wins: [`Splitter::BEFORE_WORD`] is the second of three.
    regex: Regex,
}

impl Splitter {
    /// The place of the pattern `BEFORE_WORD`.
    const BEFORE_WORD: usize = 1;

    pub(crate) fn new(words: &[&str]) -> Result<Self, Box<BuildError>> {
        let regex = Regex::new_many(&[words.join("|").as_str(), BEFORE_WORD, WHITESPACE])?;
        Ok(Self { regex })
    }

    pub(crate) fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            let found = self.regex.find(Input::new(rest).anchored(Anchored::Yes))?;
            let mut end = found.end();
            if found.pattern().as_usize() == Self::BEFORE_WORD {
                end = rest[..end].char_indices().next_back()?.0;
            }
            let (piece, remaining) = rest.split_at(end);
            rest = remaining;
            Some(piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CL100K, O200K, Splitter};

    #[test]
    fn pieces_are_words_numbers_punctuation_and_whitespace() {
        let cases: [(&str, &[&str], &[&str]); 6] = [
            ("", &[], &[]),
            (
                "it's 12345!\n",
                &["it's", " ", "123", "45", "!\n"],
                &["it", "'s", " ", "123", "45", "!\n"],
            ),
            (
                "camelCase DON'T",
                &["camel", "Case", " DON'T"],
                &["camelCase", " DON", "'T"],
            ),
            ("a   b", &["a", "  ", " b"], &["a", "  ", " b"]),
            (
                "a\u{a0}\u{2003}b",
                &["a", "\u{a0}", "\u{2003}b"],
                &["a", "\u{a0}", "\u{2003}b"],
            ),
            (
                "x; \n  //\n/ ",
                &["x", ";", " \n", " ", " //\n/", " "],
                &["x", ";", " \n", " ", " //\n", "/", " "],
            ),
        ];
        for (text, o200k, cl100k) in cases {
            for (words, expected) in [(&O200K, o200k), (&CL100K, cl100k)] {
                let splitter = Splitter::new(words).unwrap();
                assert_eq!(splitter.split(text).collect::<Vec<_>>(), expected, "{text:?}");
            }
        }
    }
}
