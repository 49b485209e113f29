//! What is left of a landing that can be neither finished nor rolled back.

use crate::RelPath;
use crate::landing::area::{Area, staging};
use crate::landing::error::LandError;
use crate::landing::item::{self, Operation};
use crate::landing::journal::Landing;
use crate::landing::leftover::{EndState, Leftover};
use crate::landing::run::LandingRun;
use crate::landing::site::LandingSite;

#[derive(Debug, Default)]
pub struct AbandonedLanding {
    /// What exists only in the staging directory.
    pub kept: Vec<Leftover>,
    pub changed: Vec<RelPath>,
}

pub(super) fn look_at_rest(site: &LandingSite<'_>, landing: &Landing) -> Result<AbandonedLanding, LandError> {
    let Some(area) = Area::find(site.tree, site.staging, &landing.id)? else {
        return Ok(AbandonedLanding::default());
    };
    let run = LandingRun { site, area: &area };
    let mut items = item::in_order(landing)?;
    for item in &mut items {
        run.read_notes(item)?;
    }
    let stuck = |error| staging(area.tree.path(), error);
    let mut changed = Vec::new();
    for item in items.iter().filter(|item| item.operation() != Operation::Nothing) {
        let held = run.in_tree(&item.path).map_err(stuck)?;
        let is_as_wanted = match &item.after {
            None => held.is_none(),
            wanted => held.is_some_and(|held| held.is(wanted.as_ref())),
        };
        if is_as_wanted {
            changed.push(item.path.clone());
        }
    }
    changed.sort();
    Ok(AbandonedLanding {
        kept: run.kept(&items, EndState::TakenBack).map_err(stuck)?,
        changed,
    })
}
