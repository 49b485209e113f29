//! From a question to an answer, step by step.
//!
//! | step | what it does | file |
//! |---|---|---|
//! | select | chooses the strategies | `select.rs` |
//! | allocate | limits the time and budget of each | `allocate.rs` |
//! | execute | runs them in parallel | `executor/` |
//! | deduplicate | turns locations into pieces of files that don't overlap | `deduplicate.rs`, `widen.rs`, `source.rs` |
//! | resolve depth | determines how a piece can be shown | `depth.rs` |
//! | score | merges the ranks of several lists | `score.rs` |
//! | pack | fills the budget | `pack.rs` |
//! | order | determines the reading order | `assemble.rs` |
//! | preamble | says where each piece is from | `pack.rs` |
//!
//! [`Pipeline`] runs them in this order. The steps after execute only read files: their result depends only on the tree
//! and the locations, not on which strategy finished first.
//!
//! **Guarantees:** an answer never exceeds its token budget, its pieces don't overlap, and it reports the outcome
//! of every strategy. With a budget of zero nothing is searched, and all strategies are reported as left out.

mod allocate;
mod assemble;
mod deduplicate;
mod depth;
mod pack;
mod run;
mod score;
mod select;
mod source;
mod unit;
mod widen;

pub use run::Pipeline;
