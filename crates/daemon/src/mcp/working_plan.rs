//! The plan that a client works in: the newest plan that it opened and that isn't finished.
//!
//! What is remembered for a client is only a shortcut. The source of truth is the plans, which know who opened them. So
//! a client that comes back after the daemon was killed continues in the same plan.

use std::path::PathBuf;

use plans::PlanQuery;
use protocol::{ErrorCode, PlanId, PlanState};
use sessions::tools::SandboxPath;

use super::call::Call;
use super::clients::KnownPlan;
use super::error::ToolError;
use crate::app::App;
use crate::http::Problem;
use crate::http::ids::{IdOf, id_of};

/// How many plans to read in one step, and how many steps there are at most. A client with an older plan has to name
/// it.
const PLANS_A_STEP: u32 = 500;
const STEPS: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkingPlan {
    pub(super) id: PlanId,
    pub(super) root: PathBuf,
    /// The path of that root for a command in its sandbox.
    pub(super) sandbox_root: PathBuf,
}

impl WorkingPlan {
    pub(super) fn of(app: &App, plan: &plans::Plan) -> Self {
        Self {
            id: plan.id,
            root: plan.record.facts.root.clone(),
            sandbox_root: app.plans.sandbox_root(plan),
        }
    }

    /// Resolves a path from a model: relative to the root of the workspace, or absolute and below that root.
    pub(super) fn path(&self, written: &str) -> Result<SandboxPath, ToolError> {
        let path = match written.starts_with('/') {
            true => SandboxPath::absolute(written, &[self.root.clone(), self.sandbox_root.clone()]),
            false => SandboxPath::relative(written),
        };
        path.map_err(ToolError::of_arguments)
    }
}

/// The plan of a call: the one that it names, or else the client's own.
pub(super) async fn plan_of(call: &Call<'_>, named: Option<&str>) -> Result<WorkingPlan, ToolError> {
    match named {
        Some(named) => {
            let plan = call.app.plans.get(id("plan", named)?).await;
            Ok(WorkingPlan::of(call.app, &plan.map_err(Problem::from)?))
        }
        None => own_plan(call).await?.ok_or(ToolError::NoPlan),
    }
}

/// The client's own plan, if it has one.
pub(super) async fn own_plan(call: &Call<'_>) -> Result<Option<WorkingPlan>, ToolError> {
    match call.client.known_plan() {
        KnownPlan::Open(plan) => return Ok(Some(plan)),
        KnownPlan::NoPlan => return Ok(None),
        KnownPlan::Nothing => {}
    }
    let states = [PlanState::Open, PlanState::Sealed];
    let found = newest_of(call.app, &call.client.actor, &states).await?;
    call.client.note_plan(match &found {
        Some(plan) => KnownPlan::Open(plan.clone()),
        None => KnownPlan::NoPlan,
    });
    Ok(found)
}

/// The newest plan that an actor opened and that is in one of these states.
pub(super) async fn newest_of(
    app: &App,
    actor: &str,
    states: &[PlanState],
) -> Result<Option<WorkingPlan>, ToolError> {
    let mut query = PlanQuery {
        states: states.to_vec(),
        limit: PLANS_A_STEP,
        ..PlanQuery::default()
    };
    for _ in 0..STEPS {
        let plans = app.plans.list(query.clone()).await.map_err(Problem::internal)?;
        let mut plans_of_actor = plans.iter().filter(|plan| &*plan.record.facts.opened_by == actor);
        if let Some(plan) = plans_of_actor.next() {
            return Ok(Some(WorkingPlan::of(app, plan)));
        }
        match plans.last() {
            Some(last) if plans.len() == PLANS_A_STEP as usize => query.before = Some(last.id),
            _ => break,
        }
    }
    Ok(None)
}

/// Passes on the result of an operation in a plan. If it failed because the plan is finished, this forgets the client's
/// plan, so that the next call looks it up again.
pub(super) fn done_in<T>(
    call: &Call<'_>,
    plan: &WorkingPlan,
    done: Result<T, Problem>,
) -> Result<T, ToolError> {
    if let Err(problem) = &done
        && let ErrorCode::PlanWrongState | ErrorCode::PlanNotFound | ErrorCode::SandboxGone = problem.code()
    {
        call.client.forget_plan(plan.id);
    }
    Ok(done?)
}

/// Parses the id in an argument.
pub(super) fn id<T: IdOf>(argument: &str, text: &str) -> Result<T, ToolError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => Ok(id_of(text)?),
        false => Err(ToolError::argument(
            argument,
            &format!("is not the id of {}", T::KIND),
        )),
    }
}
