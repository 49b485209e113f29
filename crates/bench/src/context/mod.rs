//! Context, through the real daemon: how fast a tree is searched, how fast a whole answer is, and whether what is asked for is
//! in it.
//!
//! The tree is what cargo has unpacked of the crates that this workspace is built from: tens of thousands of files that
//! people wrote, and every machine that can build this has them.
//!
//! - `search.rs`, `pipeline.rs`: how fast. `daemon.rs`: the daemon that is asked.
//! - `quality.rs`: whether it is found. `tasks.rs`: questions whose answers are known, made from public crates. `history.rs`:
//!   the same from the commits of this repository. `floor.rs`: what a search in the order of the paths would have shown.

mod context_daemon;
mod floor;
mod history;
pub(crate) mod pipeline;
pub(crate) mod quality;
pub(crate) mod search;
mod tasks;
