//! Rolling back: one path, because someone saved it, or everything, because the landing failed.

use rustix::fs::RenameFlags;

use crate::landing::error::{LandError, LandingEnd, WhyRolledBack};
use crate::landing::item::{Item, Operation};
use crate::landing::leftover::EndState;
use crate::landing::run::{LandingRun, PathState};
use crate::landing::steps::StepKind;
use crate::{FileKind, RelPath, TreeError};

/// How often a file is exchanged to give the path to the last save. Each one after the first means another save within
/// an instant. After that, the last but one has the path, and the last is kept.
const EXCHANGES: u32 = 8;

impl LandingRun<'_> {
    /// Rolls back everything that was carried out, the last first. It may be killed and repeated.
    pub(super) fn roll_back(&self, items: &mut [Item], why: WhyRolledBack) -> Result<LandingEnd, LandError> {
        let stuck = |source| LandError::Stuck { source };
        self.area.mark_back().map_err(stuck)?;
        self.reached(StepKind::BackMarked, None);
        let mut failed = None;
        for item in items.iter_mut().rev() {
            self.reached(StepKind::TakingBack, Some(&item.path));
            // One path that can't be rolled back doesn't stop the others.
            if let Err(error) = self.roll_one_back(item) {
                failed.get_or_insert(error);
            }
            self.reached(StepKind::TakenBack, Some(&item.path));
        }
        if let Some(source) = failed {
            return Err(LandError::Stuck { source });
        }
        self.sync_directories(items).map_err(stuck)?;
        self.reached(StepKind::AllTakenBack, None);
        let kept = self.kept(items, EndState::TakenBack).map_err(stuck)?;
        Ok(LandingEnd::TakenBack { why, kept })
    }

    fn roll_one_back(&self, item: &mut Item) -> Result<(), TreeError> {
        self.settle_exchange(item)?;
        let (new, old) = (item.new_name(item.round), item.old_name(item.round));
        match item.operation() {
            Operation::Nothing => Ok(()),
            Operation::Create => self.take_new_back(item, &new),
            Operation::Replace => match self.in_area(&new)? {
                Some(held) if held.is(item.after.as_ref()) => Ok(()),
                // Someone has saved over our content and keeps the path; what was there before is kept.
                Some(_)
                    if self
                        .in_tree(&item.path)?
                        .is_some_and(|held| !held.is(item.after.as_ref())) =>
                {
                    Ok(())
                }
                Some(_) => {
                    // Builds may have seen the other file, so make this one look new to them.
                    self.area.tree.touch(&new)?;
                    self.exchange_back(item)
                }
                None => Ok(()),
            },
            Operation::Delete => {
                if self.area.tree.stat(&old)?.is_some() {
                    self.area.tree.touch(&old)?;
                    self.put_old_back(item)?;
                }
                Ok(())
            }
            Operation::DeleteDirectory => self.put_stand_in_back(item, &old),
            Operation::ReplaceDirectory => {
                self.take_new_back(item, &new)?;
                self.put_stand_in_back(item, &old)
            }
        }
    }

    /// Exchanges until we get our own content, or what we have just put there: then there was no save in between, and
    /// the path has the last save.
    pub(super) fn exchange_back(&self, item: &Item) -> Result<(), TreeError> {
        let name = item.new_name(item.round);
        let Some(mut hand) = self.in_area(&name)? else {
            return Ok(());
        };
        // What we put there in the last exchange, and expect to get in the next.
        let mut given: Option<PathState> = None;
        for _ in 0..EXCHANGES {
            match self.exchange(item, &name) {
                Ok(()) => {}
                // Someone has deleted or saved it in between. That wins, and what we hold is kept.
                Err(TreeError::Exists { .. }) => return Ok(()),
                Err(error) if error.is_absence() => return Ok(()),
                Err(error) => return Err(error),
            }
            let Some(got) = self.in_area(&name)? else {
                return Ok(());
            };
            let expected = match &given {
                None => got.is(item.after.as_ref()),
                Some(given) => got.is_same_file(given),
            };
            if expected {
                return Ok(());
            }
            given = Some(std::mem::replace(&mut hand, got));
        }
        Ok(())
    }

    /// Takes an addition out again, unless someone has written to it or put something into it.
    fn take_new_back(&self, item: &Item, name: &RelPath) -> Result<(), TreeError> {
        if self.area.tree.stat(name)?.is_some() {
            return Ok(());
        }
        // A directory that isn't empty is never moved, not even for an instant.
        match self.in_tree(&item.path)? {
            None => return Ok(()),
            Some(held) if held.entry.is_none() => return Ok(()),
            Some(_) => {}
        }
        let (tree, area) = (self.site.tree, &self.area.tree);
        match tree.rename_into(&item.path, area, name, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(error) if error.is_absence() => return Ok(()),
            Err(error) => return Err(error),
        }
        match self.in_area(name)? {
            Some(held) if !held.is(item.after.as_ref()) => self.give(name, &item.path),
            _ => Ok(()),
        }
    }

    /// Puts what was taken out back at its path.
    pub(super) fn put_old_back(&self, item: &Item) -> Result<(), TreeError> {
        self.give(&item.old_name(item.round), &item.path)
    }

    fn put_stand_in_back(&self, item: &Item, name: &RelPath) -> Result<(), TreeError> {
        let there = self.site.tree.stat(&item.path)?;
        match there {
            Some(stat) if stat.kind == FileKind::Directory => match self.area.tree.remove(name) {
                Err(error) if !error.is_absence() => Err(error),
                _ => Ok(()),
            },
            Some(_) => Ok(()),
            None if self.area.tree.stat(name)?.is_some() => self.give(name, &item.path),
            None => Ok(()),
        }
    }

    /// Moves an entry of the staging directory to a path, unless someone has created that path: then it is kept.
    fn give(&self, name: &RelPath, path: &RelPath) -> Result<(), TreeError> {
        let give = || {
            self.area
                .tree
                .rename_into(name, self.site.tree, path, RenameFlags::NOREPLACE)
        };
        let given = match give() {
            Err(TreeError::NotFound { .. }) => {
                // Someone else has removed its parent directory as well.
                match self.site.tree.make_parents(path) {
                    Ok(()) => give(),
                    Err(error) => Err(error),
                }
            }
            given => given,
        };
        match given {
            Ok(()) | Err(TreeError::Exists { .. }) => Ok(()),
            // It can no longer be put there, so it is kept.
            Err(error) if error.is_absence() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
