//! Checks: commands that must pass in a plan's sandbox before it can be applied. Each run is a job.
//!
//! The handler of the job reports the result of the check before the job ends. A job may never reach its handler,
//! because it was cancelled in the queue or lost its worker. The daemon that submitted the job watches it and reports
//! that, or the next daemon does. A check that isn't known to have passed has failed.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::SystemTime;

use jobs::{Ending, FollowEnd, Job, Lane, NewJob, State, SubmitError};
use kernel::Deadline;
use plans::{Actor, Check, CheckEnd, Plan, PlanError, PlanQuery, Plans};
use protocol::{CheckState, HomeId, JobId, PlanId};
use serde_json::Value;

use super::jobs_slot::Watch;
use crate::jobs::CommandPayload;

pub(crate) const CHECK: &str = "check";

/// The actor that reports the end of a check that didn't end on its own.
const NOBODY: &str = "the daemon";

/// How many plans to read at a time when a daemon starts.
const PAGE: u32 = 100;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The job of a check couldn't be submitted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The command of a check can't be serialized.
    #[error("the command cannot be written down: {0}")]
    Encode(#[from] serde_json::Error),
    #[error("the daemon is stopping")]
    Closing,
}

/// Which checks to run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Which {
    NotPassed,
    All,
}

/// Runs the checks of a plan, each as a job. A check that is already running continues.
///
/// *Cancel safety*: if dropped, some checks may run. Their results are reported all the same.
pub(crate) async fn run_checks(
    watch: &Watch,
    plan: PlanId,
    (by, home_id): (Actor, HomeId),
    which: Which,
) -> Result<Plan, CheckError> {
    let jobs = watch.jobs().ok_or(CheckError::Closing)?;
    let mut plan = settle_plan(watch, watch.plans.get(plan).await?).await?;
    for check in wanted(&plan, which) {
        let submitted = jobs.submit(job_of(&plan, &check, &by, home_id)?).await?;
        let job = submitted.job().id;
        plan = watch
            .plans
            .check_started(plan.id, Arc::clone(&by), check.clone(), job.to_string())
            .await?;
        follow(watch, plan.id, check, job);
    }
    Ok(plan)
}

/// Corrects checks that are recorded as running, when a daemon starts.
///
/// *Cancel safety*: if dropped, the rest is corrected the next time.
pub(crate) async fn settle_all(watch: Watch) {
    if let Err(error) = settle(&watch).await {
        tracing::warn!(%error, "the checks of plans are set right when they are next looked at");
    }
}

async fn settle(watch: &Watch) -> Result<(), PlanError> {
    let mut before = None;
    loop {
        let query = PlanQuery {
            states: vec![protocol::PlanState::Open, protocol::PlanState::Sealed],
            before,
            limit: PAGE,
            ..PlanQuery::default()
        };
        let page = watch.plans.list(query).await?;
        before = page.last().map(|plan| plan.id);
        let is_last = page.len() < PAGE as usize;
        for plan in page {
            let id = plan.id;
            let plan = match settle_plan(watch, plan).await {
                Ok(plan) => plan,
                Err(error) => {
                    tracing::warn!(%error, plan = %id, "the checks of a plan could not be set right");
                    continue;
                }
            };
            for (check, job) in running(&plan) {
                follow(watch, plan.id, check, job);
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Reports the results of checks that are recorded as running but have a finished job.
pub(super) async fn settle_plan(watch: &Watch, mut plan: Plan) -> Result<Plan, PlanError> {
    let Some(jobs) = watch.jobs() else {
        return Ok(plan);
    };
    for (check, job) in running(&plan) {
        let end = match jobs.get(job).await? {
            None => Some(failed("its job is gone")),
            Some(job) => end_of(&job),
        };
        if let Some(end) = end {
            plan = watch
                .plans
                .check_ended(plan.id, Actor::from(NOBODY), check, job.to_string(), end)
                .await?;
        }
    }
    Ok(plan)
}

/// Watches a job, and reports the result of its check if the handler hasn't.
fn follow(watch: &Watch, plan: PlanId, check: String, job: JobId) {
    let own = watch.clone();
    watch.tasks.spawn("check", async move {
        let Some(jobs) = own.jobs() else { return };
        let end = match jobs.wait(job, &Deadline::never(), &own.scope).await {
            Ok(job) => end_of(&job),
            Err(FollowEnd::NotFound) => Some(failed("its job is gone")),
            // The next daemon handles it.
            Err(FollowEnd::Cancelled(_) | FollowEnd::Log(_)) => None,
        };
        if let Some(end) = end {
            report(&own.plans, plan, Actor::from(NOBODY), check, job, end).await;
        }
    });
}

/// Reports the result of a check. If that isn't possible now, the next daemon does it.
pub(super) async fn report(plans: &Plans, plan: PlanId, by: Actor, check: String, job: JobId, end: CheckEnd) {
    match plans.check_ended(plan, by, check, job.to_string(), end).await {
        Ok(_) | Err(PlanError::Closing | PlanError::NotFound(_)) => {}
        Err(error) => tracing::warn!(%error, %plan, %job, "the end of a check could not be written down"),
    }
}

/// The checks that are recorded as running, and their jobs.
fn running(plan: &Plan) -> Vec<(String, JobId)> {
    let running = plan.record.checks.iter().filter_map(|check| {
        let run = check.run.as_ref().filter(|run| run.ended.is_none())?;
        Some((check.command.clone(), run.job.parse().ok()?))
    });
    running.collect()
}

fn wanted(plan: &Plan, which: Which) -> Vec<String> {
    let is_wanted = |check: &&Check| match check.state(plan.record.fingerprint) {
        CheckState::Running => false,
        CheckState::Passed => which == Which::All,
        CheckState::Missing | CheckState::Failed | CheckState::Outdated => true,
    };
    let wanted = plan.record.checks.iter().filter(is_wanted);
    wanted.map(|check| check.command.clone()).collect()
}

fn job_of(plan: &Plan, check: &str, by: &str, home_id: HomeId) -> Result<NewJob, CheckError> {
    let payload = CommandPayload::of_check(plan.id, &plan.record.facts.root, check);
    let title = format!("check: {}", payload.title());
    let mut new = NewJob::new(CHECK, &title, payload.encode()?, by);
    new.facts.home = Some(home_id.to_string().into());
    // One at a time: a check sees the plan as of its start, and no partial changes of another check.
    new.facts.lane = Some(Lane {
        name: Arc::from(format!("plan-check/{}", plan.id)),
        limit: NonZeroU16::MIN,
    });
    Ok(new)
}

fn end_of(job: &Job) -> Option<CheckEnd> {
    match &job.record.state {
        State::Queued { .. } | State::Running { .. } => None,
        State::Succeeded { ending } => Some(passed(&ending.result)),
        State::Cancelled { ending } => Some(failed(text_of(ending.as_ref(), "its job was cancelled"))),
        State::Failed { reason, ending } => {
            let otherwise = format!("its job failed: {}", reason.as_str().replace('_', " "));
            Some(failed(text_of(ending.as_ref(), &otherwise)))
        }
    }
}

fn text_of<'a>(ending: Option<&'a Ending>, otherwise: &'a str) -> &'a str {
    let text = ending.map(|ending| ending.text.as_str());
    text.filter(|text| !text.is_empty()).unwrap_or(otherwise)
}

/// A check that passed. If it changed files of the plan, it is already outdated, and the text says so.
pub(super) fn passed(result: &Value) -> CheckEnd {
    let text = match result["files"].as_u64() {
        None | Some(0) => String::new(),
        Some(1) => "it changed a file of the plan itself, so it has to run again".to_owned(),
        Some(files) => format!("it changed {files} files of the plan itself, so it has to run again"),
    };
    ended(true, text)
}

/// A check that isn't known to have passed.
pub(super) fn failed(text: &str) -> CheckEnd {
    ended(false, text.to_owned())
}

fn ended(passed: bool, text: String) -> CheckEnd {
    CheckEnd {
        passed,
        text,
        at: eventlog::UnixMs::from(SystemTime::now()),
    }
}
