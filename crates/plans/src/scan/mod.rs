//! A scan of a workspace: what is in it, what has to be read, what is ignored, and what is left out.
//!
//! Directories are walked level by level, each level by several threads. No symlink is followed in any part of a path:
//! every directory is opened from the root's descriptor.
//!
//! **What must not happen here:** writing to a workspace, or reading the content of a file other than `.gitignore`.

mod directory;
mod finish;
mod parallel;
mod walk;

pub(crate) use directory::{FoundFile, ScannedDirectory, open_below};
pub(crate) use parallel::{Work, in_parallel};
pub(crate) use walk::{Scan, ScanError, scan};

/// A unique name.
pub(crate) fn random_name() -> String {
    format!(
        "{:016x}",
        getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id()))
    )
}
