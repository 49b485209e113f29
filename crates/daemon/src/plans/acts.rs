//! The operations on plans: one function for each, shared by HTTP, MCP and the page. They take and return the types of
//! `protocol`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::sessions::{SessionError, SessionQuery};
use jobs::Requested;
use kernel::Deadline;
use machines::{Presence, presence};
use plans::{
    Actor, ApplyRequest, Attempt, Attribution, CaptureHold, GcPolicy, LandingOutcome, Opened, Plan,
    PlanError, PlanQuery, RelPath, Run, Running, Unapplied, UndoRequest,
};
use protocol::{
    ApplyPlans, ChangeFiles, ChangePlan, ChangesetId, ChangesetList, CheckPlan, CollectPlans, FilesChanged,
    ForgetPlan, JobId, OpenPlan, OutcomeKind, PlanDiff, PlanFile, PlanForgotten, PlanId, PlanList,
    PlanOutcome, PlansCollected, SessionState, StartChangeset, TurnError, UndoPlan,
};

use super::checks::{Which, run_checks};
use super::diff;
use super::wire::{self, changeset_to_wire, recorded_to_wire};
use crate::app::App;
use crate::http::Problem;
use crate::http::caller::Caller;
use crate::http::consent::may_apply;
use crate::http::ids::id_of;

/// How long to wait for turns and jobs to end that are cancelled because their plan is discarded.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// How long sandboxes of finished plans are kept by default.
const USUAL_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Opens a plan. A second request with the same idempotency key returns the same plan.
pub(crate) async fn open(app: &App, caller: &Caller, request: OpenPlan) -> Result<Opened, Problem> {
    let new = wire::to_new_plan(request, &caller.actor)?;
    Ok(app.plans.open_plan(new).await?)
}

pub(crate) async fn show(app: &App, id: PlanId) -> Result<protocol::Plan, Problem> {
    shown(app, &app.plans.get(id).await?).await
}

/// The response for a plan.
pub(crate) async fn shown(app: &App, plan: &Plan) -> Result<protocol::Plan, Problem> {
    Ok(wire::show(&app.plans, &app.durable.machines, plan).await?)
}

/// Plans, newest first; with a directory, only those of the workspace that contains it.
pub(crate) async fn list(
    app: &App,
    mut query: PlanQuery,
    directory: Option<&Path>,
) -> Result<PlanList, Problem> {
    if let Some(directory) = directory {
        let found = wire::workspace_of(&app.plans, directory).await?;
        match (found.map(|workspace| workspace.id), query.workspace) {
            (Some(found), None) => query.workspace = Some(found),
            (Some(found), Some(wanted)) if found == wanted => {}
            _ => {
                return Ok(PlanList {
                    plans: Vec::new(),
                    next_before: None,
                });
            }
        }
    }
    Ok(wire::list(&app.plans, &app.durable.machines, query).await?)
}

/// The entry at a path of a plan's sandbox; an empty path is its root.
pub(crate) async fn read_file(app: &App, id: PlanId, text: &str) -> Result<PlanFile, Problem> {
    let path: Option<RelPath> = match text {
        "" => None,
        text => Some(
            text.parse()
                .map_err(|bad| Problem::from(PlanError::BadPath(bad)).in_field("path"))?,
        ),
    };
    let found = app.plans.read_file(id, path).await?;
    Ok(wire::file_to_wire(text, found))
}

/// The changes of a whole plan, or of one of its changesets.
pub(crate) async fn diff(
    app: &App,
    plan: PlanId,
    changeset: Option<ChangesetId>,
) -> Result<PlanDiff, Problem> {
    Ok(diff::diff(&app.plans, plan, changeset).await?)
}

/// The same as a patch that `git apply` takes.
pub(crate) async fn patch(
    app: &App,
    plan: PlanId,
    changeset: Option<ChangesetId>,
) -> Result<Vec<u8>, Problem> {
    Ok(diff::patch(&app.plans, plan, changeset).await?)
}

/// Writes to the sandbox of a plan, in order. If a write fails, those before it stay and are recorded.
pub(crate) async fn change_files(
    app: &App,
    caller: &Caller,
    id: PlanId,
    request: ChangeFiles,
) -> Result<FilesChanged, Problem> {
    let order = plans::ChangeFiles {
        by: caller.by(),
        changeset: request.changeset.as_deref().map(id_of).transpose()?,
        tool: wire::tool_of(request.tool)?,
        reason: wire::reason_of(request.reason)?,
        operations: wire::operations_of(request.operations)?,
    };
    let changed = app.plans.change_files(id, order).await?;
    if let Some(error) = changed.stopped_by {
        let problem = Problem::from(error);
        return Err(match changed.changes.len() {
            0 => problem,
            1 => problem.and("What came before it was done: 1 change is recorded."),
            done => problem.and(&format!(
                "What came before it was done: {done} changes are recorded."
            )),
        });
    }
    Ok(FilesChanged {
        changeset: changed.changeset.to_string(),
        changes: changed.changes.iter().map(recorded_to_wire).collect(),
    })
}

/// The changesets of a plan, oldest first, without their changes.
pub(crate) async fn changesets(app: &App, id: PlanId) -> Result<ChangesetList, Problem> {
    let changesets = app.plans.changesets(id).await?;
    Ok(ChangesetList {
        changesets: changesets.iter().map(changeset_to_wire).collect(),
    })
}

/// Starts a changeset, which becomes the caller's current one in the same step.
pub(crate) async fn start_changeset(
    app: &App,
    caller: &Caller,
    id: PlanId,
    request: StartChangeset,
) -> Result<protocol::Changeset, Problem> {
    let new = Attribution {
        actor: caller.by(),
        tool: wire::tool_of(request.tool)?,
        reason: wire::reason_of(request.reason)?,
        job: None,
    };
    Ok(changeset_to_wire(&app.plans.start_changeset(id, new).await?))
}

/// Runs the checks of a plan as jobs. If the request names further checks, adds them first.
///
/// *Cancel safety*: if dropped, some checks may run. Their results are reported all the same.
pub(crate) async fn check(
    app: &App,
    caller: &Caller,
    id: PlanId,
    request: CheckPlan,
) -> Result<protocol::Plan, Problem> {
    let added = wire::checked_checks("add", request.add)?;
    if !added.is_empty() {
        app.plans.add_checks(id, added).await?;
    }
    let which = match request.all {
        true => Which::All,
        false => Which::NotPassed,
    };
    let plan = run_checks(&app.plan_watch, id, (caller.by(), app.durable.home_id), which).await?;
    shown(app, &plan).await
}

/// Marks the work as done. The plan waits to be applied or discarded; further work in it reopens it.
pub(crate) async fn seal(
    app: &App,
    caller: &Caller,
    id: PlanId,
    request: ChangePlan,
) -> Result<protocol::Plan, Problem> {
    let plan = app.plans.seal(id, caller.by(), request.version).await?;
    shown(app, &plan).await
}

/// Applies plans, all of them or none.
///
/// *Cancel safety*: if dropped, it still runs to its end, but isn't counted.
pub(crate) async fn apply(app: &App, caller: &Caller, request: ApplyPlans) -> Result<PlanOutcome, Problem> {
    let plans = wire::plans_of(&request.plans)?;
    if !request.dry_run {
        may_apply(app, caller.peer, &plans).await?;
    }
    let order = ApplyRequest {
        plans: plans.clone(),
        seen: wire::seen_in(&request)?,
        by: caller.by(),
        run: wire::run_of(request.dry_run),
        commit: request.commit.map(wire::checked_message).transpose()?,
    };
    let outcome = measured(app, Attempt::Apply, app.plans.apply(order)).await?;
    let by = &caller.actor;
    tracing::info!(%by, ?plans, outcome = ?outcome.kind, paths = outcome.paths.len(), "plans were to be applied");
    outcome_shown(app, &outcome).await
}

/// Undoes an applied plan, or one of its changesets.
///
/// *Cancel safety*: if dropped, it still runs to its end, but isn't counted.
pub(crate) async fn undo(
    app: &App,
    caller: &Caller,
    plan: PlanId,
    request: UndoPlan,
) -> Result<PlanOutcome, Problem> {
    if !request.dry_run {
        may_apply(app, caller.peer, &[plan]).await?;
    }
    let order = UndoRequest {
        plan,
        changeset: request.changeset.as_deref().map(id_of).transpose()?,
        seen: request.version,
        by: caller.by(),
        run: wire::run_of(request.dry_run),
    };
    let outcome = measured(app, Attempt::Undo, app.plans.undo(order)).await?;
    let by = &caller.actor;
    tracing::info!(%by, %plan, outcome = ?outcome.kind, paths = outcome.paths.len(), "a plan was to be taken back");
    outcome_shown(app, &outcome).await
}

/// Moves an open plan to the workspace's present state.
///
/// *Cancel safety*: if dropped, it may or may not have been done, and isn't counted.
pub(crate) async fn refresh(
    app: &App,
    caller: &Caller,
    plan: PlanId,
    request: ChangePlan,
) -> Result<PlanOutcome, Problem> {
    let refreshing = app.plans.refresh(plan, caller.by(), request.version);
    let outcome = measured(app, Attempt::Refresh, refreshing).await?;
    outcome_shown(app, &outcome).await
}

async fn outcome_shown(app: &App, outcome: &LandingOutcome) -> Result<PlanOutcome, Problem> {
    Ok(wire::outcome_to_wire(&app.plans, &app.durable.machines, outcome).await?)
}

/// Discards a plan. If its work is discarded too, this first cancels the turns and jobs that run in its sandbox, and
/// their changes are no longer recorded. In that case the plan may also belong to a machine that no longer exists.
///
/// *Cancel safety*: if dropped, turns and jobs may have been cancelled.
pub(crate) async fn discard(
    app: &App,
    caller: &Caller,
    plan: PlanId,
    request: ChangePlan,
) -> Result<protocol::Plan, Problem> {
    let (by, seen, work) = (
        caller.by(),
        request.version,
        wire::unapplied_of(request.even_with_work),
    );
    let _called_off = match work {
        Unapplied::Keep => None,
        Unapplied::GiveUp => Some(stop_everything(app, plan, &by).await?),
    };
    let discarded = match app.plans.discard(plan, by.clone(), seen, work).await {
        Err(PlanError::Elsewhere { home, .. })
            if work == Unapplied::GiveUp
                && presence(&app.durable.log, home, app.boot_id).await? == Presence::Gone =>
        {
            app.plans.discard_of_gone(plan, by, seen).await?
        }
        discarded => discarded?,
    };
    shown(app, &discarded).await
}

/// Cancels all work in the sandbox of a plan and waits for it to end. If something doesn't end, discarding the plan
/// reports it.
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

/// Cancels the turns that work in a plan and waits until they have ended and their agents' processes are gone.
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
            // It has ended on its own.
            Ok(_) | Err(SessionError::TurnNotActive { .. } | SessionError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    for (_, turn) in turns {
        app.sessions.wait(turn, deadline, &app.life.scope()).await?;
    }
    Ok(())
}

/// Cancels the jobs that run in the sandbox of a plan and waits for them to end.
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

/// Removes sandboxes that are no longer needed.
///
/// *Cancel safety*: if dropped, some may be removed.
pub(crate) async fn collect(app: &App, request: CollectPlans) -> Result<PlansCollected, Problem> {
    let older_than = request.older_than_ms.map_or(USUAL_AGE, Duration::from_millis);
    let run = wire::run_of(request.dry_run);
    let collected = app.plans.collect(GcPolicy { older_than, run }).await?;
    if run == Run::Real {
        let (sandboxes, bytes) = (collected.sandboxes.len(), collected.bytes);
        tracing::info!(sandboxes, bytes, "sandboxes that nobody needs were taken away");
    }
    Ok(collected)
}

/// Forgets a finished plan permanently.
///
/// *Cancel safety*: if dropped, it can be repeated.
pub(crate) async fn forget(
    app: &App,
    caller: &Caller,
    plan: PlanId,
    request: ForgetPlan,
) -> Result<PlanForgotten, Problem> {
    let forgotten = app.plans.forget(plan, caller.by(), request.version).await?;
    let by = &caller.actor;
    tracing::info!(%by, %plan, bytes = forgotten.bytes, "a plan was forgotten");
    Ok(PlanForgotten {
        plan: plan.to_string(),
        bytes: forgotten.bytes,
    })
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
