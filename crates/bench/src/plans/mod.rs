//! Plans: how soon there is a sandbox, what a capture costs, how fast work lands, and what is left when it is killed.
//!
//! The service runs in this program, on a log and in a directory of its own; the shipped program is the keeper of its
//! commands. The peer is the git program, on the same tree, on the same file system and in the same run. Before every
//! turn everything is brought to the disk, off the clock, so that nobody waits for what another one has written.

pub(crate) mod apply;
mod at_once;
pub(crate) mod capture;
mod git;
mod ground;
pub(crate) mod kills;
pub(crate) mod many;
pub(crate) mod oracle;
mod project;
pub(crate) mod sandbox;
pub(crate) mod scores;
mod service;
pub(crate) mod warm_build;

/// Brings everything to the disk.
fn settle() {
    rustix::fs::sync();
}
