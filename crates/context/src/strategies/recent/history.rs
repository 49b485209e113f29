//! The history of a tree, in a form for queries.

use crate::path::TreePath;
use crate::query::{parts_of, stem_of};

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct History {
    /// The files that commits have touched, each once. Some of them no longer exist.
    pub(super) files: Vec<TreePath>,
    pub(super) commits: Vec<Commit>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Commit {
    pub(super) subject: String,
    /// The words of the subject, normalized, sorted, without duplicates.
    pub(super) words: Vec<String>,
    /// The files that it touched, as indexes into `files`.
    pub(super) files: Vec<u32>,
}

impl Commit {
    pub(super) fn new(subject: String) -> Self {
        Self {
            words: words_of(&subject),
            subject,
            files: Vec::new(),
        }
    }
}

/// The words of a text, normalized, sorted, without duplicates.
pub(super) fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = parts_of(text).into_iter().map(compared).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Normalizes a word, so that `parsing` is found by `parse`.
pub(super) fn compared(word: String) -> String {
    stem_of(&word).unwrap_or(word)
}
