//! Plans: how soon there is a sandbox, what a capture costs, how fast changes are applied, and what is left after a
//! kill.
//!
//! The service runs in this program, on its own log and directory; the shipped program is the keeper of its commands.
//! The peer is the git program, on the same tree, on the same file system and in the same run. Before a turn that
//! writes a lot, everything is synced to disk, off the clock, so that no contender waits for the writes of others.

pub(crate) mod apply;
mod at_once;
pub(crate) mod capture;
pub(crate) mod exec;
mod git;
pub(crate) mod kills;
pub(crate) mod many;
pub(crate) mod oracle;
mod project;
pub(crate) mod sandbox;
mod sandboxes;
pub(crate) mod scores;
mod service;
pub(crate) mod warm_build;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use tempfile::TempDir;

/// Guards the directories to remove at the end; held to push one or to take all.
static DIRECTORIES: Mutex<Vec<TempDir>> = Mutex::new(Vec::new());

/// Removes all directories of these tables when it is dropped, at the end of the program.
///
/// Not before: for some minutes after many deletions, ext4 creates files slower by a factor of ten and more. That
/// would hit the next contender, and make the tables take three times as long.
#[derive(Debug)]
pub(crate) struct RemoveInTheEnd;

impl Drop for RemoveInTheEnd {
    fn drop(&mut self) {
        let mut directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
        directories.clear();
    }
}

fn scratch() -> Result<PathBuf> {
    let directory = crate::turns::scratch()?;
    let path = directory.path().canonicalize()?;
    let mut directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner);
    directories.push(directory);
    Ok(path)
}

fn settle() {
    rustix::fs::sync();
}
