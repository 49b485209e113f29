//! The parts of a question.

use super::parse;

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Query {
    pub text: String,
    /// The most specific term first, without duplicates.
    pub terms: Vec<Term>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Term {
    pub text: String,
    pub kind: TermKind,
    /// Its words, in lower case: `ParseConfig` is `parse` and `config`.
    pub parts: Vec<String>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TermKind {
    /// Quoted: searched for literally.
    Quoted,
    /// The name of something in code: it has capitals inside, `_`, `::`, `.` or a call's brackets.
    Identifier,
    Path,
    Word,
}

impl Query {
    /// Parses any text.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            terms: parse::terms_of(text),
        }
    }
}

impl Term {
    /// The path and its line: `src/a.rs:12:5` is `src/a.rs` and 12.
    pub(crate) fn place(&self) -> (&str, Option<u32>) {
        match self.text.split_once(':') {
            Some((path, rest)) if self.kind == TermKind::Path => {
                let line = rest.split(':').next().and_then(|line| line.parse().ok());
                (path, line)
            }
            _ => (&self.text, None),
        }
    }
}
