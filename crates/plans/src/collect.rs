//! Taking sandboxes away that nobody needs, and bases that no sandbox stands on.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use kernel::PlanId;

use crate::answers::{Collected, GcPolicy, Run};
use crate::base::CollectMode;
use crate::desk::sandbox_directory;
use crate::error::PlanError;
use crate::plan::{Plan, State};
use crate::shared::{Shared, base_error, blocking};
use crate::store;
use crate::streams::{self, PLAN_KIND};

/// Collects. What has unapplied work in it is never touched, whatever its age.
pub(crate) async fn collect(shared: &Arc<Shared>, policy: GcPolicy) -> Result<Collected, PlanError> {
    let now = shared.time.now();
    let mut collected = Collected::default();
    let mut needed = HashSet::new();
    for plan in own_plans(shared).await? {
        if !plan.record.has_sandbox {
            continue;
        }
        let is_over = match plan.record.state {
            State::Applied | State::Undone | State::Discarded => true,
            State::Open | State::Sealed => false,
        };
        let is_old = now.since(plan.record.changed_at) >= policy.older_than;
        if is_over && is_old && plan.record.running.is_empty() && plan.record.landing.is_none() {
            let bytes = match policy.run {
                Run::Dry => size(shared, &plan).await?,
                Run::Real => take_away(shared, plan.id).await?,
            };
            collected.sandboxes.push((plan.id, bytes));
            collected.bytes += bytes;
            continue;
        }
        if !is_over && plan.record.files > 0 {
            collected.kept.push(plan.id);
        }
        needed.insert(plan.record.base);
    }
    let bases = shared.bases.clone();
    let mode = match policy.run {
        Run::Dry => CollectMode::DryRun,
        Run::Real => CollectMode::Remove,
    };
    let freed = blocking(move || bases.collect(&needed, mode)).await?;
    let freed = freed.map_err(|error| base_error(&error))?;
    collected.bases = freed.images.len() as u64;
    collected.bytes += freed.bytes;
    Ok(collected)
}

/// The plans of this home.
pub(crate) async fn own_plans(shared: &Shared) -> Result<Vec<Plan>, PlanError> {
    let mut plans = Vec::new();
    for stored in store::heads(&shared.log, PLAN_KIND, None).await? {
        let plan = streams::plan_of(&stored)?;
        if plan.record.facts.home == shared.home_id {
            plans.push(plan);
        }
    }
    Ok(plans)
}

async fn take_away(shared: &Arc<Shared>, id: PlanId) -> Result<u64, PlanError> {
    shared
        .at_plan(id, |desk| Box::pin(desk.take_sandbox_away()))
        .await
}

async fn size(shared: &Arc<Shared>, plan: &Plan) -> Result<u64, PlanError> {
    let directory = sandbox_directory(shared, plan);
    blocking(move || bytes_below(&directory)).await
}

/// How many bytes are below a directory. What cannot be read counts as nothing.
fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => found.blocks() * 512 + bytes_below(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}
