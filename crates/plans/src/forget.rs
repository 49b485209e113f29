//! Forgetting plans for good, on request or when they are old: their changes, contents and landings. Nothing of them
//! stays in the home, except what others also refer to.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use eventlog::{BlobId, EntityRecord, HeadsOrder, HeadsQuery};
use protocol::{PlanId, PlanState};

use crate::collect::own_plans;
use crate::inner::{PlansInner, base_error, blocking};
use crate::landing_queue::{OldLandings, forget_landings};
use crate::{Actor, Forgotten, Plan, PlanError, PlanRecord, Plans, store};

/// How long a plan is kept after it ended, however much space its contents take. An undo is always possible for
/// that long.
const KEPT_AT_LEAST: Duration = Duration::from_secs(24 * 60 * 60);
/// How many plans are read and forgotten at a time.
const PAGE: u32 = 64;
const UPKEEP: &str = "upkeep";

impl Plans {
    /// Forgets an ended plan for good: its changes, the contents that nothing else refers to, and the record of its
    /// apply. It can no longer be undone. Refused if the plan is open or sealed, if something runs in it, or if an
    /// open plan merges into it. If the future is dropped, call it again.
    pub async fn forget(&self, id: PlanId, by: Actor, seen: Option<u64>) -> Result<Forgotten, PlanError> {
        let inner = &self.inner;
        must_have_no_children(inner, id).await?;
        let gone = inner
            .at_plan(id, move |worker| Box::pin(worker.forget_plan(by, seen)))
            .await?;
        let mut contents = gone.contents;
        let only = HashSet::from([id]);
        contents.extend(forget_landings(inner, OldLandings::Of(&only)).await?);
        let base_bytes = drop_bases_with(inner, contents.clone()).await?;
        let contents: Vec<BlobId> = contents.into_iter().collect();
        inner.log.unpin_blobs(&contents).await?;
        let collected = inner.log.collect_blobs().await?;
        inner.log.compact().await?;
        Ok(Forgotten {
            plans: 1,
            bytes: gone.sandbox_bytes + base_bytes + collected.stored_bytes,
        })
    }

    /// Forgets plans that ended longer ago than the settings allow, and the oldest ones while all contents take more
    /// space than allowed. Open, sealed and undone plans hold work that exists nowhere else, and are kept. If the
    /// future is dropped, the rest is forgotten the next time.
    pub async fn forget_old(&self) -> Result<Forgotten, PlanError> {
        let inner = &self.inner;
        let mut forgotten = Forgotten::default();
        for state in [PlanState::Discarded, PlanState::Applied] {
            let is_old = |plan: &Plan| is_over_for(inner, plan, inner.settings.keep_for);
            forget_oldest(inner, state, is_old, u64::MAX, &mut forgotten).await?;
        }
        forget_landings(inner, OldLandings::All).await?;
        // Discarded plans can never be applied, so they are removed before those that can still be undone.
        for state in [PlanState::Discarded, PlanState::Applied] {
            loop {
                let collected = inner.log.collect_blobs().await?;
                forgotten.bytes += collected.stored_bytes;
                if inner.log.sizes().await?.blob_bytes <= inner.settings.keep_bytes {
                    return Ok(forgotten);
                }
                let may_go = |plan: &Plan| plan.record.entries > 0 && is_over_for(inner, plan, KEPT_AT_LEAST);
                let before = forgotten.plans;
                forget_oldest(inner, state, may_go, u64::from(PAGE), &mut forgotten).await?;
                forget_landings(inner, OldLandings::All).await?;
                if forgotten.plans == before {
                    break;
                }
            }
        }
        Ok(forgotten)
    }
}

/// A plan that others merge into isn't forgotten before them.
async fn must_have_no_children(inner: &PlansInner, id: PlanId) -> Result<(), PlanError> {
    let open = store::plans_in(&inner.log, &[PlanState::Open, PlanState::Sealed]).await?;
    if let Some(child) = open.iter().find(|child| child.record.facts.parent == Some(id)) {
        return Err(PlanError::Busy {
            plan: id,
            by: format!("{} merges into it; apply or discard that one first", child.id),
        });
    }
    Ok(())
}

/// Drops images of the workspace that have any of these contents and that no plan needs.
async fn drop_bases_with(inner: &PlansInner, contents: BTreeSet<BlobId>) -> Result<u64, PlanError> {
    if contents.is_empty() {
        return Ok(0);
    }
    let needed: HashSet<_> = own_plans(inner)
        .await?
        .iter()
        .filter(|plan| plan.record.has_sandbox)
        .map(|plan| plan.record.base)
        .collect();
    let bases = inner.bases.clone();
    let dropped = blocking(move || bases.drop_with(&contents, &needed)).await?;
    dropped.map_err(|error| base_error(&error))
}

fn is_over_for(inner: &PlansInner, plan: &Plan, long: Duration) -> bool {
    inner.time.now().since(plan.record.changed_at) >= long
}

/// Forgets the oldest plans in a state that allows it, at most `limit` of them.
async fn forget_oldest(
    inner: &Arc<PlansInner>,
    state: PlanState,
    may_go: impl Fn(&Plan) -> bool,
    limit: u64,
    forgotten: &mut Forgotten,
) -> Result<(), PlanError> {
    let mut left = limit;
    let mut pages = inner.log.pages(HeadsQuery {
        kind: PlanRecord::KIND.into(),
        status: Some(state.as_str().into()),
        order: HeadsOrder::OldestFirst,
        after: None,
        limit: PAGE,
    });
    while let Some(page) = pages.next().await?.filter(|_| left > 0) {
        let mut gone = HashSet::new();
        for stored in &page {
            let Ok(plan) = Plan::of_head(&inner.log, stored) else {
                continue;
            };
            if plan.record.facts.home != inner.home_id || !may_go(&plan) || left == 0 {
                continue;
            }
            match must_have_no_children(inner, plan.id).await {
                Ok(()) => {}
                Err(PlanError::Busy { .. }) => continue,
                Err(error) => return Err(error),
            }
            let seen = Some(plan.version.get());
            let done = inner.at_plan(plan.id, move |worker| {
                Box::pin(worker.forget_plan(Actor::from(UPKEEP), seen))
            });
            match done.await {
                Ok(remains) => {
                    gone.insert(plan.id);
                    forgotten.plans += 1;
                    forgotten.bytes += remains.sandbox_bytes;
                    left -= 1;
                }
                // Someone has just used it, so it isn't old.
                Err(PlanError::Stale { .. } | PlanError::Busy { .. } | PlanError::NotOver { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !gone.is_empty() {
            forget_landings(inner, OldLandings::Of(&gone)).await?;
        }
    }
    Ok(())
}
