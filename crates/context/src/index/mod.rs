//! Which files of a tree contain which trigrams and names. One index per tree, shared by all questions.
//!
//! It is stored in the data directory, as immutable segments and a manifest that names them. Changes on disk go
//! into small pieces in memory, and from there into new segments. A [`Snapshot`] is the index at one point in
//! time; it doesn't change as long as somebody holds it.
//!
//! - `entry.rs`, `key.rs`, `record.rs`, `numbers.rs`: what is stored about a file, and how.
//! - `extract.rs`, `collect.rs`, `build.rs`: from files to segments. `part.rs` has one file in memory as well.
//! - `segment/`: a file with the keys of many files. `manifest.rs`: which segments count. `merge.rs`: merges several.
//! - `part.rs`: a segment or a piece, and which of its files still count.
//! - `compare.rs`: how the tree differs from the index. `writer.rs`: applies the differences.
//! - `inbox.rs`, `keeper.rs`, `service.rs`: the one task that does it, and how to request work. `way.rs`: who has
//!   priority.
//!
//! **Invariant:** the index is a cache. It determines which files *may* contain something; callers read the file to
//! verify. Invalid data on disk counts as missing and is rebuilt.
//!
//! **Invariant:** a file counts in at most one part. Before another version of it is added, the earlier one stops
//! counting.

mod build;
mod collect;
mod compare;
mod entry;
mod extract;
mod inbox;
mod keeper;
mod key;
mod manifest;
mod merge;
mod numbers;
mod part;
mod record;
mod segment;
mod service;
mod snapshot;
mod way;
mod writer;

pub use key::Key;
pub use service::{Index, IndexInfo, IndexOptions, IndexState};
pub use snapshot::{FileId, Snapshot};
pub(crate) use way::Way;
