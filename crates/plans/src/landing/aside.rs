//! What is left of a landing that can neither be finished nor taken back.

use crate::landing::area::{Area, staging};
use crate::landing::error::LandError;
use crate::landing::ground::Ground;
use crate::landing::hands::Hands;
use crate::landing::item::{self, Operation};
use crate::landing::journal::Landing;
use crate::landing::kept::{Kept, Verdict};
use crate::path::RelPath;

/// What is left of a landing.
#[derive(Debug, Default)]
pub struct Aside {
    /// What is in the staging directory and nowhere else.
    pub kept: Vec<Kept>,
    /// The paths that are as the landing wanted them.
    pub changed: Vec<RelPath>,
}

pub(super) fn look_at_rest(ground: &Ground<'_>, landing: &Landing) -> Result<Aside, LandError> {
    let Some(area) = Area::find(ground.tree, ground.staging, &landing.id)? else {
        return Ok(Aside::default());
    };
    let hands = Hands { ground, area: &area };
    let mut items = item::in_order(landing)?;
    for item in &mut items {
        hands.read_notes(item)?;
    }
    let stuck = |error| staging(area.tree.path(), error);
    let mut changed = Vec::new();
    for item in items.iter().filter(|item| item.operation() != Operation::Nothing) {
        let held = hands.in_tree(&item.path).map_err(stuck)?;
        let is_as_wanted = match &item.after {
            None => held.is_none(),
            wanted => held.is_some_and(|held| held.is(wanted.as_ref())),
        };
        if is_as_wanted {
            changed.push(item.path.clone());
        }
    }
    changed.sort();
    Ok(Aside {
        kept: hands.kept(&items, Verdict::TakenBack).map_err(stuck)?,
        changed,
    })
}
