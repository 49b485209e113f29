//! The outcomes of attempts that were refused, and of dry runs.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{OutcomeKind, PlanId};

use super::LandingQueue;
use super::begin::LandingRequest;
use crate::plan_worker::Snapshot;
use crate::{
    Conflict, Effect, Entry, LandingOutcome, MergedAll, OutcomePath, Plan, PlanError, Refused, RelPath, Run,
    state,
};

impl LandingQueue {
    /// Reports the conflicts, and records them in the plans.
    pub(super) async fn refuse(
        &self,
        wanted: &LandingRequest,
        merged: MergedAll,
    ) -> Result<LandingOutcome, PlanError> {
        let conflicts: Vec<Conflict> = merged
            .conflicts
            .iter()
            .map(|listed| listed.conflict.clone())
            .collect();
        let mut plans = Vec::new();
        for (index, Snapshot { plan, .. }) in wanted.snapshots.iter().enumerate() {
            let own = merged.conflicts.iter().filter(|listed| listed.list == index);
            let own: Vec<Conflict> = own.map(|listed| listed.conflict.clone()).collect();
            plans.push(match (wanted.run, own.is_empty()) {
                (Run::Real, false) => self.keep_refusal(plan.id, wanted, own).await?,
                _ => plan.clone(),
            });
        }
        Ok(LandingOutcome {
            conflicts,
            ..LandingOutcome::new(OutcomeKind::Conflicted, plans)
        })
    }

    pub(super) async fn keep_refusal(
        &self,
        plan: PlanId,
        wanted: &LandingRequest,
        conflicts: Vec<Conflict>,
    ) -> Result<Plan, PlanError> {
        let refused = Refused {
            what: wanted.what,
            by: Arc::clone(&wanted.by),
            at: self.inner.time.now(),
            conflicts,
        };
        let keep = self.inner.change_plan(plan, move |_, record, now| {
            Ok(state::refused(record, refused.clone(), now))
        });
        keep.await
    }
}

pub(super) fn would(wanted: &LandingRequest, merged: MergedAll) -> LandingOutcome {
    let combined: HashSet<RelPath> = merged.combined.into_iter().collect();
    let plans = wanted.snapshots.iter().map(|snapshot| snapshot.plan.clone());
    LandingOutcome {
        paths: outcome_paths(&merged.effects, &combined),
        ..LandingOutcome::new(OutcomeKind::WouldBeDone, plans.collect())
    }
}

/// The paths of effects, without directories, which don't count as work.
pub(super) fn outcome_paths(effects: &[Effect], combined: &HashSet<RelPath>) -> Vec<OutcomePath> {
    let is_directory = |entry: &Option<Entry>| entry.as_ref().is_none_or(Entry::is_directory);
    let files = effects
        .iter()
        .filter(|effect| !(is_directory(&effect.before) && is_directory(&effect.after)));
    let path = |effect: &Effect| OutcomePath {
        path: effect.path.clone(),
        before: effect.before.clone(),
        after: effect.after.clone(),
        merged: combined.contains(&effect.path),
    };
    files.map(path).collect()
}
