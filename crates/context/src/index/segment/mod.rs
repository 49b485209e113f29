//! A segment: an immutable file with the keys and outlines of some files.
//!
//! ```text
//! magic and format
//! outlines          one after the other, in the order of the files
//! blocks            each: the lists of up to 128 keys, then the keys themselves
//! table of files    in the order of their paths
//! table of blocks   the first key of each, and where it is
//! end               where the tables are, and a hash of everything before it
//! ```
//!
//! A key has the numbers of its files: a single number is stored next to the key, a few are a list of differences, and
//! if more than an eighth of all files have it, they are a bit each. It is read with positioned reads, so that only the
//! tables are in memory.
//!
//! **What must not happen here:** a panic because of a file's content.

mod layout;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::{KeyCursor, Segment};
pub(super) use write::SegmentWriter;
