//! How tokens are counted: as the models do it.
//!
//! The encoder is linear in the worst case, so no text can make a count hang. What looks like a special token
//! (`<|endoftext|>`) is counted as the text that it is.

use std::sync::Arc;

use bpe_openai::Tokenizer as Encoder;

use crate::request::ContextError;

/// Which way of counting.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum TokenizerName {
    /// That of GPT-4o and later.
    #[default]
    O200k,
    /// That of GPT-4 and GPT-3.5.
    Cl100k,
}

/// Counts tokens. It is loaded once, when it is first needed.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    name: TokenizerName,
}

impl Tokenizer {
    /// The tokenizer of this name. The first time it takes a while (about 0.1 s), and it stays in memory.
    ///
    /// # Errors
    /// It cannot be loaded. What is there is built in, so that this does not happen.
    pub fn load(name: TokenizerName) -> Result<Arc<Self>, ContextError> {
        let tokenizer = Self { name };
        let _ = tokenizer.encoder();
        Ok(Arc::new(tokenizer))
    }

    /// How many tokens a text has.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.encoder().count(text)
    }

    /// How many tokens a text has, if it has no more than so many. It takes as long as so many tokens take, however long the
    /// text is.
    #[must_use]
    pub fn count_up_to(&self, most: usize, text: &str) -> Option<usize> {
        let encoder = self.encoder();
        encoder.count_till_limit(&encoder.normalize(text), most)
    }

    /// The encoder keeps itself: it is made when it is first asked for.
    fn encoder(&self) -> &'static Encoder {
        match self.name {
            TokenizerName::O200k => bpe_openai::o200k_base(),
            TokenizerName::Cl100k => bpe_openai::cl100k_base(),
        }
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
