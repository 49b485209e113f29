//! A question, taken apart into what can be looked for.
//!
//! - `types.rs`: what a question is made of.
//! - `parse.rs`: from the text to its terms. `shape.rs`: what a piece of a text looks like.
//! - `parts.rs`: the words that a name is made of. `words.rs`: words that say nothing, and other forms of those that do.
//!
//! All of it is pure, takes any text, and is bounded by the constants in `parse.rs`.

mod parse;
mod parts;
mod shape;
mod types;
mod words;

pub(crate) use parse::word_runs;
pub(crate) use parts::parts_of;
pub use types::{Query, Term, TermKind};
pub(crate) use words::{is_stop_word, stem_of};
