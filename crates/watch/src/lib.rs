//! Which files below a root have changed, whoever changed them.
//!
//! [`Watch`] follows the directories of a root (but not those that tools fill, such as `target` and `node_modules`) and
//! hands over what changed, in batches. Changes that come while a batch is being handed over are merged: a path is in a
//! batch once, with what became of it in the end. What a watch could not see is said in the batch ([`Missed`]).
//!
//! A watch is always a little behind: the kernel has queued a change before anybody has read it. Whoever must not miss
//! one asks for [`Watch::catch_up`], which writes a file into a directory of our own that the same queue reports. When
//! that report has come, everything that happened before it has been handed over.
//!
//! Whoever only needs to know whether anything has changed asks a [`Tripwire`]. It is never behind, and has no task.
//!
//! **Who owns the state:** whoever holds the [`Watch`]. One task of its own follows the tree until it is dropped.
//!
//! **What must not happen here:** knowing what the changes are for.

mod follow;
mod pending;
mod tree;
mod tripwire;
mod watch;

pub use follow::Deliver;
pub use pending::{Batch, FileChange, Missed, PathChange};
pub use tree::{MOST_DIRECTORIES, Walk, Walked, files_below};
pub use tripwire::Tripwire;
pub use watch::{CatchUpError, Watch};
