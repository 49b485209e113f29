//! A tree of files, accessed through the descriptor of its root. Nothing outside can be reached through it.
//!
//! The kernel walks a path from the root's descriptor, and refuses to leave the tree or to follow a symlink on the way
//! (`openat2` with `RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_MAGICLINKS`). The result is the descriptor
//! of the directory that contains the last name, and all operations use that name in that directory without following
//! it. So there is no moment between checking a path and using it in which someone could put a symlink there. One case
//! isn't prevented: someone with the permission to do so moves a directory out of the tree at that very instant. What
//! is written then moves along with it, to where they could have written it themselves.
//!
//! Everything here blocks.
//!
//! **What must not happen here:** using a system path as text. Comparing paths as text is how sandboxes are escaped.

mod attributes;
mod error;
mod read;
mod remove;
mod resolve;
mod sparse;
mod spread;
mod stat;
mod write;

pub use attributes::FileAttributes;
pub use error::TreeError;
pub use read::ReadBounds;
pub use resolve::Tree;
pub use sparse::ContentSink;
pub use stat::{FileKind, FileStat};

pub(crate) use read::{entry_of_open, stat_of};
pub(crate) use sparse::{FilePiece, SparseFile, copy_all, next_piece};
