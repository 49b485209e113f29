//! Recovery: finishing a landing after its process was killed.

use crate::Effect;
use crate::landing::area::{Area, staging};
use crate::landing::carry::Progress;
use crate::landing::error::{LandError, LandingEnd, WhyRolledBack};
use crate::landing::item::{self, Item, Operation};
use crate::landing::journal::Landing;
use crate::landing::run::{LandingRun, Stop};
use crate::landing::site::LandingSite;
use crate::landing::steps::StepKind;

pub(super) fn recover(site: &LandingSite<'_>, landing: &Landing) -> Result<LandingEnd, LandError> {
    let mut items = item::in_order(landing)?;
    let never_staged = || LandingEnd::TakenBack {
        why: WhyRolledBack::NeverStaged,
        kept: Vec::new(),
    };
    let Some(area) = Area::find(site.tree, site.staging, &landing.id)? else {
        return Ok(never_staged());
    };
    if !area.is_complete()? {
        return Ok(never_staged());
    }
    let run = LandingRun { site, area: &area };
    for item in &mut items {
        run.read_notes(item)?;
    }
    if area.is_back()? {
        return run.roll_back(&mut items, WhyRolledBack::Unknown);
    }
    run.bring_to_an_end(&mut items, |run, item| {
        run.reached(StepKind::Recovering, Some(&item.path));
        run.settle_exchange(item)?;
        run.progress(item)
    })
}

impl LandingRun<'_> {
    /// Reads the notes about what an effect became in later rounds.
    pub(super) fn read_notes(&self, item: &mut Item) -> Result<(), LandError> {
        loop {
            let name = item.note_name(item.round + 1);
            let note = self
                .area
                .read_note(&name)
                .map_err(|error| staging(self.area.tree.path(), error))?;
            let Some(note) = note else { return Ok(()) };
            let Effect { before, after, .. } =
                serde_json::from_slice(&note).map_err(|source| LandError::Note {
                    name: name.to_string(),
                    source,
                })?;
            item.next_round(before, after);
        }
    }

    /// How far a path is, judging by the tree and the staging directory.
    fn progress(&self, item: &mut Item) -> Result<Progress, Stop> {
        let (new, old) = (item.new_name(item.round), item.old_name(item.round));
        match item.operation() {
            Operation::Nothing => Ok(Progress::Done),
            Operation::Create | Operation::ReplaceDirectory => match self.area.tree.stat(&new)? {
                None => Ok(Progress::Done),
                Some(_) => Ok(Progress::NotYet),
            },
            Operation::Replace => match self.in_area(&new)? {
                Some(held) if held.is(item.after.as_ref()) => Ok(Progress::NotYet),
                _ => self.look_at_exchanged(item),
            },
            Operation::Delete => match self.area.tree.stat(&old)? {
                None => Ok(Progress::NotYet),
                Some(_) => self.look_at_taken_out(item),
            },
            // The attempt itself detects how far it is.
            Operation::DeleteDirectory => Ok(Progress::NotYet),
        }
    }
}
