//! The durable log: its state, its size, and how to copy it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The response of `GET /v1/log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogStatus {
    /// The engine that stores the log.
    pub engine: LogEngine,
    /// Whether the log accepts writes.
    pub state: LogState,
    /// Why the log refuses writes. Absent if it accepts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The path of a file which records that the last writes before a crash were lost because the write-ahead
    /// log was removed. It stays until you remove it. Absent if there is no such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_writes: Option<String>,
    /// The server that stores the log, and how the daemon connected to it at startup. Absent if the log is a
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<LogServer>,
    /// The size of the log.
    pub sizes: LogSizes,
}

/// The database server that stores a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogServer {
    /// The database and server, without user name and password.
    pub place: String,
    /// The version the server reports.
    pub version: String,
    /// How the connection is encrypted, such as `TLS 1.3`. Absent if it isn't.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
}

/// The engine that stores the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogEngine {
    /// A file in the state directory.
    Sqlite,
    /// A database server that several daemons can share.
    Postgres,
}

/// Whether the log accepts writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogState {
    /// It accepts writes.
    Writable,
    /// It refuses writes. Reads still work where possible.
    Refusing,
}

/// The size of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogSizes {
    /// The total size, in bytes.
    pub total_bytes: u64,
    /// The part of the total that is free for reuse, in bytes.
    pub free_bytes: u64,
    /// The size of the write-ahead log, in bytes, if the engine has one.
    pub wal_bytes: u64,
    /// The number of streams.
    pub streams: u64,
    /// The number of events.
    pub events: u64,
    /// The number of blobs.
    pub blobs: u64,
    /// The total size of the blobs, in bytes.
    pub blob_bytes: u64,
}

/// The response of `POST /v1/log/check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogCheck {
    /// The result of the check.
    pub state: LogIntegrity,
    /// The problems that were found, one sentence each.
    pub problems: Vec<String>,
}

/// Whether the log is intact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogIntegrity {
    /// Everything that was checked is intact.
    Whole,
    /// Something is damaged.
    Damaged,
}

/// The response of `GET /v1/log/quarantine`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineList {
    /// The heads found unreadable since the daemon started, sorted by name.
    pub quarantined: Vec<QuarantinedStream>,
}

/// A head that can't be read. It stays in the log but is omitted from lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedStream {
    /// The name of the stream.
    pub stream: String,
    /// The kind of object: `plan`, `session`, `job` and so on.
    pub kind: String,
    /// Why the head can't be read.
    pub reason: String,
    /// The version, which you must pass to drop the head. Absent if the database can't read it either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The size of the head, in bytes. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// The response of `GET /v1/log/quarantine/{stream}`: the stored content of a head that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedHead {
    /// The name of the stream.
    pub stream: String,
    /// The kind of object.
    pub kind: String,
    /// The last known state of the object.
    pub status: String,
    /// Why the head can't be read.
    pub reason: String,
    /// The version, which you must pass to drop the head.
    pub version: u64,
    /// The stored content, if it is text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The stored content in Base64, if it isn't text. Otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

/// The body of `POST /v1/log/backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupLog {
    /// The path of the copy: absolute, on the daemon's machine. Nothing may exist there yet.
    pub path: String,
}

/// The response of `POST /v1/log/backup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogBackup {
    /// The path of the copy.
    pub path: String,
    /// The size of the copy, in bytes.
    pub size_bytes: u64,
    /// Damaged parts of the log that aren't in the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// The media type of the archive that `GET /v1/log/export` returns.
pub const ARCHIVE_MEDIA_TYPE: &str = "application/vnd.tidelock.archive";
