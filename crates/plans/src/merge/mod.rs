//! Three-way merge of a plan's changes into the current workspace.
//!
//! Everything here is pure. The tree is read through [`Ours`], contents through [`Contents`](crate::Contents), and the
//! result is a list of [`Effect`]s. Nothing is written.
//!
//! **Differences from git.** Texts merge as with `git merge-file`, region by region. Apart from that:
//! - Only the plan's own renames count as renames; they are never guessed. A rename in the workspace counts as a
//!   deletion and a new file, and the plan's change to the old file is a conflict that names the new path.
//! - Two files created at one path, or renamed to it, conflict unless they are the same.
//! - Permissions merge bit by bit, and never conflict. git only tracks the executable bit.
//! - Directories are entries. An empty one is carried, and one that the plan deleted stays if something is left in it.

mod all;
mod changes;
mod entry;
mod fold;
mod text;
mod types;

pub use all::{ListConflict, MergedAll, merge_all};
pub use changes::merge_changes;
pub use entry::is_text;
pub use fold::{Net, fold, invert};
pub use text::{TextMerge, merge_text};
pub use types::{Conflict, ConflictKind, Effect, MergeDriver, Merged, Ours};

pub(crate) use changes::Merge;
pub(crate) use entry::{FileEntry, FileMerge, MergeFiles, text_of};
pub(crate) use text::{line_changes, regions};
