//! Errors of jobs.

use eventlog::{BadName, CommitError, LeaseError, LogError, ReadError};
use protocol::JobId;

use crate::job::Job;

/// The service couldn't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenJobsError {
    /// An invalid name.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The worker's lease wasn't granted.
    #[error("the worker's lease was not given")]
    Lease(#[from] LeaseError),
    /// A job couldn't be written.
    #[error("a job could not be written")]
    Commit(#[from] CommitError),
    /// The log failed.
    #[error("the jobs could not be read")]
    Log(#[from] LogError),
}

/// A job wasn't accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Too many jobs are waiting.
    #[error("{limit} jobs wait already; no more are taken until some have ended")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// A field is invalid.
    #[error("`{field}` {why}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The job waits for another job that doesn't exist.
    #[error("there is no job {id} to wait for")]
    UnknownDependency {
        /// The missing job.
        id: JobId,
    },
    /// The idempotency key belongs to a job with other parameters.
    #[error("the idempotency key belongs to the job {id}, which asks for something else")]
    KeyReused {
        /// The job that has the key.
        id: JobId,
    },
    /// No handler has this name.
    #[error("there is no handler `{handler}`")]
    NoHandler {
        /// The name.
        handler: String,
    },
    /// The daemon is shutting down.
    #[error("the daemon is draining and takes no more jobs")]
    Draining,
    /// The log refused it.
    #[error(transparent)]
    Commit(CommitError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<ReadError> for SubmitError {
    fn from(error: ReadError) -> Self {
        Self::Log(error.into())
    }
}

impl SubmitError {
    /// Whether the job may have been accepted anyway, because the log's answer was lost.
    #[must_use]
    pub fn may_be_taken(&self) -> bool {
        match self {
            Self::Commit(error) => error.may_be_made(),
            Self::Log(error) => error.may_be_made(),
            _ => false,
        }
    }
}

/// A job wasn't changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such job.
    #[error("there is no job {id}")]
    NotFound {
        /// The id.
        id: JobId,
    },
    /// The job has ended.
    #[error("the job {} has ended", job.id)]
    Ended {
        /// Its current state.
        job: Box<Job>,
    },
    /// The job hasn't ended yet.
    #[error("the job {} has not ended yet", job.id)]
    NotEnded {
        /// Its current state.
        job: Box<Job>,
    },
    /// The payload of the job no longer exists.
    #[error("what the job {id} was submitted with is no longer there")]
    Forgotten {
        /// The job.
        id: JobId,
    },
    /// The log refused it.
    #[error(transparent)]
    Commit(CommitError),
    /// The new job wasn't accepted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl From<CommitError> for ChangeError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Log(error) => Self::Log(error),
            error => Self::Commit(error),
        }
    }
}

impl From<ReadError> for ChangeError {
    fn from(error: ReadError) -> Self {
        Self::Log(error.into())
    }
}

impl ChangeError {
    /// Whether the change may have been made anyway, because the log's answer was lost.
    #[must_use]
    pub fn may_be_made(&self) -> bool {
        match self {
            Self::Commit(error) => error.may_be_made(),
            Self::Submit(error) => error.may_be_taken(),
            Self::Log(error) => error.may_be_made(),
            _ => false,
        }
    }
}
