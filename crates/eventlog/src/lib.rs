//! The durable log: streams of events, the heads of entities, leases, blobs.
//!
//! Everything durable in Tidelock goes through this crate. It carries the one rule to disk: a commit names the
//! version it saw, and is refused with the current head when that has moved.
//!
//! - [`Commit`] writes heads and appends events of one or more streams, together or not at all.
//! - [`Log::read`] and [`Log::tail`] give the events of a stream: gapless, in order, each once.
//! - [`Log::moved`] tells that something below a prefix has changed, for those who look at many streams.
//! - [`Log::remove`] forgets streams whole; [`Log::drop_events`] the beginning of one.
//! - [`Log::lease`] gives the right to do something until a time. A commit under a lease that is lost is refused,
//!   even if nobody else has taken it.
//! - [`Log::put_blob`] and [`Log::read_blob`] keep content of any size by its hash, as long as a head or an event
//!   refers to it.
//! - [`export`] and [`import`] carry a whole log from one engine to another.
//!
//! **Who owns the state:** the engine. On SQLite one process has the file, one thread writes it, and a pool of
//! connections reads it. On Postgres the server has it, and several processes share it.
//!
//! **What must not happen here:** HTTP, language servers, plans. Bodies are bytes; what they mean is their
//! writers' business.

mod address;
mod archive;
mod audit;
mod batch;
mod blob;
mod blob_io;
mod bookmark;
mod commit;
mod error;
mod faults;
mod file_lock;
mod hub;
mod lease;
mod log;
mod mend;
mod moves;
mod names;
mod outlast;
mod postgres;
mod quarantine;
mod record;
mod salvage;
mod sqlite;
mod store;
mod tail;
mod time;
mod unsettled;

pub use address::{BlobHasher, HOLE_BYTES, is_zero};
pub use archive::{ArchiveWatch, Contents, ExportError, ImportError, export, import};
pub use batch::EventBatch;
pub use blob::{BadBlobId, BlobError, BlobId, BlobInfo, CHUNK_BYTES, Collected, Trimmed};
pub use blob_io::{BlobReader, Piece, hole_end};
pub use bookmark::Bookmark;
pub use commit::{
    BODY_LIMIT_BYTES, COMMIT_LIMIT_ITEMS, Commit, CommitError, Committed, Durability, Event, Head, NewEvent,
    StoredHead, Write, json_body,
};
pub use error::{BackupError, LogError, OpenError};
pub use faults::{Fault, Faults};
pub use file_lock::{FileLock, Holder, Liveness, LockError, read_holder, start_time_ticks};
pub use lease::{Lease, LeaseError};
pub use log::{HeadCheck, Log};
pub use mend::DAMAGED_EVENT;
pub use moves::{Moves, MovesEnd};
pub use names::{BadName, NAME_LIMIT_BYTES, Sequence, StreamId, Version};
pub use postgres::PostgresOptions;
pub use quarantine::Quarantined;
pub use sqlite::SqliteOptions;
pub use store::{HeadsOrder, HeadsQuery, Health, MovedQuery, Page, RetentionPolicy, ServerInfo, Sizes};
pub use tail::{Tail, TailBatch, TailEnd, TailItem};
pub use time::{UnixMs, WallClock};
pub use unsettled::Unsettled;
