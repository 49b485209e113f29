//! Archives: a whole log as one file that doesn't depend on any engine.
//!
//! An archive is one zstd stream. It contains lines, each a JSON object with one key that names its kind, and
//! each terminated by a line feed:
//!
//! ```text
//! {"header":{"format":"tidelock-archive","version":2}}
//! {"chunk":{"content":{"text":"…"}}}
//! {"blob":{"id":"…","size_bytes":1,"chunks":1}}
//! {"stream":{"id":"job/1","kind":"job","status":"done","body":{"text":"…"},"blobs":["…"],"first":1,"last":1}}
//! {"event":{"sequence":1,"at_ms":0,"kind":"note","body":{"base64":"…"},"blobs":[]}}
//! {"end":{"records":4,"blake3":"…"}}
//! ```
//!
//! - The header is first. A reader refuses a version that it doesn't know.
//! - Then come the blobs: the chunks of each in order, each of at most 256 KiB, then the blob that they make. A
//!   run of zeros is a `hole` instead of a chunk. The id of a blob is its address (see
//!   [`BlobHasher`](crate::BlobHasher)) in hexadecimal.
//! - Then come the streams in the order in which they were last written, each followed by its events from `first`
//!   to `last`, without a gap. `at_ms` is in milliseconds since 1970. `blobs` are the blobs that a head or an
//!   event refers to.
//! - Bytes are `{"text":…}` if they are UTF-8, and `{"base64":…}` otherwise.
//! - The end has the number of records between it and the header, and the BLAKE3 hash of all lines before it,
//!   including line feeds. An archive without it was cut short. If something in the log was damaged, the end
//!   lists it as `left_out`; each event that couldn't be read is replaced by one of the kind `damaged`.
//!
//! Versions and leases aren't included: they only mean something to the users of the log that they came from.
//! Both directions stream: a few records are in memory at a time.

mod export;
mod format;
mod import;
mod watch;

pub use export::{ExportError, export};
pub use import::{ImportError, import};
pub use watch::ArchiveWatch;

/// What an archive contains.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Contents {
    /// The number of streams.
    pub streams: u64,
    /// The number of events.
    pub events: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// What was damaged when it was written, and so isn't included.
    pub left_out: Vec<String>,
}
