//! Removing sandboxes that are no longer needed, and bases that no sandbox uses.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use eventlog::EntityRecord;
use protocol::{CollectedSandbox, PlanId, PlanState, PlansCollected};

use crate::inner::{PlansInner, base_error, blocking};
use crate::plan_worker::sandbox_directory;
use crate::{CollectMode, GcPolicy, Plan, PlanError, PlanRecord, Plans, Run, store};

impl Plans {
    /// Removes sandboxes that are no longer needed, and bases that no sandbox uses. A sandbox with unapplied work is
    /// never touched, whatever its age. If the future is dropped, the rest is collected the next time.
    pub async fn collect(&self, policy: GcPolicy) -> Result<PlansCollected, PlanError> {
        let inner = &self.inner;
        let now = inner.time.now();
        let mut collected = PlansCollected::default();
        let mut needed = HashSet::new();
        for plan in own_plans(inner).await? {
            if !plan.record.has_sandbox {
                continue;
            }
            let is_over = is_over(&plan);
            let is_old = now.since(plan.record.changed_at) >= policy.older_than;
            if is_over && is_old && plan.record.running.is_empty() && plan.record.landing.is_none() {
                let bytes = match policy.run {
                    Run::Dry => size(inner, &plan).await?,
                    Run::Real => take_away(inner, plan.id).await?,
                };
                collected
                    .sandboxes
                    .push(CollectedSandbox { plan: plan.id, bytes });
                collected.bytes += bytes;
                continue;
            }
            if !is_over && plan.record.files > 0 {
                collected.kept.push(plan.id);
            }
            needed.insert(plan.record.base);
        }
        // We can't tell which base an unreadable plan uses.
        let is_quarantined = |head: &eventlog::Quarantined| &*head.kind == PlanRecord::KIND;
        if inner.log.quarantined().iter().any(is_quarantined) {
            return Ok(collected);
        }
        let bases = inner.bases.clone();
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
}

/// The plans of this home that haven't ended, or still have a sandbox on disk. The others aren't even read: there may
/// be years of them.
pub(crate) async fn own_plans(inner: &PlansInner) -> Result<Vec<Plan>, PlanError> {
    let mut plans = BTreeMap::new();
    for plan in store::plans_in(&inner.log, &[PlanState::Open, PlanState::Sealed]).await? {
        plans.insert(plan.id, plan);
    }
    for id in with_directory(inner).await? {
        if plans.contains_key(&id) {
            continue;
        }
        match store::plan(&inner.log, id).await {
            Ok(plan) => drop(plans.insert(id, plan)),
            // It is being opened right now, was never opened, or is quarantined.
            Err(PlanError::NotFound(_) | PlanError::Unreadable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let own = plans.into_values();
    let own = own.filter(|plan| plan.record.facts.home == inner.home_id);
    Ok(own.collect())
}

async fn with_directory(inner: &PlansInner) -> Result<Vec<PlanId>, PlanError> {
    let sandboxes = inner.sandboxes();
    let listed = blocking(move || {
        let names = fs::read_dir(&sandboxes)?.map(|entry| Ok(entry?.file_name()));
        names.collect::<io::Result<Vec<_>>>()
    });
    let names = listed.await?.map_err(PlanError::io("listing the sandboxes"))?;
    let ids = names.iter().filter_map(|name| name.to_str()?.parse().ok());
    Ok(ids.collect())
}

/// Removes the oldest sandboxes of plans that have ended, at most `limit` of them. Their changes are in the log.
pub(crate) async fn make_room(inner: &Arc<PlansInner>, limit: usize) -> Result<(), PlanError> {
    let mut over: Vec<Plan> = own_plans(inner).await?;
    over.retain(|plan| plan.record.has_sandbox && is_over(plan));
    over.sort_by_key(|plan| plan.record.changed_at);
    for plan in over.into_iter().take(limit) {
        take_away(inner, plan.id).await?;
    }
    Ok(())
}

fn is_over(plan: &Plan) -> bool {
    match plan.record.state {
        PlanState::Applied | PlanState::Undone | PlanState::Discarded => true,
        PlanState::Open | PlanState::Sealed => false,
    }
}

async fn take_away(inner: &Arc<PlansInner>, id: PlanId) -> Result<u64, PlanError> {
    inner
        .at_plan(id, |worker| Box::pin(worker.take_sandbox_away()))
        .await
}

async fn size(inner: &Arc<PlansInner>, plan: &Plan) -> Result<u64, PlanError> {
    let directory = sandbox_directory(inner, plan);
    blocking(move || bytes_below(&directory)).await
}

/// The total size of the files below a directory. Unreadable ones count as zero.
fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => found.blocks() * 512 + bytes_below(&entry.path()),
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}
