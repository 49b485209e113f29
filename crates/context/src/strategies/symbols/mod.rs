//! The strategy `symbols`: definitions with names like those in a question.
//!
//! - `wanted.rs`: the names that a question asks for. `fit.rs`: how well a definition fits them, pure.
//! - `candidates.rs`: the files worth examining, from the index. `walk.rs`: the same without an index.
//! - `strategy.rs`: the steps in their order.

mod candidates;
mod fit;
mod strategy;
mod walk;
mod wanted;

#[cfg(test)]
mod tests;

pub(super) use candidates::candidates;
pub(super) use strategy::look;
pub(super) use wanted::wanted_of;
