//! Which files of a tree hold which trigrams and which names. One index per tree, for everybody who asks.
//!
//! It lies in the data directory, as immutable segments and a manifest that names them. What changes on disk goes into small
//! pieces in memory, and from there into new segments. A [`Snapshot`] is the index at one moment; it stays as it is for as
//! long as somebody holds it.
//!
//! - `entry.rs`, `key.rs`, `record.rs`, `numbers.rs`: what is kept of a file, and how.
//! - `extract.rs`, `collect.rs`, `build.rs`: from files to segments. `piece.rs`: one file in memory.
//! - `segment/`: a file with what many files are found by. `manifest.rs`: which of them count. `merge.rs`: several become one.
//! - `part.rs`: a segment or a piece, and which of its files still count.
//! - `compare.rs`: how the tree differs from what is known. `writer.rs`: what is done about it.
//! - `inbox.rs`, `keeper.rs`, `service.rs`: the one task that does it, and how it is asked. `way.rs`: who goes first.
//!
//! **Invariant:** the index is a cache. It answers which files *may* hold something; whoever uses the answer reads the file.
//! Whatever is wrong with what is on disk means that it is not there, and it is made anew.
//!
//! **Invariant:** a file counts in at most one part. Before another version of it comes in, what is known of it stops to count.

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
mod piece;
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
