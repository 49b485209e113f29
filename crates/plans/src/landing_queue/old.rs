//! Landings that are over and that nobody needs any more: their plans are gone, or have been applied or undone again.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use eventlog::{BlobId, CommitError, HeadsOrder, HeadsQuery, StoredHead};
use protocol::PlanId;

use super::stored;
use crate::inner::PlansInner;
use crate::landings::{LandingRecord, LandingState};
use crate::{Entry, PlanError, store, streams};

/// How long a landing stays that no plan names, so that what happened can be found out.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How many heads are read at a time.
const PAGE: u32 = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) enum OldLandings<'a> {
    /// Those of plans that were just forgotten, whatever their age.
    Of(&'a HashSet<PlanId>),
    /// All that ended long ago.
    All,
}

/// Forgets landings that are over and that no plan names. The contents that they named.
pub(crate) async fn forget_landings(
    inner: &PlansInner,
    which: OldLandings<'_>,
) -> Result<BTreeSet<BlobId>, PlanError> {
    let mut contents = BTreeSet::new();
    for state in [
        LandingState::Done,
        LandingState::TakenBack,
        LandingState::SetAside,
    ] {
        let mut after = None;
        loop {
            let query = HeadsQuery {
                kind: Arc::from(streams::LANDING_KIND),
                status: Some(Arc::from(state.name())),
                order: HeadsOrder::OldestFirst,
                after: after.take(),
                limit: PAGE,
            };
            let page = inner.log.heads(query).await?;
            for stored in &page {
                contents.extend(forget_if_old(inner, stored, which).await?);
            }
            if page.len() < PAGE as usize {
                break;
            }
            after = page.last().map(|stored| stored.stream.clone());
        }
    }
    Ok(contents)
}

async fn forget_if_old(
    inner: &PlansInner,
    stored: &StoredHead,
    which: OldLandings<'_>,
) -> Result<BTreeSet<BlobId>, PlanError> {
    let Some(record) = inner.log.readable(stored, streams::landing_of(stored)) else {
        return Ok(BTreeSet::new());
    };
    let is_meant = match which {
        OldLandings::Of(plans) => record.plans.iter().any(|plan| plans.contains(plan)),
        OldLandings::All => inner.time.now().since(record.at) >= KEPT_FOR,
    };
    let Some((_, id)) = stored.stream.as_str().split_once('/') else {
        return Ok(BTreeSet::new());
    };
    if record.home != inner.home_id || !is_meant || is_needed(inner, &record, id).await? {
        return Ok(BTreeSet::new());
    }
    let done = stored::done(&inner.log, id, record.plans.len()).await?;
    let effects = done.effects.iter().chain(done.each.iter().flatten());
    let entries = effects.flat_map(|effect| [&effect.before, &effect.after]);
    let contents = entries.flatten().filter_map(Entry::content).collect();
    let seen = vec![(stored.stream.clone(), stored.version)];
    match inner.log.remove(seen).await {
        Ok(()) | Err(CommitError::Conflict { .. }) => Ok(contents),
        Err(error) => Err(error.into()),
    }
}

/// Whether an undo, or the end of an apply, would look for it.
async fn is_needed(inner: &PlansInner, record: &LandingRecord, id: &str) -> Result<bool, PlanError> {
    for plan in record.plans.iter().copied().chain(record.parent) {
        let found = match store::plan(&inner.log, plan).await {
            Ok(found) => found.record,
            Err(PlanError::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        let landed = found.landed.as_ref().map(|landed| landed.landing.as_str());
        if landed == Some(id) || found.landing.as_deref() == Some(id) {
            return Ok(true);
        }
    }
    Ok(false)
}
