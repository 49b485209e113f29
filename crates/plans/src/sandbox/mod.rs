//! Sandboxes: the directory that a plan's actor reads and writes.
//!
//! - `contract.rs`: what a strategy and a sandbox must do. `pick.rs`: which strategies work here, and which one is
//!   used.
//! - `overlay.rs`, `copy.rs`, `git_worktree.rs`: the strategies. All start with a base.
//! - `upper.rs`: how an overlay differs from its base, found in the upper layer alone. `scan.rs`: the same for a
//!   whole tree, by stat data. `compare.rs`: compares that with what is known. `memory.rs`: a cache of what was read.
//! - `repository.rs`, `git_dir.rs`: the user's repository, and a private one that looks the same. `pinned.rs`: refs
//!   that keep what the private one borrows. `commits.rs`: what was committed there.
//! - `layout.rs`: where the parts of a sandbox are. `whole.rs`: what a copy and a worktree have in common.
//!   `ignoring.rs`: what captures skip.
//! - `fill.rs`, `removal.rs`: copying and removing a tree. `surroundings.rs`: what a command may use outside.
//!
//! **Invariant:** a write in a sandbox never reaches the base, the workspace, or another sandbox. Of the user's
//! repository, a git worktree shares the objects and has its own branch; the others have their own refs below
//! `refs/tidelock`, which are removed with them. Nothing else is shared.
//!
//! **Invariant:** a capture reads and never writes; capturing twice gives the same answer twice.
//!
//! **What must not happen here:** following an actor's symlink, or assuming anything about a file that wasn't
//! checked.

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
