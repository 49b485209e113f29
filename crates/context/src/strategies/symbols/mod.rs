//! The strategy `symbols`: definitions whose names are like what a question says.
//!
//! - `wanted.rs`: which names a question is after. `fit.rs`: how well a definition fits them, pure.
//! - `candidates.rs`: the files worth looking into, by the index. `walk.rs`: the same without an index.
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
