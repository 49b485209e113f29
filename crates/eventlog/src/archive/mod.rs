//! Archives: a whole log as one file that does not depend on any engine.
//!
//! An archive is one zstd stream. Inside are lines, each a JSON object with one key that says what it is, and each
//! ended by a line feed:
//!
//! ```text
//! {"header":{"format":"tidelock-archive","version":1}}
//! {"chunk":{"content":{"text":"…"}}}
//! {"blob":{"id":"…","size_bytes":1,"chunks":1}}
//! {"stream":{"id":"job/1","kind":"job","status":"done","body":{"text":"…"},"blobs":["…"],"first":1,"last":1}}
//! {"event":{"sequence":1,"at_ms":0,"kind":"note","body":{"base64":"…"},"blobs":[]}}
//! {"end":{"records":4,"blake3":"…"}}
//! ```
//!
//! - The header is first. A reader refuses a version that it does not know.
//! - Then come the blobs: the chunks of each in order, each of at most 256 KiB, then the blob that they make. Its id
//!   is the BLAKE3 hash of its content in hexadecimal.
//! - Then come the streams in the order in which they were last written, each followed by its events from `first`
//!   to `last`, without a gap. `at_ms` is in milliseconds since 1970. `blobs` are the blobs that a head or an event
//!   refers to.
//! - Bytes are `{"text":…}` where they are UTF-8, and `{"base64":…}` where they are not.
//! - The end says how many records there are between it and the header, and the BLAKE3 hash of all lines before it,
//!   line feeds included. An archive without it was cut short. If something was damaged in the log, the end lists it as
//!   `left_out`; an event of the kind `damaged` stands in the place of each event that could not be read.
//!
//! Versions and leases are not in it: they mean something only to those who use the log that they were made in.
//! Both directions stream: a few records are in memory at a time.

mod export;
mod format;
mod import;
mod watch;

pub use export::{ExportError, export};
pub use import::{ImportError, import};
pub use watch::ArchiveWatch;

/// What an archive holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Contents {
    /// How many streams.
    pub streams: u64,
    /// How many events.
    pub events: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What was damaged when it was written, and so is not in it.
    pub left_out: Vec<String>,
}
