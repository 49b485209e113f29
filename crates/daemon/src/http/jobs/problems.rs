//! What goes wrong with jobs, as problems.

use eventlog::LogError;
use jobs::{ChangeError, FollowEnd, Job, SubmitError};
use protocol::{ErrorCode, JobId};

use crate::app::App;
use crate::http::log_problem::{not_committed, read_failed, refusing};
use crate::http::problem::Problem;
use crate::jobs::wire::{invalid, view};

/// There is no such job.
pub(super) fn no_job(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::JobNotFound, detail)
}

/// There is no job of this id.
pub(super) fn not_found(id: JobId) -> Problem {
    no_job(format!("There is no job {id}."))
}

/// A job was not taken.
pub(crate) async fn not_submitted(app: &App, error: SubmitError) -> Problem {
    match error {
        SubmitError::Full { .. } => Problem::new(ErrorCode::JobsFull, sentence(&error.to_string())),
        SubmitError::Invalid { field, why } => invalid(field, &why),
        SubmitError::UnknownDependency { id } => {
            let detail = format!("There is no job {id} to wait for.");
            Problem::new(ErrorCode::JobDependencyNotFound, detail).in_field("after")
        }
        SubmitError::KeyReused { id } => {
            let problem = Problem::new(ErrorCode::IdempotencyKeyReused, sentence(&error.to_string()));
            match app.jobs.get(id).await {
                Ok(Some(job)) => with_job(app, problem, &job).await,
                _ => problem,
            }
        }
        SubmitError::NoHandler { .. } => {
            Problem::new(ErrorCode::InvalidRequest, sentence(&error.to_string()))
        }
        SubmitError::Draining => shutting_down(),
        SubmitError::Commit(error) => not_committed(error),
        SubmitError::Log(reason) => not_written(&reason),
    }
}

/// A job was not changed.
pub(super) async fn not_changed(app: &App, error: ChangeError) -> Problem {
    let detail = sentence(&error.to_string());
    match error {
        ChangeError::NotFound { .. } | ChangeError::Forgotten { .. } => no_job(detail),
        ChangeError::Ended { job } => with_job(app, Problem::new(ErrorCode::JobEnded, detail), &job).await,
        ChangeError::NotEnded { job } => {
            with_job(app, Problem::new(ErrorCode::JobNotEnded, detail), &job).await
        }
        ChangeError::Submit(error) => not_submitted(app, error).await,
        ChangeError::Commit(error) => not_committed(error),
        ChangeError::Log(reason) => not_written(&reason),
    }
}

/// A wait for a job came to nothing.
pub(super) fn not_followed(id: JobId, end: FollowEnd) -> Problem {
    match end {
        FollowEnd::NotFound => not_found(id),
        FollowEnd::Cancelled(cause) => Problem::new(
            ErrorCode::ShuttingDown,
            format!("The daemon is shutting down ({cause})."),
        ),
        FollowEnd::Log(error) => read_failed(error),
    }
}

/// The problem with the job that it is about, as far as it can be read.
async fn with_job(app: &App, problem: Problem, job: &Job) -> Problem {
    match view(&app.jobs, &app.durable.machines, job).await {
        Ok(job) => problem.with_current(job),
        Err(_) => problem,
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

/// An error as a sentence.
fn sentence(error: &str) -> String {
    let mut characters = error.chars();
    let first = characters.next().map(char::to_uppercase);
    first
        .into_iter()
        .flatten()
        .chain(characters)
        .chain(['.'])
        .collect()
}
