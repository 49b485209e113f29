//! Converts errors of the log to problems, and declares the codes that reading and writing it can fail with.

use std::error::Error;

use eventlog::{BackupError, CommitError, LogError};
use protocol::ErrorCode;

use super::breakers::{limit_reached, to_wire};
use super::problem::{Problem, describe};
use super::refusals::families;
use crate::durable::OverrideError;

families! {
    /// The log is read.
    ReadLog = [LogFailed, LogRefusing];
    /// Something is committed to the log.
    WriteLog = [LogRefusing, NotStorable];
    /// The log is copied.
    BackUpLog = [BackupExists, BackupNotSupported, BackupFailed, LogFailed];
    /// Breakers are changed by hand.
    ChangeBreakers = [BreakerLimitReached, LogRefusing, ShuttingDown];
}

/// The log could not be read.
impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        if error.is_outage() {
            let detail = sentence("The log does not answer", &error);
            return Self::new(ErrorCode::LogRefusing, detail);
        }
        let detail = sentence("The log could not be read", &error);
        Self::new(ErrorCode::LogFailed, detail).because(error)
    }
}

/// A head in the log can't be read. It is quarantined.
pub(crate) fn unreadable(error: &dyn Error) -> Problem {
    Problem::new(ErrorCode::RecordUnreadable, sentence("Damaged", error))
}

/// The log refuses writes.
pub(crate) fn refusing(reason: &LogError) -> Problem {
    Problem::new(ErrorCode::LogRefusing, sentence("The log refuses writes", reason))
}

/// Why the log refuses writes, as text.
pub(crate) fn reason_text(reason: &LogError) -> String {
    describe(reason)
}

/// A manual change wasn't made.
pub(crate) fn not_changed(error: OverrideError, unknown: impl FnOnce() -> Problem) -> Problem {
    match error {
        OverrideError::Unknown => unknown(),
        OverrideError::Moved(current) => {
            let detail = format!(
                "It has moved on, and its generation is {} now.",
                current.generation
            );
            Problem::new(ErrorCode::StaleGeneration, detail).with_current(to_wire(&current))
        }
        OverrideError::Full => limit_reached(),
        OverrideError::Closed | OverrideError::Log(LogError::Closed) => {
            Problem::new(ErrorCode::ShuttingDown, "The daemon takes no more changes.")
        }
        OverrideError::Log(reason) => refusing(&reason),
        OverrideError::Commit(error) => Problem::internal(error),
    }
}

/// A durable write failed.
impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Log(reason) => refusing(&reason),
            CommitError::NotStorable(_) => {
                Self::new(ErrorCode::NotStorable, sentence("Nothing was stored", &error))
            }
            error => Self::internal(error),
        }
    }
}

/// A backup failed.
pub(crate) fn not_backed_up(error: BackupError) -> Problem {
    match &error {
        BackupError::Exists(path) => Problem::new(
            ErrorCode::BackupExists,
            format!("`{}` exists already.", path.display()),
        ),
        BackupError::NotSupported => Problem::new(
            ErrorCode::BackupNotSupported,
            "This log is kept by a database server.",
        ),
        BackupError::File { .. } => {
            let detail = sentence("No backup was made", &error);
            Problem::new(ErrorCode::BackupFailed, detail).because(error)
        }
        BackupError::Log(_) => {
            let detail = sentence("No backup was made", &error);
            Problem::new(ErrorCode::LogFailed, detail).because(error)
        }
    }
}

fn sentence(beginning: &str, error: &dyn Error) -> String {
    format!("{beginning}: {}.", describe(error))
}
