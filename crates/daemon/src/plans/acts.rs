//! What changes workspaces, and takes long enough to be measured.

use std::sync::Arc;
use std::time::Duration;

use ::sessions::{SessionError, SessionQuery};
use jobs::Requested;
use kernel::Deadline;
use machines::{Presence, presence};
use plans::{
    Actor, ApplyRequest, Attempt, CaptureHold, Forgotten, GcPolicy, LandingOutcome, Plan, PlanError, Run,
    Running, Unapplied, UndoRequest,
};
use protocol::{JobId, OutcomeKind, PlanId, PlansCollected, SessionState, TurnError};

use crate::app::App;

/// How long turns and jobs may take to end that are cancelled because their plan is discarded.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// Applies plans, all of them or none.
///
/// *Cancel safety*: dropped half-way, it goes on and is not counted.
pub(crate) async fn apply(app: &App, order: ApplyRequest) -> Result<LandingOutcome, PlanError> {
    let (by, plans) = (order.by.clone(), order.plans.clone());
    let outcome = measured(app, Attempt::Apply, app.plans.apply(order)).await;
    if let Ok(outcome) = &outcome {
        tracing::info!(%by, ?plans, outcome = ?outcome.kind, paths = outcome.paths.len(), "plans were to be applied");
    }
    outcome
}

/// Takes an applied plan back, or one changeset of it.
///
/// *Cancel safety*: dropped half-way, it goes on and is not counted.
pub(crate) async fn undo(app: &App, order: UndoRequest) -> Result<LandingOutcome, PlanError> {
    let (by, plan) = (order.by.clone(), order.plan);
    let outcome = measured(app, Attempt::Undo, app.plans.undo(order)).await;
    if let Ok(outcome) = &outcome {
        tracing::info!(%by, %plan, outcome = ?outcome.kind, paths = outcome.paths.len(), "a plan was to be taken back");
    }
    outcome
}

/// Gives a plan up. If its work is given up too, the turns and jobs that run in its sandbox are cancelled first, and what they
/// changed is not recorded any more; then it may also be a plan of a machine that is gone.
///
/// *Cancel safety*: dropped half-way, turns and jobs may have been cancelled.
pub(crate) async fn discard(
    app: &App,
    plan: PlanId,
    by: Actor,
    seen: Option<u64>,
    work: Unapplied,
) -> Result<Plan, PlanError> {
    let _called_off = match work {
        Unapplied::Keep => None,
        Unapplied::GiveUp => Some(stop_everything(app, plan, &by).await?),
    };
    match app.plans.discard(plan, by.clone(), seen, work).await {
        Err(PlanError::Elsewhere { home, .. })
            if work == Unapplied::GiveUp
                && presence(&app.durable.log, home, app.boot_id).await? == Presence::Gone =>
        {
            app.plans.discard_of_gone(plan, by, seen).await
        }
        discarded => discarded,
    }
}

/// Cancels whatever works in the sandbox of a plan and waits for its end. What doesn't end is in the way, and the plan says so.
async fn stop_everything(app: &App, plan: PlanId, by: &Actor) -> Result<CaptureHold, PlanError> {
    let called_off = app.plans.hold_captures(plan);
    let deadline = Deadline::after(&app.clock, STOP_LIMIT);
    // Turns first: they start jobs.
    if let Err(error) = stop_turns(app, plan, by, &deadline).await {
        tracing::warn!(%plan, %error, "the turns that work in a discarded plan were not all cancelled");
    }
    stop_jobs(app, plan, by, &deadline).await?;
    Ok(called_off)
}

/// Cancels the turns that work in a plan and waits for their end, which is when their agent's processes are gone.
async fn stop_turns(app: &App, plan: PlanId, by: &Actor, deadline: &Deadline) -> Result<(), SessionError> {
    let mut turns = Vec::new();
    for state in [
        SessionState::Running,
        SessionState::Asking,
        SessionState::Stopping,
    ] {
        let mut before = None;
        loop {
            let query = SessionQuery {
                state: Some(state),
                directory: None,
                before,
                limit: 0,
            };
            let sessions = app.sessions.list(query).await?;
            let Some(last) = sessions.last() else { break };
            before = Some(last.id);
            let here = sessions
                .iter()
                .filter(|session| session.record.plan == Some(plan));
            turns.extend(here.filter_map(|session| Some((session.id, session.record.active.as_ref()?.turn))));
        }
    }
    for (session, turn) in &turns {
        let because = TurnError {
            code: "plan_discarded".to_owned(),
            text: format!("the plan {plan} was discarded while the agent worked in it"),
        };
        let cancelled = app
            .sessions
            .cancel_turn_because(*session, *turn, Arc::clone(by), because);
        match cancelled.await {
            // It has ended by itself.
            Ok(_) | Err(SessionError::TurnNotActive { .. } | SessionError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    for (_, turn) in turns {
        app.sessions.wait(turn, deadline, &app.life.scope()).await?;
    }
    Ok(())
}

/// Cancels the jobs that run in the sandbox of a plan and waits for their end.
async fn stop_jobs(app: &App, plan: PlanId, by: &Actor, deadline: &Deadline) -> Result<(), PlanError> {
    let running = app.plans.get(plan).await?.record.running;
    let of_job = |running: &Running| running.job.as_deref().and_then(|job| job.parse().ok());
    let jobs: Vec<JobId> = running.iter().filter_map(of_job).collect();
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
        if let Err(error) = app.jobs.wait(job, deadline, &app.life.scope()).await {
            tracing::debug!(%job, %error, "a job of a discarded plan did not end");
        }
    }
    Ok(())
}

/// Moves an open plan to the workspace's present state.
///
/// *Cancel safety*: dropped half-way, it may or may not have been done, and is not counted.
pub(crate) async fn refresh(
    app: &App,
    plan: PlanId,
    by: Actor,
    seen: Option<u64>,
) -> Result<LandingOutcome, PlanError> {
    measured(app, Attempt::Refresh, app.plans.refresh(plan, by, seen)).await
}

/// Takes sandboxes away that nobody needs.
///
/// *Cancel safety*: dropped half-way, some may be gone.
pub(crate) async fn collect(app: &App, older_than: Duration, run: Run) -> Result<PlansCollected, PlanError> {
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
    what: Attempt,
    act: impl Future<Output = Result<LandingOutcome, PlanError>>,
) -> Result<LandingOutcome, PlanError> {
    let start = app.clock.now();
    let outcome = act.await;
    let elapsed = app.clock.now().saturating_duration_since(start);
    let kind = outcome.as_ref().map(|outcome| outcome.kind).ok();
    if kind != Some(OutcomeKind::WouldBeDone) {
        app.metrics.plans.attempted(what, kind, elapsed);
    }
    outcome
}
