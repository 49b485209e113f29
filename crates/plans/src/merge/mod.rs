//! Three-way merge: what a plan changed, on top of what the workspace is by now.
//!
//! All of it is pure. The tree is looked at through [`Ours`], contents through [`Contents`](crate::Contents), and what is
//! to be done comes back as a list of [`Effect`]s. Nobody is asked and nothing is written.
//!
//! **Differences from git.** Texts merge as with `git merge-file`, place by place. Around them:
//! - A rename is what the plan says is one; names are not guessed. What the workspace renamed is a deletion and a new file
//!   to it, and the plan's change to the old one is a conflict that names the new path.
//! - Two files made at one path, or brought there by a rename, conflict unless they are the same.
//! - Permissions merge bit by bit, and never conflict. git knows only the bit for executing.
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
