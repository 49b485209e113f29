//! Runs a command in its own plan: creates both, or neither.
//!
//! The plan names its job before the job is submitted. A daemon that dies in between leaves a plan without its job, and
//! the next daemon forgets that plan.

use std::sync::Arc;

use jobs::{Jobs, Submitted};
use plans::{Actor, NewPlan, Plan, PlanError, PlanQuery, Plans, Unapplied};
use protocol::{ErrorCode, HomeId, JobId, OpenPlan, PlanState, SubmitJob};

use super::wire::to_new_plan;
use crate::app::App;
use crate::http::Problem;
use crate::http::consent::StartedFor;
use crate::jobs::wire::to_new_job;

/// The actor that forgets a plan without a job.
const DAEMON: &str = "daemon";
/// How many plans are listed at a time.
const PAGE: u32 = 200;

/// Opens a plan and submits a command to run in it. A second request with the same idempotency key returns the same
/// plan and job.
///
/// *Cancel safety*: if dropped, it still runs to its end.
pub(crate) async fn submit_in_new_plan(
    app: &Arc<App>,
    open: OpenPlan,
    request: SubmitJob,
    by: Actor,
    started_for: StartedFor,
) -> Result<(Plan, Submitted), Problem> {
    let own = Arc::clone(app);
    let work = async move {
        let (plan, opened) = open_for_command(&own, open, request.idempotency_key.clone(), &by).await?;
        if let Opened::Before(job) = opened {
            return Ok((plan, Submitted::Known(*job)));
        }
        match submit(&own, &plan, request, &by, started_for).await {
            Ok(submitted) => Ok((plan, submitted)),
            Err(NotSubmitted::Surely(problem)) => {
                if let Opened::Now = opened {
                    give_back(&own.plans, &plan).await;
                }
                Err(problem)
            }
            // A retry with the same key finds the plan; without a key, the next start forgets it.
            Err(NotSubmitted::Perhaps(problem)) => Err(problem),
        }
    };
    let done = app
        .plan_watch
        .tasks
        .to_the_end("a command in a new plan", work)
        .await;
    done.unwrap_or_else(|| {
        Err(Problem::new(
            ErrorCode::ShuttingDown,
            "The daemon takes no more jobs.",
        ))
    })
}

/// Whether the plan existed before, and its job with it.
enum Opened {
    Now,
    Before(Box<jobs::Job>),
    /// Another request with the same key is in progress. Both submit the same job, and the log accepts one of them.
    Beside,
    /// Its job was never submitted, so the plan was discarded.
    GivenBack,
}

async fn open_for_command(
    app: &App,
    open: OpenPlan,
    key: Option<String>,
    by: &Actor,
) -> Result<(Plan, Opened), Problem> {
    let open = OpenPlan {
        idempotency_key: key,
        ..open
    };
    let new = to_new_plan(open, by).map_err(|problem| problem.below("open"))?;
    let mut opened = open_once(app, &new).await?;
    if let (plan, Opened::GivenBack) = &opened {
        // An earlier request with the same key could neither submit its command nor forget its plan.
        app.plans.forget(plan.id, Arc::from(DAEMON), None).await?;
        opened = open_once(app, &new).await?;
    }
    Ok(opened)
}

async fn open_once(app: &App, new: &NewPlan) -> Result<(Plan, Opened), Problem> {
    let job = JobId::generate().to_string();
    let opened = app.plans.open_plan_for(new.clone(), job).await?;
    let plan = opened.plan;
    if !opened.known {
        return Ok((plan, Opened::Now));
    }
    let Some(job) = job_of(&plan) else {
        // It was opened for something else.
        return Err(PlanError::KeyReused(plan.id).into());
    };
    match app.jobs.get(job).await? {
        Some(job) => Ok((plan, Opened::Before(Box::new(job)))),
        None if plan.record.state == PlanState::Discarded => Ok((plan, Opened::GivenBack)),
        None => Ok((plan, Opened::Beside)),
    }
}

fn job_of(plan: &Plan) -> Option<JobId> {
    plan.record.facts.command.as_ref()?.parse().ok()
}

/// Why a command wasn't submitted, as far as is known.
enum NotSubmitted {
    Surely(Problem),
    /// The log's answer was lost: the job may exist, and run.
    Perhaps(Problem),
}

async fn submit(
    app: &App,
    plan: &Plan,
    mut request: SubmitJob,
    by: &Actor,
    started_for: StartedFor,
) -> Result<Submitted, NotSubmitted> {
    app.kill.reached("Submitting");
    let sandbox = app.plans.sandbox_root(plan);
    let is_inside = [plan.record.facts.root.as_path(), sandbox.as_path()]
        .iter()
        .any(|root| std::path::Path::new(&request.command.directory).starts_with(root));
    if !is_inside {
        request.command.directory = sandbox.display().to_string();
    }
    request.command.plan = Some(plan.id.to_string());
    let place = (&app.durable.log, app.durable.home_id);
    let new = to_new_job(request, by, started_for, place, &app.plans).await;
    let mut new = new.map_err(NotSubmitted::Surely)?;
    let id = job_of(plan).unwrap_or(new.job.id);
    new.job.id = id;
    match app.environments.submit(&app.jobs, new).await {
        Ok(submitted) => Ok(submitted),
        Err(error) => match app.jobs.get(id).await {
            Ok(Some(job)) => Ok(Submitted::Known(job)),
            Ok(None) if !error.may_be_taken() => Err(NotSubmitted::Surely(Problem::from(error))),
            Ok(None) => Err(NotSubmitted::Perhaps(Problem::from(error))),
            Err(unread) => Err(NotSubmitted::Perhaps(Problem::from(unread))),
        },
    }
}

/// Removes a plan after its command couldn't be submitted. Nothing has happened in it.
async fn give_back(plans: &Plans, plan: &Plan) {
    let by: Actor = Arc::from(DAEMON);
    let discarded = plans
        .discard(plan.id, Arc::clone(&by), None, Unapplied::Keep)
        .await;
    let forgotten = match discarded {
        Ok(_) => plans.forget(plan.id, by, None).await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = forgotten {
        tracing::warn!(plan = %plan.id, %error, "a plan whose command was not submitted stays");
    }
}

/// The open plans for commands of this home that have no work in them.
pub(crate) async fn untouched(plans: &Plans, home: HomeId) -> Result<Vec<Plan>, PlanError> {
    let (mut untouched, mut before) = (Vec::new(), None);
    loop {
        let open = plans
            .list(PlanQuery {
                workspace: None,
                parent: None,
                states: vec![PlanState::Open],
                before,
                limit: PAGE,
            })
            .await?;
        before = open.last().map(|last| last.id);
        let is_last = open.len() < PAGE as usize;
        untouched.extend(open.into_iter().filter(|plan| {
            // Any work in it would have changed it.
            let facts = &plan.record.facts;
            facts.home == home && plan.record.changed_at == facts.opened_at && job_of(plan).is_some()
        }));
        if is_last {
            return Ok(untouched);
        }
    }
}

/// Forgets the plans for commands that an earlier daemon couldn't submit.
pub(crate) async fn forget_unsubmitted(
    plans: &Plans,
    jobs: &Jobs,
    untouched: Result<Vec<Plan>, PlanError>,
) -> Result<(), PlanError> {
    for plan in untouched? {
        if let Some(job) = job_of(&plan)
            && jobs.get(job).await?.is_none()
        {
            tracing::warn!(plan = %plan.id, "an earlier daemon opened a plan and did not come to submit its command");
            give_back(plans, &plan).await;
        }
    }
    Ok(())
}
