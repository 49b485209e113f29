//! What can go wrong with jobs.

use eventlog::{BadName, CommitError, LeaseError, LogError};
use protocol::JobId;

use crate::job::Job;

/// The jobs could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum OpenJobsError {
    /// A name that cannot be used.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// The lease of this worker was not given.
    #[error("the worker's lease was not given")]
    Lease(#[from] LeaseError),
    /// A job could not be written.
    #[error("a job could not be written")]
    Commit(#[from] CommitError),
    /// The log failed.
    #[error("the jobs could not be read")]
    Log(#[from] LogError),
}

/// A job was not taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Too many wait already.
    #[error("{limit} jobs wait already; no more are taken until some have ended")]
    Full {
        /// How many may wait.
        limit: usize,
    },
    /// Something about it cannot be.
    #[error("`{field}` {why}")]
    Invalid {
        /// What.
        field: &'static str,
        /// Why not.
        why: String,
    },
    /// It waits for a job that is not there.
    #[error("there is no job {id} to wait for")]
    UnknownDependency {
        /// Which.
        id: JobId,
    },
    /// The idempotency key belongs to another job, which asks for something else.
    #[error("the idempotency key belongs to the job {id}, which asks for something else")]
    KeyReused {
        /// Whose.
        id: JobId,
    },
    /// Nobody can do it.
    #[error("there is no handler `{handler}`")]
    NoHandler {
        /// Who was wanted.
        handler: String,
    },
    /// The daemon ends.
    #[error("the daemon is draining and takes no more jobs")]
    Draining,
    /// The log refused it.
    #[error(transparent)]
    Commit(CommitError),
    /// The log did not take it.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl SubmitError {
    /// Whether the job may have been taken all the same, because the answer of the log was lost.
    #[must_use]
    pub fn may_be_taken(&self) -> bool {
        match self {
            Self::Commit(error) => error.may_be_made(),
            Self::Log(error) => error.may_be_made(),
            _ => false,
        }
    }
}

/// A job was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such job.
    #[error("there is no job {id}")]
    NotFound {
        /// Which.
        id: JobId,
    },
    /// It has ended.
    #[error("the job {} has ended", job.id)]
    Ended {
        /// How it is.
        job: Box<Job>,
    },
    /// It has not ended yet.
    #[error("the job {} has not ended yet", job.id)]
    NotEnded {
        /// How it is.
        job: Box<Job>,
    },
    /// What it was submitted with is no longer there.
    #[error("what the job {id} was submitted with is no longer there")]
    Forgotten {
        /// Which.
        id: JobId,
    },
    /// The log refused it.
    #[error(transparent)]
    Commit(CommitError),
    /// The new job was not taken.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The log did not take it.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl ChangeError {
    /// Whether it may have been changed all the same, because the answer of the log was lost.
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
