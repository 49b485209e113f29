//! Sandboxes: the directory that a plan's actor sees and writes.
//!
//! - `contract.rs`: what a strategy and a sandbox must do. `pick.rs`: which strategies work here, and which one is taken.
//! - `overlay.rs`, `copy.rs`, `git_worktree.rs`: the strategies. All begin with a base.
//! - `upper.rs`: what an overlay has that its base has not, found in the upper layer alone. `scan.rs`: the same for a
//!   whole tree, by its stats. `compare.rs`: what that is against what is known. `memory.rs`: what was read already.
//! - `repository.rs`, `git_dir.rs`: the user's repository, and a private one that looks the same. `pinned.rs`: refs that keep
//!   what the private one borrows. `commits.rs`: what was committed there.
//! - `layout.rs`: where the parts of a sandbox are. `whole.rs`: what a copy and a worktree have in common. `ignoring.rs`:
//!   what captures pass over.
//! - `fill.rs`, `removal.rs`: a tree is copied, a tree goes away. `surroundings.rs`: what a command may use outside.
//!
//! **Invariant:** what is written in a sandbox reaches neither the base, nor the workspace, nor another sandbox. Of the
//! user's repository, a worktree of git shares the objects and has a branch of its own; the others have refs of their own below
//! `refs/tidelock`, which go with them. Nothing else is shared.
//!
//! **Invariant:** a capture reads and never writes; whoever captures twice gets the same answer twice.
//!
//! **What must not happen here:** a symlink of the actor's is followed, or anything is believed about a file that was
//! not looked at.

mod commits;
mod compare;
mod contract;
mod copy;
mod fill;
mod git_dir;
mod git_program;
mod git_worktree;
mod ignoring;
mod layout;
mod memory;
mod overlay;
mod pick;
mod pinned;
mod removal;
mod repository;
mod scan;
mod surroundings;
mod upper;
mod whole;

pub use contract::{Captured, Entrance, Known, Sandbox, SandboxError, SandboxSpec, Strategy};
pub use pick::Strategies;
pub(crate) use pinned::unpin_stray;
pub use removal::remove_tree;
pub(crate) use upper::is_own;
