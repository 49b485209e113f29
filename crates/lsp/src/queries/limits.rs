//! How long an answer may be.

use serde::Serialize;

/// Limits of one answer. The answer says how much was left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QueryLimits {
    /// Locations: definitions, references, call sites.
    pub locations: usize,
    pub diagnostics: usize,
    pub completions: usize,
    pub symbols: usize,
    /// Code actions. At most this many are resolved, each with its own request.
    pub code_actions: usize,
    pub calls: usize,
    /// Edits of an answer. More are an error, because a partial edit is worse than no edit.
    pub edits: usize,
    /// Bytes of one text: a hover, a message, or documentation.
    pub text_bytes: usize,
    /// Bytes of an edit's diff.
    pub diff_bytes: usize,
    /// Characters of the line that is shown beside a location.
    pub excerpt_columns: usize,
}

impl Default for QueryLimits {
    /// Enough for an agent to read, with some margin. The largest answer is about a megabyte.
    fn default() -> Self {
        Self {
            locations: 1000,
            diagnostics: 1000,
            completions: 200,
            symbols: 1000,
            code_actions: 50,
            calls: 200,
            edits: 10_000,
            text_bytes: 32 * 1024,
            diff_bytes: 256 * 1024,
            excerpt_columns: 200,
        }
    }
}

/// A list that may have been cut.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// How many items there were before it was cut.
    pub total: usize,
    pub truncated: bool,
}

impl<T> Listed<T> {
    pub(super) fn first(mut items: Vec<T>, limit: usize) -> Self {
        let total = items.len();
        items.truncate(limit);
        Self {
            items,
            total,
            truncated: total > limit,
        }
    }

    pub(super) fn map<U>(self, change: impl FnMut(T) -> U) -> Listed<U> {
        Listed {
            items: self.items.into_iter().map(change).collect(),
            total: self.total,
            truncated: self.truncated,
        }
    }

    pub(super) fn try_map<U, E>(self, change: impl FnMut(T) -> Result<U, E>) -> Result<Listed<U>, E> {
        Ok(Listed {
            items: self.items.into_iter().map(change).collect::<Result<_, E>>()?,
            total: self.total,
            truncated: self.truncated,
        })
    }

    pub(super) fn append(&mut self, other: Self) {
        self.items.extend(other.items);
        self.total += other.total;
        self.truncated |= other.truncated;
    }

    pub(super) fn cut(&mut self, limit: usize) {
        self.truncated |= self.items.len() > limit;
        self.items.truncate(limit);
    }
}

/// A text cut to the limit. If it was cut, it ends in `…`.
pub(super) fn bounded(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes));
        text.push('…');
    }
    text
}
