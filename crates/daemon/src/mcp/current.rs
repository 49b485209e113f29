//! The plan that a client works in: the newest one that it has opened and that is not over.
//!
//! What a client remembers of it is a short cut. The truth is in the plans, which know who opened them: so a client that
//! comes back after the daemon was killed works on in the same plan.

use plans::PlanQuery;
use protocol::{ErrorCode, PlanId, PlanState};

use super::call::Call;
use super::clients::Known;
use super::error::ToolError;
use super::inside::Refused;
use crate::app::App;
use crate::http::Problem;

/// How many plans are looked at in one step, and how many steps there are at most. Whoever has opened a plan before so many
/// others were opened names it.
const PLANS_A_STEP: u32 = 500;
const STEPS: usize = 4;

/// A plan to work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    pub(super) id: String,
    /// The root of its workspace.
    pub(super) root: String,
    /// Where a command in its sandbox finds that.
    pub(super) sandbox_root: String,
}

impl Ground {
    /// The id as what it is.
    pub(super) fn plan(&self) -> Result<PlanId, ToolError> {
        self.id
            .parse()
            .map_err(|_| ToolError::argument("plan", "is not the id of a plan"))
    }
}

impl From<&protocol::Plan> for Ground {
    fn from(plan: &protocol::Plan) -> Self {
        Self {
            id: plan.id.clone(),
            root: plan.root.clone(),
            sandbox_root: plan.sandbox_root.clone(),
        }
    }
}

/// The plan that a call is about: the one that it names, or else its client's own.
pub(super) async fn plan_of(call: &Call<'_>, named: Option<&str>) -> Result<Ground, ToolError> {
    match named {
        Some(id) => {
            let plan: protocol::Plan = call.get(&format!("/v1/plans/{}", segment(id)?)).await?;
            Ok(Ground::from(&plan))
        }
        None => own_plan(call).await?.ok_or(ToolError::NoPlan),
    }
}

/// The client's own plan, if it has one.
pub(super) async fn own_plan(call: &Call<'_>) -> Result<Option<Ground>, ToolError> {
    match call.client.known_plan() {
        Known::Plan(ground) => return Ok(Some(ground)),
        Known::NoPlan => return Ok(None),
        Known::Nothing => {}
    }
    let found = newest_of(
        call.app,
        &call.client.actor,
        &[PlanState::Open, PlanState::Sealed],
    )
    .await?;
    let known = match &found {
        Some(ground) => Known::Plan(ground.clone()),
        None => Known::NoPlan,
    };
    call.client.note_plan(known);
    Ok(found)
}

/// The newest plan that an actor has opened and that is in one of these states.
pub(super) async fn newest_of(
    app: &App,
    actor: &str,
    states: &[PlanState],
) -> Result<Option<Ground>, ToolError> {
    let mut query = PlanQuery {
        states: states.to_vec(),
        limit: PLANS_A_STEP,
        ..PlanQuery::default()
    };
    for _ in 0..STEPS {
        let plans = app.plans.list(query.clone()).await;
        let plans = plans.map_err(|error| Refused::from(Problem::internal(error)))?;
        let own = plans
            .iter()
            .find(|plan| plan.record.facts.opened_by.to_string() == actor);
        if let Some(plan) = own {
            return Ok(Some(Ground {
                id: plan.id.to_string(),
                root: plan.record.facts.root.display().to_string(),
                sandbox_root: app.plans.sandbox_root(plan).display().to_string(),
            }));
        }
        match plans.last() {
            Some(last) if plans.len() == PLANS_A_STEP as usize => query.before = Some(last.id),
            _ => break,
        }
    }
    Ok(None)
}

/// Forgets the client's plan if an error says that it is over, so that the next call looks again.
pub(super) fn forget_if_over(call: &Call<'_>, ground: &Ground, error: &ToolError) {
    let is_over = matches!(
        error.problem_code(),
        Some(ErrorCode::PlanWrongState | ErrorCode::PlanNotFound | ErrorCode::SandboxGone)
    );
    if is_over {
        call.client.forget_plan(&ground.id);
    }
}

/// An id as one segment of a path, if it can be one.
pub(super) fn segment(id: &str) -> Result<&str, ToolError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match !id.is_empty() && id.bytes().all(is_plain) {
        true => Ok(id),
        false => Err(ToolError::argument("id", "is not an id")),
    }
}
