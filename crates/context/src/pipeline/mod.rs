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
//! | order | determines the reading order | `order.rs` |
//! | preamble | tells where each piece is from | `preamble.rs` |
//!
//! Each is a trait with one default; [`Steps`](steps::Steps) chooses and wires them. The steps after execute only
//! read files: their result depends only on the tree and the locations, whichever strategy was first.
//!
//! **Guarantees:** an answer never exceeds its token budget, its pieces don't overlap, and it reports the outcome
//! of every strategy. With a budget of zero nothing is searched, and all strategies are reported as left out.

mod allocate;
mod assemble;
mod deduplicate;
mod depth;
mod order;
mod pack;
mod preamble;
mod run;
mod score;
mod select;
mod source;
mod steps;
mod unit;
mod widen;

pub use run::Pipeline;
