//! The strategy `repo-map`: what the files that a question is about depend on, as signatures.
//!
//! A file that mentions a name is linked to the files that define it. A walker who starts at the files that the question is
//! about, follows links at random and now and then starts over is at some files more often than at others (personalised
//! PageRank). That is computed by pushing weight from file to file, so only the files near the start are ever read.
//!
//! - `seeds.rs`: where the walk starts. `links.rs`: which links a file has, and how much each weighs.
//! - `push.rs`: how much weight arrives where, and through which names. Pure, but for the links that it asks for.
//! - `strategy.rs`: the steps in their order.

mod links;
mod push;
mod seeds;
mod strategy;

#[cfg(test)]
mod tests;

pub(super) use strategy::look;
