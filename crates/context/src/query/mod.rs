//! Parses a question into searchable terms.
//!
//! - `types.rs`: the parts of a question.
//! - `parse.rs`: from the text to its terms. `shape.rs`: classifies a piece of a text.
//! - `parts.rs`: the words in a name. `words.rs`: stop words, and other forms of the remaining words.
//!
//! All of it is pure, accepts any text, and is bounded by the constants in `parse.rs`.

mod parse;
mod parts;
mod shape;
mod types;
mod words;

pub(crate) use parse::word_runs;
pub(crate) use parts::parts_of;
pub use types::{Query, Term, TermKind};
pub(crate) use words::{is_stop_word, stem_of};
