//! The outline of a file: its definitions, and the names it mentions.
//!
//! Tree-sitter builds it from the text alone: no configuration, no build, and broken code works as well.
//!
//! - `types.rs`: the parts of an outline.
//! - `language.rs`: the language of a file. `grammar.rs`, `queries/`: the query of each language.
//! - `parse.rs`: from text to captures, within limits. `assemble.rs`: from captures to an outline, pure.
//!
//! **What must not happen here:** reading files, and recursion over a syntax tree, because the file determines its
//! depth.

mod assemble;
mod grammar;
mod language;
mod parse;
mod types;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod language_tests;

pub use parse::outline;
pub use types::{Definition, Language, Outline, Reference, SymbolKind};
