//! The durable log: streams of events, heads of entities, leases, blobs.
//!
//! Everything durable in Tidelock goes through this crate. It applies the one rule on disk: a commit names the
//! version it saw, and if the stream has changed since, it is refused and gets the current head.
//!
//! - [`Commit`] writes heads and appends events of one or more streams, together or not at all.
//! - [`Entity`] is a stream with a typed head: read, decided on, committed, and decided again on a conflict.
//! - [`Log::read`] and [`Log::tail`] return the events of a stream: gapless, in order, each once.
//! - [`Log::changes`] tells that something below a prefix has changed, for readers of many streams.
//! - [`Log::remove`] removes whole streams; [`Log::drop_events`] removes the beginning of one.
//! - [`Log::lease`] grants a right that expires. A commit under a lost lease is refused, even if nobody else has
//!   taken the lease.
//! - [`Log::put_blob`] and [`Log::read_blob`] store content of any size by its hash, as long as a head or an
//!   event refers to it.
//! - [`export`] and [`import`] move a whole log from one engine to another.
//!
//! **Who owns the state:** the engine. On SQLite, one process has the file, one thread writes it, and a pool of
//! connections reads it. On Postgres, the server has the data, and several processes share it.
//!
//! **What must not happen here:** HTTP, language servers, plans. Bodies are bytes; only their writers know what
//! they mean.

mod address;
mod archive;
mod audit;
mod batch;
mod blob;
mod blob_io;
mod bookmark;
mod changes;
mod commit;
mod commit_through;
mod entity;
mod error;
mod faults;
mod file_lock;
mod hub;
mod lease;
mod log;

mod names;

mod postgres;
mod quarantine;
mod record;
mod repair;
mod salvage;
mod sqlite;
mod store;
mod tail;
mod time;
mod unsettled;

pub use address::{BlobHasher, is_zero};
pub use archive::{ArchiveWatch, Contents, ExportError, ImportError, export, import};
pub use batch::EventBatch;
pub use blob::{BadBlobId, BlobError, BlobId, BlobInfo, CHUNK_BYTES, Collected, Trimmed};
pub use blob_io::{BlobReader, Piece, hole_end};
pub use bookmark::Bookmark;
pub use changes::{ChangesEnd, StreamChanges};
pub use commit::{
    BODY_LIMIT_BYTES, COMMIT_LIMIT_ITEMS, Commit, CommitError, Committed, Durability, Event, Head, NewEvent,
    StoredHead, Write, json_body,
};
pub use entity::{
    Change, ConflictRetries, Entity, EntityEvent, EntityRecord, MaybeConflict, NoEvent, ReadError,
    Unreadable, Updated,
};
pub use error::{BackupError, LogError, OpenError};
pub use faults::{Fault, Faults};
pub use file_lock::{FileLock, Holder, Liveness, LockError, read_holder, start_time_ticks};
pub use lease::{Lease, LeaseError};
pub use log::{HeadCheck, HeadPages, Log};
pub use names::{BadName, NAME_LIMIT_BYTES, Sequence, StreamId, Version};
pub use postgres::PostgresOptions;
pub use quarantine::Quarantined;
pub use repair::DAMAGED_EVENT;
pub use sqlite::SqliteOptions;
pub use store::{
    HeadsOrder, HeadsQuery, Health, Page, RecentlyChangedQuery, RetentionPolicy, ServerInfo, Sizes,
};
pub use tail::{Tail, TailBatch, TailEnd, TailItem};
pub use time::{UnixMs, WallClock};
pub use unsettled::UnsettledEvents;
