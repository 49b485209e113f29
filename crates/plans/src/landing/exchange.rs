//! Exchanging a staged file with what is at its path, including on file systems that can't do that atomically.
//!
//! There it takes three steps: what is at the path is moved out under a third name, the staged file is moved in, and
//! the third name is renamed to the second. So nothing is ever overwritten there either, and a save that comes in
//! between is found. The weaker part: between the first two steps the path is empty, for an instant, or after a kill
//! until the landing is recovered. The names that exist show how far it got:
//! - the third and the staged one: the first step is done, and is undone;
//! - only the third: the second step is done, and the third one follows.

use rustix::fs::RenameFlags;

use crate::landing::item::Item;
use crate::landing::run::LandingRun;
use crate::landing::steps::StepKind;
use crate::{RelPath, TreeError};

impl LandingRun<'_> {
    /// Exchanges an entry of the staging directory with what is at the path of an item. If someone has created the path
    /// in between, they keep it, this returns `Exists`, and what was there before is in the staging directory.
    pub(super) fn exchange(&self, item: &Item, name: &RelPath) -> Result<(), TreeError> {
        let (tree, area) = (self.site.tree, &self.area.tree);
        match area.rename_into(name, tree, &item.path, RenameFlags::EXCHANGE) {
            Err(TreeError::CannotExchange { .. }) => {}
            exchanged => return exchanged,
        }
        let aside = item.aside_name(item.round);
        tree.rename_into(&item.path, area, &aside, RenameFlags::NOREPLACE)
            .map_err(|error| error.about(&item.path))?;
        self.reached(StepKind::MovedAside, Some(&item.path));
        area.rename_into(name, tree, &item.path, RenameFlags::NOREPLACE)?;
        self.reached(StepKind::MovedIn, Some(&item.path));
        area.rename_noreplace(&aside, name)
    }

    /// Finishes or rolls back a three-step exchange that was interrupted by a kill.
    pub(super) fn settle_exchange(&self, item: &Item) -> Result<(), TreeError> {
        let (tree, area) = (self.site.tree, &self.area.tree);
        let (aside, name) = (item.aside_name(item.round), item.new_name(item.round));
        if area.stat(&aside)?.is_none() {
            return Ok(());
        }
        if area.stat(&name)?.is_none() {
            return area.rename_noreplace(&aside, &name);
        }
        match area.rename_into(&aside, tree, &item.path, RenameFlags::NOREPLACE) {
            // Someone has created the path. They keep it, and what was there before is kept.
            Ok(()) | Err(TreeError::Exists { .. }) => Ok(()),
            Err(error) if error.is_absence() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
