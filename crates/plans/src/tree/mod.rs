//! A tree of files, reached through the descriptor of its root. Nothing outside of it can be reached through it.
//!
//! A path is walked by the kernel, from the root's descriptor, and the kernel refuses to leave the tree and to follow a
//! symlink on the way (`openat2` with `RESOLVE_BENEATH`, `RESOLVE_NO_SYMLINKS` and `RESOLVE_NO_MAGICLINKS`). What comes
//! out is the descriptor of the directory that the last name is in, and everything is done to that name in that directory
//! without following it. So there is no moment between looking at a path and using it in which somebody could put a
//! symlink there. What is not kept out is a directory that is moved out of the tree at that very instant by somebody who
//! may do so: what is written then goes along with it, where that somebody could have written it as well.
//!
//! Everything here blocks.
//!
//! **What must not happen here:** a path of the system as text. Comparing texts is how such walls are climbed.

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
