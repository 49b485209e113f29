//! The durable log: how it is, how large, and how to copy it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer of `GET /v1/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogStatus {
    /// What keeps it.
    pub engine: LogEngine,
    /// Whether it takes writes.
    pub state: LogState,
    /// Why it refuses writes, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How large it is.
    pub sizes: LogSizes,
}

/// What keeps the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogEngine {
    /// A file in the state directory.
    Sqlite,
    /// A database server that several daemons share.
    Postgres,
}

/// Whether the log takes writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogState {
    /// It does.
    Writable,
    /// It does not, and what must be written is refused; reads go on where they can.
    Refusing,
}

/// How large the log is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogSizes {
    /// The whole of it.
    pub total_bytes: u64,
    /// What of that is free for reuse.
    pub free_bytes: u64,
    /// The write-ahead log, where there is one.
    pub wal_bytes: u64,
    /// How many streams.
    pub streams: u64,
    /// How many events.
    pub events: u64,
    /// How many blobs.
    pub blobs: u64,
    /// What the blobs take.
    pub blob_bytes: u64,
}

/// The answer of `POST /v1/log/check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogCheck {
    /// What came out.
    pub state: LogIntegrity,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

/// Whether the log is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogIntegrity {
    /// Everything that was looked at is as it was written.
    Whole,
    /// Something is not.
    Damaged,
}

/// The body of `POST /v1/log/backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupLog {
    /// Where the copy shall be: an absolute path on the daemon's machine, with nothing there yet.
    pub path: String,
}

/// The answer of `POST /v1/log/backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogBackup {
    /// Where the copy is.
    pub path: String,
    /// How large it is.
    pub size_bytes: u64,
}

/// The media type of an archive, as `GET /v1/log/export` sends it.
pub const ARCHIVE_MEDIA_TYPE: &str = "application/vnd.tidelock.archive";
