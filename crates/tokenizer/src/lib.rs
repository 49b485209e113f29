//! Counts the tokens of a text as OpenAI's models do.
//!
//! A text is cut into pieces (`pieces.rs`): words, numbers, punctuation, whitespace. A piece is one token if the vocabulary
//! (`vocabulary.rs`) contains it; otherwise its bytes are merged into tokens (`merge.rs`). Text that looks like a special token
//! (`<|endoftext|>`) counts as ordinary text.
//!
//! The vocabularies are embedded in compressed form: 1.2 MiB instead of 45 MiB for tables that could be searched in place.
//!
//! **Who owns the state:** this crate. A tokenizer is unpacked when it is first needed and stays in memory.
//!
//! **What must not happen here:** quadratic time. Texts come from repositories that nobody has checked.

mod merge;
mod pieces;
mod vocabulary;

use std::fmt;
use std::sync::OnceLock;

use merge::Merger;
use pieces::Splitter;
use vocabulary::Vocabulary;

/// Which models to count for.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TokenizerName {
    /// GPT-4o and later.
    #[default]
    O200k,
    /// GPT-4 and GPT-3.5.
    Cl100k,
}

/// Counts tokens.
pub struct Tokenizer {
    vocabulary: Vocabulary,
    splitter: Splitter,
}

/// An embedded tokenizer can't be unpacked, so this build is broken.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the built-in vocabulary is damaged: {0}")]
pub struct LoadError(String);

impl Tokenizer {
    /// Returns the tokenizer of this name. The first call takes tens of milliseconds, later ones nothing.
    ///
    /// # Errors
    /// What is built into this program is damaged.
    pub fn load(name: TokenizerName) -> Result<&'static Self, LoadError> {
        static O200K: OnceLock<Result<Tokenizer, LoadError>> = OnceLock::new();
        static CL100K: OnceLock<Result<Tokenizer, LoadError>> = OnceLock::new();
        let loaded = match name {
            TokenizerName::O200k => {
                O200K.get_or_init(|| Self::unpack(include_bytes!("../data/o200k.zst"), &pieces::O200K))
            }
            TokenizerName::Cl100k => {
                CL100K.get_or_init(|| Self::unpack(include_bytes!("../data/cl100k.zst"), &pieces::CL100K))
            }
        };
        loaded.as_ref().map_err(Clone::clone)
    }

    fn unpack(vocabulary: &[u8], words: &[&str]) -> Result<Self, LoadError> {
        Ok(Self {
            vocabulary: Vocabulary::unpack(vocabulary).map_err(|error| LoadError(error.to_string()))?,
            splitter: Splitter::new(words).map_err(|error| LoadError(error.to_string()))?,
        })
    }

    /// Counts the tokens of a text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        let mut merger = Merger::default();
        let pieces = self.splitter.split(text);
        pieces
            .map(|piece| merger.count(piece.as_bytes(), &self.vocabulary))
            .sum()
    }

    /// Counts the tokens of a text, or gives up as soon as there are more than `most`. The time this takes depends on `most`,
    /// not on the length of the text.
    #[must_use]
    pub fn count_up_to(&self, most: usize, text: &str) -> Option<usize> {
        let mut merger = Merger::default();
        let mut left = most;
        for piece in self.splitter.split(text) {
            // No token is longer than the longest one, so such a piece can't fit. This spares us merging a huge one.
            if piece.len() > left.saturating_mul(self.vocabulary.longest_token()) {
                return None;
            }
            left = left.checked_sub(merger.count(piece.as_bytes(), &self.vocabulary))?;
        }
        Some(most - left)
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Tokenizer, TokenizerName};

    const CODE: &str = "fn parse_config(path: &Path) -> Result<Config, Error> {\n    let text = \
                        std::fs::read_to_string(path)?;\n    toml::from_str(&text)\n}\n";

    /// Texts with their tokens in `o200k_base` and in `cl100k_base`, counted once with tiktoken-rs 0.12.
    #[test]
    fn counts_are_those_of_the_models() {
        let (letters, spaces) = ("a".repeat(1000), " ".repeat(1000));
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            (CODE, 39, 39),
            ("## src/config.rs:12-40 (function parse_config)\n", 13, 13),
            ("    \t\n\n\r\n   trailing   ", 5, 6),
            ("Größenänderung: 你好，世界 — مرحبا 👩‍👩‍👧‍👦🏳️‍🌈", 30, 45),
            ("0123456789012345678901234567890", 11, 11),
            ("<|endoftext|> isn't special, it'll be text; DON'T", 15, 18),
            (&letters, 125, 125),
            (&spaces, 9, 9),
            ("{}[]();:,.<>/\\|!@#$%^&*-=+~`'\"\n\n\n\n}", 21, 21),
        ] {
            for (name, expected) in [(TokenizerName::O200k, o200k), (TokenizerName::Cl100k, cl100k)] {
                let tokenizer = Tokenizer::load(name).unwrap();
                let counted = (
                    tokenizer.count(text),
                    tokenizer.count_up_to(expected, text),
                    tokenizer.count_up_to(expected + 100, text),
                );
                assert_eq!(counted, (expected, Some(expected), Some(expected)), "{text:?}");
                if let Some(fewer) = expected.checked_sub(1) {
                    assert_eq!(tokenizer.count_up_to(fewer, text), None, "{text:?}");
                }
            }
        }
    }

    /// The encoder of the models themselves takes minutes for some of these. Here it is a matter of ending at all: a time
    /// that a test could compare would depend on the machine.
    #[test]
    fn hostile_texts_end() {
        let mebibyte = 1024 * 1024;
        for piece in ["a", " ", "\n", "👩‍👩‍👧‍👦", "ab ", "\u{301}", "/*", " \u{a0}"] {
            let text = piece.repeat(mebibyte / piece.len());
            for name in [TokenizerName::O200k, TokenizerName::Cl100k] {
                let tokenizer = Tokenizer::load(name).unwrap();
                let tokens = tokenizer.count(&text);
                assert!(tokens > 0 && tokens <= text.len());
                assert_eq!(tokenizer.count_up_to(10, &text), None);
            }
        }
    }
}
