//! What happens to the other children of a plan if the job of one child fails.

use jobs::{ChangeError, FailReason, Job, Jobs, ListQuery, Requested, State};
use kernel::Deadline;
use plans::{Plan, PlanError, PlanQuery};
use protocol::{IfChildFails, JobId, JobState, PlanId};

use super::jobs_slot::Watch;
use crate::jobs::{COMMAND, CommandPayload};

/// How many jobs or plans to read at a time.
const PAGE: u32 = 200;

/// Waits for the end of a job that ran in a plan. If it failed, and the plan has a parent that stops all children on a
/// failure, this cancels the jobs of the other children.
pub(super) fn watch_failure(watch: &Watch, plan: PlanId, job: JobId) {
    let own = watch.clone();
    watch.tasks.spawn("plan-children", async move {
        if let Err(error) = stop_others_after(&own, plan, job).await {
            tracing::warn!(%error, %plan, "the jobs of other children could not be stopped");
        }
    });
}

async fn stop_others_after(watch: &Watch, plan: PlanId, job: JobId) -> Result<(), PlanError> {
    let Some(jobs) = watch.jobs() else {
        return Ok(());
    };
    let Some(parent) = parent_that_stops(watch, plan).await? else {
        return Ok(());
    };
    // A failed attempt may be retried, so only the end of the job counts.
    let Ok(ended) = jobs.wait(job, &Deadline::never(), &watch.scope).await else {
        return Ok(());
    };
    match ended.record.state {
        // Its daemon ended. That says nothing about the work.
        State::Failed {
            reason: FailReason::Interrupted,
            ..
        } => return Ok(()),
        State::Failed { .. } => {}
        _ => return Ok(()),
    }
    let why = Requested {
        by: format!("the plan {parent}"),
        why: format!("{job} of the plan {plan} failed, and the others shall stop then"),
    };
    for child in children(watch, parent).await? {
        if child.id == plan {
            continue;
        }
        // Queued jobs first: one that is claimed in the meantime is found among the running ones. This asks
        // the jobs rather than the sandboxes, because a job that was just claimed hasn't entered its sandbox
        // yet.
        for state in [JobState::Queued, JobState::Running] {
            for job in jobs_in(&jobs, child.id, state).await? {
                cancel(&jobs, job, &why).await;
            }
        }
    }
    Ok(())
}

/// The parent of a plan, if it stops all children on a failure.
async fn parent_that_stops(watch: &Watch, plan: PlanId) -> Result<Option<PlanId>, PlanError> {
    let Some(parent) = watch.plans.get(plan).await?.record.facts.parent else {
        return Ok(None);
    };
    let facts = watch.plans.get(parent).await?.record.facts;
    Ok((facts.if_child_fails == IfChildFails::Stop).then_some(parent))
}

async fn children(watch: &Watch, parent: PlanId) -> Result<Vec<Plan>, PlanError> {
    let mut found: Vec<Plan> = Vec::new();
    loop {
        let page = watch.plans.list(PlanQuery {
            parent: Some(parent),
            states: vec![protocol::PlanState::Open, protocol::PlanState::Sealed],
            before: found.last().map(|plan| plan.id),
            limit: PAGE,
            ..PlanQuery::default()
        });
        let page = page.await?;
        let is_last = page.len() < PAGE as usize;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// Jobs in a state that are to run in a plan. The plan of a job is in its payload, so this reads every job; that
/// happens only after a failure.
async fn jobs_in(jobs: &Jobs, plan: PlanId, state: JobState) -> Result<Vec<JobId>, PlanError> {
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let page = jobs.list(ListQuery {
            state: Some(state),
            before,
            limit: PAGE,
        });
        let page = page.await?;
        for job in page.iter().filter(|job| *job.record.facts.handler == *COMMAND) {
            if is_in(jobs, job, plan).await? {
                found.push(job.id);
            }
        }
        before = page.last().map(|job| job.id);
        if page.len() < PAGE as usize {
            return Ok(found);
        }
    }
}

async fn is_in(jobs: &Jobs, job: &Job, plan: PlanId) -> Result<bool, PlanError> {
    let payload = jobs.payload(job.id).await?;
    let payload = payload.and_then(|payload| CommandPayload::decode(&payload).ok());
    Ok(payload.and_then(|payload| payload.plan_id()) == Some(plan))
}

async fn cancel(jobs: &Jobs, job: JobId, why: &Requested) {
    match jobs.cancel(job, why.clone()).await {
        Ok(_) | Err(ChangeError::Ended { .. } | ChangeError::NotFound { .. }) => {}
        Err(error) => tracing::warn!(%error, %job, "a job could not be cancelled"),
    }
}
