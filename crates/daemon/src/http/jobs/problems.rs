//! Converts errors of jobs to problems, and declares the codes that each operation on a job can fail with.

use eventlog::LogError;
use jobs::{ChangeError, FollowEnd, SubmitError};
use protocol::{ErrorCode, JobId};

use crate::http::consent::ChangeUserFiles;
use crate::http::log_problem::{ReadLog, WriteLog, refusing};
use crate::http::problem::{Problem, Subject, sentence};
use crate::http::refusals::families;
use crate::http::sse::OpenStream;
use crate::jobs::wire::invalid;

families! {
    Read = [JobNotFound, ShuttingDown] + ReadLog;
    Submit = [JobsFull, InvalidRequest, JobDependencyNotFound, IdempotencyKeyReused, ShuttingDown] + WriteLog;
    Cancel = [JobEnded] + Read + WriteLog;
    Retry = [JobNotEnded] + Read + Submit + ChangeUserFiles;
    Feed = [JobEnded, InvalidRequest] + Read + OpenStream;
}

pub(super) fn no_job(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::JobNotFound, detail)
}

pub(crate) fn not_found(id: JobId) -> Problem {
    no_job(format!("There is no job {id}."))
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            SubmitError::Full { .. } => Self::new(ErrorCode::JobsFull, detail),
            SubmitError::Invalid { field, why } => invalid(field, &why),
            SubmitError::UnknownDependency { id } => {
                let detail = format!("There is no job {id} to wait for.");
                Self::new(ErrorCode::JobDependencyNotFound, detail).in_field("after")
            }
            SubmitError::KeyReused { id } => {
                Self::new(ErrorCode::IdempotencyKeyReused, detail).about(Subject::Job(id))
            }
            SubmitError::NoHandler { .. } => Self::new(ErrorCode::InvalidRequest, detail),
            SubmitError::Draining => shutting_down(),
            SubmitError::Commit(error) => error.into(),
            SubmitError::Log(reason) => not_written(&reason),
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            ChangeError::NotFound { .. } | ChangeError::Forgotten { .. } => no_job(detail),
            ChangeError::Ended { job } => Self::new(ErrorCode::JobEnded, detail).about(Subject::Job(job.id)),
            ChangeError::NotEnded { job } => {
                Self::new(ErrorCode::JobNotEnded, detail).about(Subject::Job(job.id))
            }
            ChangeError::Submit(error) => error.into(),
            ChangeError::Commit(error) => error.into(),
            ChangeError::Log(reason) => not_written(&reason),
        }
    }
}

/// Waiting for a job failed.
pub(crate) fn not_followed(id: JobId, end: FollowEnd) -> Problem {
    match end {
        FollowEnd::NotFound => not_found(id),
        FollowEnd::Cancelled(cause) => Problem::new(
            ErrorCode::ShuttingDown,
            format!("The daemon is shutting down ({cause})."),
        ),
        FollowEnd::Log(error) => error.into(),
    }
}

fn not_written(reason: &LogError) -> Problem {
    match reason {
        LogError::Closed => shutting_down(),
        reason => refusing(reason),
    }
}

fn shutting_down() -> Problem {
    Problem::new(ErrorCode::ShuttingDown, "The daemon takes no more jobs.")
}
