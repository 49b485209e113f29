//! Errors of the log itself.

use std::{path::PathBuf, sync::Arc};

/// The log failed, independent of the request.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The disk is full, so nothing more can be written.
    #[error("the disk is full")]
    DiskFull,
    /// The file or its directory can't be written.
    #[error("the log cannot be written")]
    ReadOnly,
    /// The file is damaged.
    #[error("the log is damaged")]
    Corrupt(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The engine failed in another way.
    #[error("the log failed")]
    Engine(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The database server can't be reached. Nothing was written.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The connection was lost before a write was acknowledged. The write was made in full or not at all. Read
    /// the stream before you write again.
    #[error("the connection to the database was lost, so it is unknown whether the write was made")]
    OutcomeUnknown(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
}

impl LogError {
    /// Whether the database is away, or has just come back. The same request may succeed a little later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::OutcomeUnknown(_))
    }

    /// Whether the write may have been made although it failed. Then nothing that it refers to may be removed.
    pub fn may_be_made(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_))
    }
}

/// The log couldn't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file was written by a newer Tidelock. It was left unchanged.
    #[error("`{}` has schema {found}, and this version knows schemas up to {known}", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The schema of the file.
        found: i64,
        /// The newest schema that this version supports.
        known: i64,
    },
    /// The address of the database is invalid.
    #[error("the address of the database cannot be used: {reason}")]
    Address {
        /// Why. It never contains parts of the address, which may have a password in it.
        reason: String,
    },
    /// The server responds but isn't used, for example because it can't prove its identity.
    #[error("the database {place} is not used: {reason}")]
    Refused {
        /// The database.
        place: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// The database was written by a newer Tidelock. It was left unchanged.
    #[error(
        "the database {place} has schema {found}, and this version knows schemas up to {known}; update it"
    )]
    NewerDatabase {
        /// The database.
        place: String,
        /// The schema of the database.
        found: i64,
        /// The newest schema that this version supports.
        known: i64,
    },
    /// The database can't be used as a log.
    #[error("the database {place} cannot be used as a log")]
    Database {
        /// The database.
        place: String,
        /// Why.
        #[source]
        source: LogError,
    },
    /// Another process has the file open, or this one already has.
    #[error("`{}` is in use by {}", path.display(), by_pid(*.pid))]
    Taken {
        /// The file.
        path: PathBuf,
        /// The process, if its record is complete.
        pid: Option<u32>,
    },
    /// The file can't be opened as a log.
    #[error("`{}` cannot be opened as a log", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: LogError,
    },
}

fn by_pid(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "a process that has not said who it is yet".to_owned(),
        |pid| format!("process {pid}"),
    )
}

/// A backup failed. No file of that name was left behind.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file already exists. It was left unchanged.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// The data is in a database server, which has its own backup tools.
    #[error("this log is kept by a database server; use the tools of the server to back it up")]
    NotSupported,
    /// The copy couldn't be written.
    #[error("the backup `{}` cannot be written", path.display())]
    File {
        /// The copy.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The log itself failed.
    #[error(transparent)]
    Log(#[from] LogError),
}
