//! Failures of the log on their way out.

use std::error::Error;

use eventlog::{BackupError, CommitError, LogError};
use protocol::ErrorCode;

use super::breakers::{limit_reached, to_wire};
use super::problem::Problem;
use crate::durable::OverrideError;

/// The log could not be read.
pub(crate) fn read_failed(error: LogError) -> Problem {
    if error.is_outage() {
        return Problem::new(
            ErrorCode::LogRefusing,
            sentence("The log does not answer", &error),
        );
    }
    let detail = sentence("The log could not be read", &error);
    Problem::new(ErrorCode::LogFailed, detail).because(error)
}

/// What the log has of one thing cannot be read. It is quarantined.
pub(crate) fn unreadable(error: &dyn Error) -> Problem {
    Problem::new(ErrorCode::RecordUnreadable, sentence("Damaged", error))
}

/// The log takes no writes.
pub(crate) fn refusing(reason: &LogError) -> Problem {
    Problem::new(ErrorCode::LogRefusing, sentence("The log refuses writes", reason))
}

/// Why a log refuses writes, in words.
pub(crate) fn reason_text(reason: &LogError) -> String {
    chain(reason)
}

/// A change by hand was not made.
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

/// Something that must be durable was not written.
pub(crate) fn not_committed(error: CommitError) -> Problem {
    match error {
        CommitError::Log(reason) => refusing(&reason),
        CommitError::NotStorable(_) => {
            Problem::new(ErrorCode::NotStorable, sentence("Nothing was stored", &error))
        }
        error => Problem::internal(error),
    }
}

/// A backup was not made.
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
    format!("{beginning}: {}.", chain(error))
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
