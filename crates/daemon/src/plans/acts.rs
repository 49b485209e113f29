//! What changes workspaces, and takes long enough to be measured.

use std::time::Duration;

use jobs::Requested;
use kernel::{Deadline, JobId, PlanId};
use plans::{
    Actor, ApplyOrder, CalledOff, Collected, Forgotten, GcPolicy, Outcome, OutcomeKind, Plan, PlanError, Run,
    Running, Unapplied, UndoOrder,
};

use crate::app::App;
use crate::metrics::Attempted;

/// How long jobs may take to end that are cancelled because their plan is discarded.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Applies plans, all of them or none.
///
/// *Cancel safety*: dropped half-way, it goes on and is not counted.
pub(crate) async fn apply(app: &App, order: ApplyOrder) -> Result<Outcome, PlanError> {
    let (by, plans) = (order.by.clone(), order.plans.clone());
    let outcome = measured(app, Attempted::Apply, app.plans.apply(order)).await;
    if let Ok(outcome) = &outcome {
        tracing::info!(%by, ?plans, outcome = ?outcome.kind, paths = outcome.paths.len(), "plans were to be applied");
    }
    outcome
}

/// Takes an applied plan back, or one changeset of it.
///
/// *Cancel safety*: dropped half-way, it goes on and is not counted.
pub(crate) async fn undo(app: &App, order: UndoOrder) -> Result<Outcome, PlanError> {
    let (by, plan) = (order.by.clone(), order.plan);
    let outcome = measured(app, Attempted::Undo, app.plans.undo(order)).await;
    if let Ok(outcome) = &outcome {
        tracing::info!(%by, %plan, outcome = ?outcome.kind, paths = outcome.paths.len(), "a plan was to be taken back");
    }
    outcome
}

/// Gives a plan up. If its work is given up too, jobs that run in its sandbox are cancelled first, and what they changed is not
/// recorded any more.
///
/// *Cancel safety*: dropped half-way, jobs may have been cancelled.
pub(crate) async fn discard(
    app: &App,
    plan: PlanId,
    by: Actor,
    seen: Option<u64>,
    work: Unapplied,
) -> Result<Plan, PlanError> {
    let _called_off = match work {
        Unapplied::Keep => None,
        Unapplied::GiveUp => Some(stop_commands(app, plan, &by).await?),
    };
    app.plans.discard(plan, by, seen, work).await
}

/// Cancels the jobs that run in the sandbox of a plan and waits for their end. One that does not end is in the way, and the
/// plan says so.
async fn stop_commands(app: &App, plan: PlanId, by: &Actor) -> Result<CalledOff, PlanError> {
    let called_off = app.plans.call_off_captures(plan);
    let running = app.plans.get(plan).await?.record.running;
    let of_job = |running: &Running| running.job.as_deref().and_then(|job| job.parse().ok());
    let jobs: Vec<JobId> = running.iter().filter_map(of_job).collect();
    let deadline = Deadline::after(&app.clock, STOP_LIMIT);
    for job in &jobs {
        let why = Requested {
            by: by.to_string(),
            why: format!("the plan {plan} is being discarded"),
        };
        if let Err(error) = app.jobs.cancel(*job, why).await {
            tracing::debug!(%job, %error, "a job of a discarded plan was not cancelled");
        }
    }
    for job in jobs {
        if let Err(error) = app.jobs.wait(job, &deadline, &app.life.scope()).await {
            tracing::debug!(%job, %error, "a job of a discarded plan did not end");
        }
    }
    Ok(called_off)
}

/// Moves an open plan to the workspace's present state.
///
/// *Cancel safety*: dropped half-way, it may or may not have been done, and is not counted.
pub(crate) async fn refresh(
    app: &App,
    plan: PlanId,
    by: Actor,
    seen: Option<u64>,
) -> Result<Outcome, PlanError> {
    measured(app, Attempted::Refresh, app.plans.refresh(plan, by, seen)).await
}

/// Takes sandboxes away that nobody needs.
///
/// *Cancel safety*: dropped half-way, some may be gone.
pub(crate) async fn collect(app: &App, older_than: Duration, run: Run) -> Result<Collected, PlanError> {
    let collected = app.plans.collect(GcPolicy { older_than, run }).await?;
    if run == Run::Real {
        let (sandboxes, bytes) = (collected.sandboxes.len(), collected.bytes);
        tracing::info!(sandboxes, bytes, "sandboxes that nobody needs were taken away");
    }
    Ok(collected)
}

/// Forgets a plan that is over, for good.
///
/// *Cancel safety*: dropped half-way, it can be forgotten again.
pub(crate) async fn forget(
    app: &App,
    plan: PlanId,
    by: Actor,
    seen: Option<u64>,
) -> Result<Forgotten, PlanError> {
    let forgotten = app.plans.forget(plan, by.clone(), seen).await?;
    tracing::info!(%by, %plan, bytes = forgotten.bytes, "a plan was forgotten");
    Ok(forgotten)
}

async fn measured(
    app: &App,
    what: Attempted,
    act: impl Future<Output = Result<Outcome, PlanError>>,
) -> Result<Outcome, PlanError> {
    let start = app.clock.now();
    let outcome = act.await;
    let elapsed = app.clock.now().saturating_duration_since(start);
    let kind = outcome.as_ref().map(|outcome| outcome.kind).ok();
    if kind != Some(OutcomeKind::WouldBeDone) {
        app.metrics.plans.attempted(what, kind, elapsed);
    }
    outcome
}
