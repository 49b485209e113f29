//! The strategy `repo-map`: the dependencies of the files that a question is about, as signatures.
//!
//! A file that mentions a name is linked to the files that define it. A random walk that starts at the files that the
//! question is about, follows links, and sometimes starts over visits some files more often than others (personalised
//! PageRank). It is computed by pushing weight from file to file, so only the files near the start are ever read.
//!
//! - `seeds.rs`: where the walk starts. `links.rs`: the links of a file, and their weights.
//! - `push.rs`: how much weight arrives where, and through which names. Pure, except for the links that it requests.
//! - `strategy.rs`: the steps in their order.

mod links;
mod push;
mod seeds;
mod strategy;

#[cfg(test)]
mod tests;

pub(super) use strategy::look;
