//! Landings that are over and no longer needed: their plans were forgotten, or have been applied or undone again.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use eventlog::{BlobId, EntityRecord, HeadsOrder, HeadsQuery};
use protocol::PlanId;

use super::stored::{self, StoredLanding};
use crate::inner::PlansInner;
use crate::landings::{LandingRecord, LandingState};
use crate::streams::remove_unchanged;
use crate::{Entry, PlanError, store};

/// How long a landing is kept that no plan refers to, so that you can find out what happened.
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

/// Forgets landings that are over and that no plan refers to. Returns the contents that they referred to.
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
        let mut pages = inner.log.pages(HeadsQuery {
            kind: LandingRecord::KIND.into(),
            status: Some(state.name().into()),
            order: HeadsOrder::OldestFirst,
            after: None,
            limit: PAGE,
        });
        while let Some(page) = pages.next().await? {
            for stored in &page {
                // An unreadable landing is quarantined, and stays.
                if let Ok(landing) = StoredLanding::of_head(&inner.log, stored) {
                    contents.extend(forget_if_old(inner, &landing, which).await?);
                }
            }
        }
    }
    Ok(contents)
}

async fn forget_if_old(
    inner: &PlansInner,
    landing: &StoredLanding,
    which: OldLandings<'_>,
) -> Result<BTreeSet<BlobId>, PlanError> {
    let record = &landing.record;
    let is_meant = match which {
        OldLandings::Of(plans) => record.plans.iter().any(|plan| plans.contains(plan)),
        OldLandings::All => inner.time.now().since(record.at) >= KEPT_FOR,
    };
    if record.home != inner.home_id || !is_meant || is_needed(inner, record, &landing.id).await? {
        return Ok(BTreeSet::new());
    }
    let done = stored::effects(&inner.log, landing).await?;
    let effects = done.effects.iter().chain(done.each.iter().flatten());
    let entries = effects.flat_map(|effect| [&effect.before, &effect.after]);
    let contents = entries.flatten().filter_map(Entry::content).collect();
    remove_unchanged(&inner.log, vec![landing.at()?]).await?;
    Ok(contents)
}

/// Whether an undo, or the end of an apply, would need it.
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
