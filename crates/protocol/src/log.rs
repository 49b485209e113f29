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
    /// The file that says that the last writes before a crash are lost, because somebody removed the write-ahead log. It
    /// stays until you remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_writes: Option<String>,
    /// The server that keeps it, and how the daemon reached it when it started; missing if it is in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<LogServer>,
    /// How large it is.
    pub sizes: LogSizes,
}

/// The database server that keeps a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogServer {
    /// The database and the server, without user and password.
    pub place: String,
    /// The version, as the server says it.
    pub version: String,
    /// How the connection is encrypted, such as `TLS 1.3`; missing if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
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

/// The answer of `GET /v1/log/quarantine`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantineList {
    /// What was found unreadable since the daemon started, by name.
    pub quarantined: Vec<QuarantinedStream>,
}

/// A head that cannot be read. It stays in the log, and lists leave it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedStream {
    /// The name of its stream.
    pub stream: String,
    /// What it is of: `plan`, `session`, `job` and so on.
    pub kind: String,
    /// Why it cannot be read.
    pub reason: String,
    /// Its version, which whoever drops it must name; missing if the database cannot read it either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// How large it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// The answer of `GET /v1/log/quarantine/{stream}`: what is stored of a head that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuarantinedHead {
    /// The name of its stream.
    pub stream: String,
    /// What it is of.
    pub kind: String,
    /// What it was doing.
    pub status: String,
    /// Why it cannot be read.
    pub reason: String,
    /// Its version, which whoever drops it must name.
    pub version: u64,
    /// What is stored, if that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What is stored, in Base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
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
    /// What is damaged in the log, and so is not in the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// The media type of an archive, as `GET /v1/log/export` sends it.
pub const ARCHIVE_MEDIA_TYPE: &str = "application/vnd.tidelock.archive";
