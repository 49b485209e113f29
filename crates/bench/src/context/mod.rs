//! Context, through the real daemon: how fast a tree is searched, how fast a whole answer is, and whether the answer
//! contains what was asked for.
//!
//! The tree consists of the crates that cargo has unpacked to build this workspace: tens of thousands of files
//! written by people, present on every machine that can build this.
//!
//! - `search.rs`, `pipeline.rs`: how fast. `daemon.rs`: the daemon that is asked.
//! - `quality.rs`: whether the answer is found. `tasks.rs`: questions with known answers, made from public crates.
//!   `history.rs`: the same from the commits of this repository. `floor.rs`: what a search in path order would have
//!   shown.

mod context_daemon;
mod floor;
mod history;
pub(crate) mod pipeline;
pub(crate) mod quality;
pub(crate) mod search;
mod tasks;
