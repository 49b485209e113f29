//! The operations on jobs: one function for each, shared by HTTP, MCP and the page.

use std::sync::Arc;
use std::time::Duration;

use eventlog::Sequence;
use jobs::{Job, ListQuery, Requested, Submitted};
use kernel::Deadline;
use protocol::{CancelJob, FinishThen, JobId, JobList, JobSubmitted, PlanId, SubmitJob};

use super::wire::{self, invalid, to_new_job, view};
use crate::app::App;
use crate::http::Problem;
use crate::http::caller::Caller;
use crate::http::consent::{may_apply, may_change_workspace};
use crate::http::jobs::output::{KeptOutput, OutputForm};
use crate::http::jobs::problems::{not_followed, not_found};
use crate::plans::{acts as plans, submit_in_new_plan};

/// The longest reason for a cancellation. It is stored in the job.
const WHY_LIMIT_CHARACTERS: usize = 1000;

/// Submits a job. When this returns, the job is on disk. With `open`, it also opens a plan for the job.
pub(crate) async fn submit(
    app: &Arc<App>,
    caller: &Caller,
    mut request: SubmitJob,
) -> Result<JobSubmitted, Problem> {
    may_submit(app, caller, &request).await?;
    let (submitted, plan) = match request.open.take() {
        Some(open) => {
            let submitted = submit_in_new_plan(app, open, request, caller.by(), caller.started_for).await?;
            let plan = plans::shown(app, &submitted.0).await?;
            (submitted.1, Some(Box::new(plan)))
        }
        None => {
            let place = (&app.durable.log, app.durable.home_id);
            let new = to_new_job(request, &caller.actor, caller.started_for, place, &app.plans).await?;
            (app.environments.submit(&app.jobs, new).await?, None)
        }
    };
    Ok(JobSubmitted {
        known: matches!(submitted, Submitted::Known(_)),
        job: shown(app, submitted.job()).await?,
        plan,
    })
}

/// Refuses a job that would change the user's files if its caller may not do that.
async fn may_submit(app: &App, caller: &Caller, request: &SubmitJob) -> Result<(), Problem> {
    let finish = request.finish.as_ref();
    let is_applied = finish.is_some_and(|finish| finish.then == FinishThen::Apply);
    match (&request.command.plan, &request.open) {
        (Some(_), Some(_)) => Err(invalid("open", "cannot be given together with `command.plan`")),
        (None, None) => may_change_workspace(app, caller.peer).await,
        // Applying the plan at the end changes the user's files as well. An invalid id is refused later.
        (Some(id), None) if is_applied => {
            let plan: Option<PlanId> = id.parse().ok();
            may_apply(app, caller.peer, plan.as_slice()).await
        }
        (None, Some(open)) if is_applied && open.parent.is_none() => {
            may_change_workspace(app, caller.peer).await
        }
        (Some(_), None) | (None, Some(_)) => Ok(()),
    }
}

/// The response for a job.
pub(crate) async fn shown(app: &App, job: &Job) -> Result<protocol::Job, Problem> {
    Ok(view(&app.jobs, &app.durable.machines, job).await?)
}

pub(crate) async fn find(app: &App, id: JobId) -> Result<Job, Problem> {
    app.jobs.get(id).await?.ok_or_else(|| not_found(id))
}

/// Shows a job. With a time to wait, returns once the job has ended or the time has passed.
pub(crate) async fn show(app: &App, id: JobId, wait: Option<Duration>) -> Result<protocol::Job, Problem> {
    let job = match wait {
        None => find(app, id).await?,
        Some(wait) => {
            let deadline = Deadline::after(&app.clock, wait);
            let ended = app.jobs.wait(id, &deadline, &app.life.scope()).await;
            ended.map_err(|end| not_followed(id, end))?
        }
    };
    shown(app, &job).await
}

/// Jobs, newest first.
pub(crate) async fn list(app: &App, query: ListQuery) -> Result<JobList, Problem> {
    Ok(wire::list(&app.jobs, &app.durable.machines, query).await?)
}

/// The output of a job so far, from a position on.
pub(crate) async fn output(
    app: &App,
    id: JobId,
    after: Sequence,
    form: OutputForm,
) -> Result<KeptOutput, Problem> {
    find(app, id).await?;
    let until = app.jobs.output_summary(id).await?.last_sequence;
    let tail = app.jobs.follow(id, after, &app.life.scope());
    Ok(KeptOutput::new(tail, after, until, form))
}

/// Requests the cancellation of a job. Idempotent.
pub(crate) async fn cancel(
    app: &App,
    caller: &Caller,
    id: JobId,
    request: CancelJob,
) -> Result<protocol::Job, Problem> {
    if request.why.chars().count() > WHY_LIMIT_CHARACTERS {
        let why = format!("has more than {WHY_LIMIT_CHARACTERS} characters");
        return Err(invalid("why", &why));
    }
    let requested = Requested {
        by: caller.actor.clone(),
        why: request.why,
    };
    let job = app.jobs.cancel(id, requested).await?;
    tracing::info!(job = %id, "a job is to be cancelled");
    shown(app, &job).await
}
