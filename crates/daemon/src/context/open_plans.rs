//! The changes in the plans of a workspace.

use std::cmp::Reverse;
use std::path::Path;

use async_trait::async_trait;
use context::{OpenPlan, OpenPlans, PortError};
use plans::{Plan, PlanError, PlanQuery, Plans};
use protocol::PlanState;

use super::plan_view::tree_path;

/// How many plans of a workspace to read: those that are probably being worked on now.
const MOST_PLANS: usize = 16;
/// How many plans to consider for that, newest first.
const MOST_CONSIDERED: u32 = 256;
/// How many paths of a plan to report. A plan with more changes everything, which isn't a useful hint.
const MOST_PATHS: usize = 1000;

#[derive(Clone, Debug)]
pub(super) struct SharedPlans(pub(super) Plans);

#[async_trait]
impl OpenPlans for SharedPlans {
    async fn open(&self, root: &Path) -> Result<Vec<OpenPlan>, PortError> {
        let failed = |error: PlanError| PortError::Failed(error.to_string());
        let query = PlanQuery {
            states: vec![PlanState::Open, PlanState::Sealed],
            limit: MOST_CONSIDERED,
            ..PlanQuery::default()
        };
        let mut plans = self.0.list(query).await.map_err(failed)?;
        plans.retain(|plan| plan.record.facts.root == root && plan.record.files > 0);
        plans.sort_by_key(|plan| Reverse((plan.record.changed_at, plan.id)));
        plans.truncate(MOST_PLANS);
        let mut open = Vec::new();
        for plan in plans {
            open.push(self.shown(&plan).await.map_err(failed)?);
        }
        Ok(open)
    }
}

impl SharedPlans {
    async fn shown(&self, plan: &Plan) -> Result<OpenPlan, PlanError> {
        let changes = self.0.changes(plan.id, None).await?;
        let files = changes
            .iter()
            .filter(|change| !change.after.as_ref().is_some_and(plans::Entry::is_directory));
        let mut changed: Vec<_> = files.filter_map(|change| tree_path(&change.path)).collect();
        changed.sort_unstable();
        changed.truncate(MOST_PATHS);
        Ok(OpenPlan {
            plan: plan.id.to_string(),
            title: plan.record.facts.title.clone(),
            changed,
        })
    }
}
