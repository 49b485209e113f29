//! What people and agents work on: the history of the repository, and the plans that are open.
//!
//! - `head.rs`: on which commit the tree stands, without asking git.
//! - `git.rs`: asks git for the history. `log.rs`: reads what it writes. Pure.
//! - `history.rs`: the history, as it is asked about. `memory.rs`: the histories that were read lately.
//! - `score.rs`: which files fit a question. Pure.
//! - `strategy.rs`: all of it together.
//!
//! A repository is somebody else's: its configuration is not trusted, nothing in it is executed, and nothing is fetched.

mod git;
mod head;
mod history;
mod log;
mod memory;
mod score;
mod strategy;

pub(super) use strategy::Recent;
