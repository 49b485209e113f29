//! Carrying out a landing: one path after the other, each in one kernel operation, and each checked afterwards.

use std::collections::BTreeSet;

use rustix::fs::RenameFlags;

use crate::landing::error::{LandError, LandingEnd, WhyRolledBack};
use crate::landing::item::{Item, Operation};
use crate::landing::leftover::EndState;
use crate::landing::run::{LandingRun, Stop, in_the_way};
use crate::landing::steps::StepKind;
use crate::{ConflictKind, Entry, FileAttributes, FileKind, RelPath, TreeError};

/// The maximum number of directories to sync one by one; see the same constant for files.
const SYNC_ONE_BY_ONE: usize = 64;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    NotYet,
    Done,
    Changed,
}

impl LandingRun<'_> {
    pub(super) fn carry_out(&self, items: &mut [Item]) -> Result<LandingEnd, LandError> {
        self.bring_to_an_end(items, |_, _| Ok(Progress::NotYet))
    }

    /// Carries everything out, each path from the state in `progress`, or rolls everything back.
    pub(super) fn bring_to_an_end(
        &self,
        items: &mut [Item],
        progress: impl Fn(&Self, &mut Item) -> Result<Progress, Stop>,
    ) -> Result<LandingEnd, LandError> {
        let carried = items.iter_mut().try_for_each(|item| {
            let progress = progress(self, item)?;
            self.carry(item, progress)
        });
        let landed = carried.and_then(|()| {
            self.reached(StepKind::AllCarriedOut, None);
            self.sync_directories(items)?;
            self.reached(StepKind::DirectoriesSynced, None);
            Ok(self.kept(items, EndState::Landed)?)
        });
        match landed {
            Ok(kept) => {
                let done = items.iter().filter(|item| item.operation() != Operation::Nothing);
                let mut effects: Vec<_> = done.map(Item::effect).collect();
                effects.sort_by(|one, other| one.path.cmp(&other.path));
                Ok(LandingEnd::Landed { effects, kept })
            }
            Err(Stop::Conflict(conflict)) => self.roll_back(items, WhyRolledBack::Conflicts(vec![*conflict])),
            Err(Stop::Failed(error)) => self.roll_back(items, WhyRolledBack::Failed(error)),
        }
    }

    /// Finishes one path, whatever state it is in.
    fn carry(&self, item: &mut Item, mut progress: Progress) -> Result<(), Stop> {
        loop {
            match progress {
                Progress::Done => return Ok(()),
                Progress::NotYet => progress = self.attempt(item)?,
                Progress::Changed => {
                    self.again(item)?;
                    progress = Progress::NotYet;
                }
            }
        }
    }

    fn attempt(&self, item: &mut Item) -> Result<Progress, Stop> {
        match item.operation() {
            Operation::Nothing => Ok(Progress::Done),
            Operation::Create => self.create(item),
            Operation::Replace => self.replace(item),
            Operation::Delete => self.delete(item),
            Operation::DeleteDirectory => self.delete_directory(item),
            Operation::ReplaceDirectory => match self.stand_in(item)? {
                Progress::Done => self.create(item),
                progress => Ok(progress),
            },
        }
    }

    fn create(&self, item: &mut Item) -> Result<Progress, Stop> {
        let name = item.new_name(item.round);
        if let Some(attributes) = &item.attributes {
            self.give_attributes(item, &name, attributes)?;
        }
        self.area.tree.touch(&name)?;
        self.reached(StepKind::PuttingIn, Some(&item.path));
        match self
            .area
            .tree
            .rename_into(&name, self.site.tree, &item.path, RenameFlags::NOREPLACE)
        {
            Ok(()) => {
                self.reached(StepKind::PutIn, Some(&item.path));
                Ok(Progress::Done)
            }
            Err(TreeError::Exists { .. }) => Ok(Progress::Changed),
            Err(error) => Err(self.no_way(item, error)),
        }
    }

    fn replace(&self, item: &mut Item) -> Result<Progress, Stop> {
        if self.is_saved_over(item)? {
            return Ok(Progress::Changed);
        }
        let name = item.new_name(item.round);
        self.hand_on_attributes(item, &name)?;
        self.area.tree.touch(&name)?;
        self.reached(StepKind::Exchanging, Some(&item.path));
        match self.exchange(item, &name) {
            Ok(()) => {}
            Err(TreeError::Exists { .. }) => return Ok(Progress::Changed),
            Err(TreeError::NotFound { .. }) if self.parent_is_there(item)? => return Ok(Progress::Changed),
            Err(error) => return Err(self.no_way(item, error)),
        }
        self.reached(StepKind::Exchanged, Some(&item.path));
        self.look_at_exchanged(item)
    }

    /// Copies metadata from the user's file to the new one: access lists, other extended attributes, the owner, and
    /// set-user-id and similar bits. If something other than a file is there, uses what is known about the new file.
    fn hand_on_attributes(&self, item: &Item, name: &RelPath) -> Result<(), TreeError> {
        let is_file = |entry: &Option<Entry>| matches!(entry, Some(Entry::File { .. }));
        let attributes = match is_file(&item.before) {
            true => self.site.tree.attributes(&item.path)?,
            false => item.attributes.clone(),
        };
        match attributes {
            Some(attributes) => self.give_attributes(item, name, &attributes),
            None => Ok(()),
        }
    }

    fn give_attributes(
        &self,
        item: &Item,
        name: &RelPath,
        attributes: &FileAttributes,
    ) -> Result<(), TreeError> {
        let Some(Entry::File { mode, .. }) = &item.after else {
            return Ok(());
        };
        let given = self.area.tree.set_attributes(name, attributes, *mode);
        given.map_err(|error| error.about(&item.path))
    }

    /// Whether someone has already saved the path. Then it isn't moved, not even for an instant: a program that reads
    /// the path in that instant, and later saves what it read, would overwrite that save.
    fn is_saved_over(&self, item: &Item) -> Result<bool, TreeError> {
        let held = self.in_tree(&item.path)?;
        Ok(held.is_some_and(|held| !held.is(item.before.as_ref())))
    }

    /// Checks what came out of an exchange, and puts it back if it isn't what we expected.
    pub(super) fn look_at_exchanged(&self, item: &mut Item) -> Result<Progress, Stop> {
        match self.in_area(&item.new_name(item.round))? {
            Some(held) if held.is(item.before.as_ref()) => {
                item.out = Some(held.stat);
                Ok(Progress::Done)
            }
            _ => {
                self.reached(StepKind::PuttingBack, Some(&item.path));
                self.exchange_back(item)?;
                self.reached(StepKind::PutBack, Some(&item.path));
                Ok(Progress::Changed)
            }
        }
    }

    fn delete(&self, item: &mut Item) -> Result<Progress, Stop> {
        if self.is_saved_over(item)? {
            return Ok(Progress::Changed);
        }
        let name = item.old_name(item.round);
        self.reached(StepKind::TakingOut, Some(&item.path));
        match self
            .site
            .tree
            .rename_into(&item.path, &self.area.tree, &name, RenameFlags::NOREPLACE)
        {
            Ok(()) => {}
            Err(error) if error.is_absence() => {
                self.let_be(item, None)?;
                return Ok(Progress::Done);
            }
            Err(error) => return Err(error.about(&item.path).into()),
        }
        self.reached(StepKind::TakenOut, Some(&item.path));
        self.look_at_taken_out(item)
    }

    /// Checks what was taken out, and puts it back if it isn't what we expected.
    pub(super) fn look_at_taken_out(&self, item: &mut Item) -> Result<Progress, Stop> {
        match self.in_area(&item.old_name(item.round))? {
            Some(held) if held.is(item.before.as_ref()) => {
                item.out = Some(held.stat);
                Ok(Progress::Done)
            }
            _ => {
                self.reached(StepKind::PuttingBack, Some(&item.path));
                self.put_old_back(item)?;
                self.reached(StepKind::PutBack, Some(&item.path));
                Ok(Progress::Changed)
            }
        }
    }

    fn delete_directory(&self, item: &mut Item) -> Result<Progress, Stop> {
        match self.stand_in(item)? {
            // Someone has put a file into it, so it stays.
            Progress::Changed => match self.in_tree(&item.path)? {
                Some(held) if held.stat.kind == FileKind::Directory => {
                    self.let_be(item, Some(Entry::Directory))?;
                    Ok(Progress::Done)
                }
                None => {
                    self.let_be(item, None)?;
                    Ok(Progress::Done)
                }
                held => Err(in_the_way(item, ConflictKind::DirectoryAndFile, held.as_ref())),
            },
            progress => Ok(progress),
        }
    }

    /// Removes an empty directory. It isn't moved out, because a program that is just creating a file in it would lose
    /// that file. A stand-in with the same permissions stays in the staging directory. It is made first: if the
    /// stand-in exists and the directory doesn't, we removed it.
    fn stand_in(&self, item: &mut Item) -> Result<Progress, Stop> {
        let name = item.old_name(item.round);
        let stand_in = self.area.tree.stat(&name)?;
        match self.site.tree.stat(&item.path)? {
            None if stand_in.is_some() => return Ok(Progress::Done),
            Some(stat) if stat.kind == FileKind::Directory => {
                if stand_in.is_none() {
                    self.area.tree.make_directory(&name)?;
                    self.area.tree.set_mode(&name, stat.mode)?;
                    if let Some(attributes) = self.site.tree.attributes(&item.path)? {
                        self.area.tree.set_attributes(&name, &attributes, stat.mode)?;
                    }
                }
            }
            _ => return Ok(Progress::Changed),
        }
        self.reached(StepKind::StandInMade, Some(&item.path));
        match self.site.tree.remove_directory(&item.path) {
            Ok(()) => {
                self.reached(StepKind::TakenOut, Some(&item.path));
                Ok(Progress::Done)
            }
            Err(
                TreeError::NotEmpty { .. }
                | TreeError::Exists { .. }
                | TreeError::NotADirectory { .. }
                | TreeError::NotFound { .. },
            ) => {
                self.area.tree.remove(&name)?;
                Ok(Progress::Changed)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn parent_is_there(&self, item: &Item) -> Result<bool, TreeError> {
        match item.path.parent() {
            None => Ok(true),
            Some(parent) => {
                let stat = self.site.tree.stat(&parent)?;
                Ok(stat.is_some_and(|stat| stat.kind == FileKind::Directory))
            }
        }
    }

    /// The parent directory of a path is missing, or isn't a directory.
    fn no_way(&self, item: &Item, error: TreeError) -> Stop {
        match error {
            TreeError::NotFound { .. } => in_the_way(item, ConflictKind::Moving, None),
            TreeError::NotADirectory { .. } | TreeError::LeadsOut { .. } | TreeError::IsADirectory { .. } => {
                in_the_way(item, ConflictKind::DirectoryAndFile, None)
            }
            error => error.into(),
        }
    }

    /// Syncs the directories of the tree and of the staging directory.
    pub(super) fn sync_directories(&self, items: &[Item]) -> Result<(), TreeError> {
        let parents: BTreeSet<Option<RelPath>> = items.iter().map(|item| item.path.parent()).collect();
        if parents.len() > SYNC_ONE_BY_ONE {
            return self.site.tree.sync_everything();
        }
        for parent in &parents {
            match self.site.tree.sync_directory(parent.as_ref()) {
                // It was removed too; its parent is one of the others.
                Err(error) if error.is_absence() => {}
                synced => synced?,
            }
        }
        self.area.tree.sync_directory(None)
    }
}
