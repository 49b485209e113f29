//! Reports which files below a root have changed, whoever changed them.
//!
//! [`Watch`] watches the directories of a root (except those that tools fill, such as `target` and
//! `node_modules`) and delivers changes in batches. Changes that arrive during a delivery are merged: a path is
//! in a batch once, with the final change. If a watch has missed something, the batch says so ([`Missed`]).
//!
//! A watch is always a little behind, because the kernel queues a change before anyone reads it.
//! [`Watch::catch_up`] waits until it isn't: it writes a file into a directory of our own that the same queue
//! reports. Once that report has arrived, everything before it has been delivered.
//!
//! If you only need to know whether anything has changed, use a [`Tripwire`]. It is never behind, and has no
//! task.
//!
//! **Who owns the state:** whoever holds the [`Watch`]. Its own task watches the tree until it is dropped.
//!
//! **What must not happen here:** any knowledge of what the changes are for.

mod follow;
mod pending;
mod tree;
mod tripwire;
mod watch;

pub use follow::Deliver;
pub use pending::{ChangeBatch, FileChange, Missed, PathChange};
pub use tree::{MAX_DIRECTORIES, Walk, Walked, files_below};
pub use tripwire::Tripwire;
pub use watch::{CatchUpError, Watch};
