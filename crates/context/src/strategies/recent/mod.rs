//! What people and agents are working on: the history of the repository, and the open plans.
//!
//! - `head.rs`: the commit that is checked out, without asking git.
//! - `git.rs`: asks git for the history. `log.rs`: parses its output. Pure.
//! - `history.rs`: the history, in a form for queries. `memory.rs`: a cache of recently read histories.
//! - `score.rs`: which files fit a question. Pure.
//! - `strategy.rs`: all of it together.
//!
//! The repository is untrusted: its configuration isn't used, nothing in it is executed, and nothing is fetched.

mod git;
mod head;
mod history;
mod log;
mod memory;
mod score;
mod strategy;

pub(super) use strategy::Recent;
