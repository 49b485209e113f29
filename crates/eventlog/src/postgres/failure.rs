//! Converts errors of Postgres into errors of the log, and decides whether to retry.

use std::{error::Error as _, io, sync::Arc};

use tokio_postgres::{
    Error,
    error::{Severity, SqlState},
};

use crate::error::LogError;

/// Why an operation on a connection failed.
#[derive(Debug)]
pub(super) enum Failure<E = LogError> {
    /// Nothing was written, and it may succeed on another connection or at the second attempt.
    Again(Error),
    /// The answer was lost. The next attempt finds out whether it was written, and doesn't write it twice.
    Unclear(Arc<dyn std::error::Error + Send + Sync>),
    /// The log itself failed.
    Log(LogError),
    /// The request is refused.
    Refused(E),
}

impl<E> Failure<E> {
    /// An error in a statement that makes something durable by itself. If the connection was lost, it is unknown
    /// whether it did.
    pub(super) fn in_write(error: Error) -> Self {
        if is_lost(&error) {
            return Self::Log(LogError::OutcomeUnknown(Arc::new(error)));
        }
        error.into()
    }
}

impl<E> From<Error> for Failure<E> {
    /// An error before anything could become durable.
    fn from(error: Error) -> Self {
        if is_lost(&error) || is_undone_by_others(&error) || is_read_only(&error) {
            Self::Again(error)
        } else {
            Self::Log(error.into())
        }
    }
}

/// The outcome of a transaction whose last statements and `COMMIT` were sent together.
///
/// The server processes them in order and stops at the first that fails; `COMMIT` then rolls the transaction
/// back. So an error that the server reports for an earlier statement means that nothing was written. If the
/// connection ends without such a report, or the report is about `COMMIT` itself, it may have been written.
pub(super) fn outcome<E>(
    steps: impl IntoIterator<Item = Result<(), Error>>,
    commit: Result<(), Error>,
) -> Result<(), Failure<E>> {
    for step in steps {
        match step {
            Ok(()) => {}
            Err(error) if error.as_db_error().is_some() => return Err(error.into()),
            Err(error) if is_lost(&error) => return Err(Failure::in_write(error)),
            Err(error) => return Err(Failure::Log(error.into())),
        }
    }
    commit.map_err(|error| Failure::Log(LogError::OutcomeUnknown(Arc::new(error))))
}

/// Whether this error means that the connection is gone.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.as_db_error() {
        Some(reported) => matches!(
            reported.parsed_severity(),
            Some(Severity::Fatal | Severity::Panic)
        ),
        None => {
            error.is_closed()
                || error
                    .source()
                    .is_some_and(|source| source.downcast_ref::<io::Error>().is_some())
        }
    }
}

/// Whether the server is read-only. Another one may have taken over, and a new connection leads there.
pub(super) fn is_read_only(error: &Error) -> bool {
    error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// Whether a transaction was rolled back in favor of another one.
fn is_undone_by_others(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE)
    )
}

/// Whether a server that refused the connection may soon be back.
pub(super) fn is_temporary(error: &Error) -> bool {
    match error.code() {
        None => is_lost(error),
        Some(code) => matches!(
            code,
            &SqlState::CANNOT_CONNECT_NOW
                | &SqlState::TOO_MANY_CONNECTIONS
                | &SqlState::ADMIN_SHUTDOWN
                | &SqlState::CRASH_SHUTDOWN
        ),
    }
}

impl From<Error> for LogError {
    fn from(error: Error) -> Self {
        match error.code() {
            Some(&SqlState::DISK_FULL) => Self::DiskFull,
            Some(&SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE) => Self::ReadOnly,
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => Self::Corrupt(Arc::new(error)),
            _ if is_lost(&error) => Self::Unreachable(Arc::new(error)),
            _ => Self::Engine(Arc::new(error)),
        }
    }
}

/// A value in the database that no log would have written.
#[derive(Debug, thiserror::Error)]
#[error("the database holds a value that is not {0}")]
pub(super) struct Malformed(pub(super) &'static str);

impl From<Malformed> for LogError {
    fn from(malformed: Malformed) -> Self {
        Self::Corrupt(Arc::new(malformed))
    }
}

impl<E> From<Malformed> for Failure<E> {
    fn from(malformed: Malformed) -> Self {
        Self::Log(malformed.into())
    }
}
