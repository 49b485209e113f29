//! What can go wrong with the log itself.

use std::{path::PathBuf, sync::Arc};

/// The log cannot do what was asked, whatever the request was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The disk is full, so nothing more is written.
    #[error("the disk is full")]
    DiskFull,
    /// The file or its directory cannot be written.
    #[error("the log cannot be written")]
    ReadOnly,
    /// The file is damaged.
    #[error("the log is damaged")]
    Corrupt(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The engine failed in some other way.
    #[error("the log failed")]
    Engine(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The database server does not answer. Nothing was written.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The connection was lost before a write was acknowledged: it was made in full or not at all, and nobody here
    /// knows which. Look at the stream before you write again.
    #[error("the connection to the database was lost, so it is unknown whether the write was made")]
    OutcomeUnknown(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The log has been closed.
    #[error("the log is closed")]
    Closed,
}

impl LogError {
    /// Whether the database is away, or has just come back: the same may go well a little later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::OutcomeUnknown(_))
    }

    /// Whether the write may have been made all the same. Then nothing may be taken away that it speaks of.
    pub fn may_be_made(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_))
    }
}

/// The log was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file was written by a newer Tidelock. It was not touched.
    #[error("`{}` has schema {found}, and this version knows schemas up to {known}", path.display())]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The address of the database cannot be used.
    #[error("the address of the database cannot be used: {reason}")]
    Address {
        /// Why. It holds nothing of the address, which may have a password in it.
        reason: String,
    },
    /// The server answers, and is not to be used as it is: it cannot prove who it is, for example.
    #[error("the database {place} is not used: {reason}")]
    Refused {
        /// The database.
        place: String,
        /// Why, and what to do about it.
        reason: String,
    },
    /// The database was written by a newer Tidelock. It was not touched.
    #[error(
        "the database {place} has schema {found}, and this version knows schemas up to {known}; update it"
    )]
    NewerDatabase {
        /// The database.
        place: String,
        /// Its schema.
        found: i64,
        /// The newest that is known here.
        known: i64,
    },
    /// The database cannot be used.
    #[error("the database {place} cannot be used as a log")]
    Database {
        /// The database.
        place: String,
        /// Why.
        #[source]
        source: LogError,
    },
    /// Another process has the file open, or this one has already.
    #[error("`{}` is in use by {}", path.display(), by_pid(*.pid))]
    Taken {
        /// The file.
        path: PathBuf,
        /// The process, if it has said so yet.
        pid: Option<u32>,
    },
    /// The file cannot be used.
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

/// A backup was not made. No file of that name was left behind.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of that name, and it was not touched.
    #[error("`{}` exists already", .0.display())]
    Exists(PathBuf),
    /// The engine keeps its data in a server, which has its own tools for this.
    #[error("this log is kept by a database server; use the tools of the server to back it up")]
    NotSupported,
    /// The copy could not be written.
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
