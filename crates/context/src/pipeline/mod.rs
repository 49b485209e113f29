//! From a question to an answer, step by step.
//!
//! | step | what it does | file |
//! |---|---|---|
//! | select | which strategies are asked | `select.rs` |
//! | allocate | how much time and room each may use | `allocate.rs` |
//! | execute | they look, all at once | `executor/` |
//! | deduplicate | places become pieces of files that do not overlap | `deduplicate.rs`, `widen.rs`, `source.rs` |
//! | resolve depth | how much of a piece can be shown | `depth.rs` |
//! | score | the places in several lists become one | `score.rs` |
//! | pack | as much as fits | `pack.rs` |
//! | order | what is read first | `order.rs` |
//! | preamble | where each piece is from | `preamble.rs` |
//!
//! Each is a trait with one default; [`Steps`](steps::Steps) is where they are chosen and wired together. What comes after
//! execute reads files and nothing else: it is the same for the same tree and the same places, whichever strategy was first.
//!
//! **What is guaranteed:** an answer never has more tokens than its budget, its pieces have no line in common, and every
//! strategy that there is stands in it with what became of it. With a budget of zero nothing is asked, and all of them are
//! reported as left out.

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
