//! Why a daemon couldn't start because of its log, and why an import failed.

use std::io;
use std::path::PathBuf;

use eventlog::{CommitError, ImportError, LogError, OpenError};
use machines::ClaimError;
use thiserror::Error;

use crate::home::HomeError;
use crate::ownership::OwnershipError;

/// Why there is no usable log.
#[derive(Debug, Error)]
pub enum LogStartError {
    /// The log couldn't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The id of the home can't be read or written.
    #[error("the id of this home, in `{path}`, cannot be used", path = .path.display())]
    HomeId {
        /// The file.
        path: PathBuf,
        /// The error from the system.
        source: io::Error,
    },
    /// Another daemon has the id of this home.
    #[error(transparent)]
    Copied(ClaimError),
    /// The log was opened, but its contents couldn't be read.
    #[error("the log was opened and cannot be read")]
    Read(#[source] LogError),
    /// The log was opened, but the start of this daemon couldn't be recorded.
    #[error("the start of this daemon could not be written to the log")]
    Write(#[source] CommitError),
}

impl From<ClaimError> for LogStartError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Read(error) => Self::Read(error),
            ClaimError::Write(error) => Self::Write(error),
            copied @ ClaimError::Copied { .. } => Self::Copied(copied),
        }
    }
}

impl LogStartError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open(error) => open_code(error),
            Self::HomeId { .. } => "home_unusable",
            Self::Copied(_) => "home_copied",
            Self::Read(error) | Self::Write(CommitError::Log(error)) => log_code(error),
            Self::Write(_) => "log_failed",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        if let Self::Open(OpenError::Database {
            source: LogError::ReadOnly,
            ..
        }) = self
        {
            return "let its user create a schema and tables there, for example as the owner of the database, and make sure \
                    that the server accepts writes"
                .to_owned();
        }
        match self.code() {
            "log_newer" => "use the newer Tidelock that wrote it, or move the file away to start afresh",
            "log_taken" => "end the process that has it, or set TIDELOCK_HOME to another directory",
            "log_damaged" => {
                "put a backup in its place; without one, move the file away to start afresh and keep it for a repair"
            }
            "log_unwritable" => "make sure that you can write to the state directory and that there is room",
            "database_unreachable" => "make sure that TIDELOCK_DATABASE_URL is right and that the server is running",
            "database_refused" => {
                "change what the message names, in TIDELOCK_DATABASE_URL or in the PG variables, or fix the server"
            }
            "home_copied" => {
                "make it a home of its own with `tidelock home renew`; if it has moved here for good and the other one is \
                 not used any more, run `tidelock home adopt`"
            }
            "home_unusable" => "make sure that you can read and write the file; if its content is lost, remove it",
            _ => "see `tidelock doctor`",
        }
        .to_owned()
    }
}

fn open_code(error: &OpenError) -> &'static str {
    match error {
        OpenError::NewerSchema { .. } | OpenError::NewerDatabase { .. } => "log_newer",
        OpenError::Taken { .. } => "log_taken",
        OpenError::Address { .. } => "database_unreachable",
        OpenError::Refused { .. } => "database_refused",
        OpenError::File { source, .. } | OpenError::Database { source, .. } => log_code(source),
    }
}

fn log_code(error: &LogError) -> &'static str {
    match error {
        LogError::DiskFull | LogError::ReadOnly => "log_unwritable",
        LogError::Corrupt(_) => "log_damaged",
        LogError::Unreachable(_) | LogError::OutcomeUnknown(_) => "database_unreachable",
        LogError::Engine(_) | LogError::Closed => "log_failed",
    }
}

/// Why an archive wasn't imported. The log is unchanged.
#[derive(Debug, Error)]
pub enum ImportLogError {
    /// The directories can't be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A daemon is running, or the lock can't be used.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The log couldn't be opened.
    #[error(transparent)]
    Log(#[from] LogStartError),
    /// The log isn't empty, or the archive is incomplete.
    #[error(transparent)]
    Import(#[from] ImportError),
}

impl ImportLogError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Home(_) | Self::Ownership(OwnershipError::File { .. }) => "home_unusable",
            Self::Ownership(OwnershipError::Taken { .. }) => "already_running",
            Self::Log(error) => error.code(),
            Self::Import(ImportError::NotEmpty) => "log_not_empty",
            Self::Import(ImportError::Log(error)) => log_code(error),
            Self::Import(_) => "archive_unusable",
        }
    }

    /// What to do about it, in one sentence.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::Home(error) => error.advice(),
            Self::Ownership(OwnershipError::Taken { .. }) => {
                "stop it with `tidelock down`; an archive can be imported only while no daemon runs"
                    .to_owned()
            }
            Self::Ownership(error) => error.advice(),
            Self::Log(error) => error.advice(),
            Self::Import(ImportError::NotEmpty) => {
                "import into a home that no daemon has run in, or move its `log.sqlite3` away first"
                    .to_owned()
            }
            Self::Import(ImportError::NewerFormat { .. }) => {
                "use the newer Tidelock that wrote it".to_owned()
            }
            Self::Import(ImportError::Log(_)) => "see `tidelock doctor`".to_owned(),
            Self::Import(_) => "export the log again, or use another copy of the archive".to_owned(),
        }
    }
}
