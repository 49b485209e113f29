//! The outline of a file: what is defined in it, and which names it mentions.
//!
//! Made by tree-sitter from the text alone: no configuration, no build, and broken code is as welcome as any.
//!
//! - `types.rs`: what an outline is made of.
//! - `language.rs`: which language a file is in. `grammar.rs`, `queries/`: what is looked for in each language.
//! - `parse.rs`: the text to captures, within limits. `assemble.rs`: captures to an outline, pure.
//!
//! **What must not happen here:** reading files, and recursion over a syntax tree, whose depth is up to the file.

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
