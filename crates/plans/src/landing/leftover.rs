//! What others wrote, which must not be lost with the staging directory.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek};
use std::path::PathBuf;

use crate::landing::area::{Area, staging};
use crate::landing::error::LandError;
use crate::landing::item::{self, Item};
use crate::landing::journal::Landing;
use crate::landing::run::{LandingRun, PathState};
use crate::landing::site::LandingSite;
use crate::landing::steps::StepKind;
use crate::tree::{entry_of_open, stat_of};
use crate::{Entry, FileKind, FileStat, RelPath, TreeError};

/// How much older a file's mtime must be than its last rename, so that the two times alone prove that it wasn't written
/// since. File system clocks tick in up to 10 ms.
const SURELY_OLDER_NS: i128 = 100_000_000;

/// Something that someone wrote or had, and that isn't in the tree. It stays in the staging directory until that is
/// cleaned.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Leftover {
    pub path: RelPath,
    pub kind: FileKind,
    /// Its exact entry, if it is a file or a symlink.
    pub entry: Option<Entry>,
    /// Whether it was at the path before the landing, and wasn't written in the meantime.
    pub was_there: bool,
    pub(super) at: RelPath,
}

impl Leftover {
    /// Its name in the staging directory, unique within the landing.
    #[must_use]
    pub fn name(&self) -> String {
        self.at.to_string()
    }
}

#[derive(Debug)]
pub enum LeftoverSource {
    /// At this path, for the duration of the call.
    Path(PathBuf),
    /// In this file, after its last name was removed. The file is positioned at its start.
    File(File),
}

/// Keeps something that would otherwise be removed with the staging directory.
pub type Keep<'a> = dyn FnMut(&Leftover, LeftoverSource) -> io::Result<()> + 'a;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EndState {
    Landed,
    TakenBack,
}

pub(super) fn clean(
    site: &LandingSite<'_>,
    landing: &Landing,
    seen: &[Leftover],
    keep: &mut Keep<'_>,
) -> Result<(), LandError> {
    let Some(area) = Area::find(site.tree, site.staging, &landing.id)? else {
        return Ok(());
    };
    let run = LandingRun { site, area: &area };
    if area.is_complete()? {
        let failed = |error| staging(area.tree.path(), error);
        let end = if area.is_back()? {
            EndState::TakenBack
        } else {
            EndState::Landed
        };
        let names = run.names().map_err(failed)?;
        for mut item in item::in_order(landing)? {
            run.read_notes(&mut item)?;
            // It was checked when the outcome was determined; here we ask whether someone wrote to it since.
            item.out = run.unwritten(&item);
            for (round, name) in item.names().filter(|(_, name)| names.contains(name.name())) {
                run.remove_one(&item, (round, name), end, seen, keep)
                    .map_err(failed)?;
            }
        }
    }
    run.reached(StepKind::Cleaning, None);
    area.remove(site.tree)?;
    run.reached(StepKind::Cleaned, None);
    Ok(())
}

impl LandingRun<'_> {
    fn names(&self) -> Result<HashSet<OsString>, TreeError> {
        let names = self.area.tree.list(None)?.into_iter();
        Ok(names.map(|(name, _)| name).collect())
    }

    /// Everything in the staging directory that is neither what we expected at its path nor what we wanted there.
    pub(super) fn kept(&self, items: &[Item], end: EndState) -> Result<Vec<Leftover>, TreeError> {
        let names = self.names()?;
        let mut kept = Vec::new();
        for item in items {
            for (round, name) in item.names().filter(|(_, name)| names.contains(name.name())) {
                kept.extend(self.to_keep(item, (round, &name), end)?);
            }
        }
        Ok(kept)
    }

    /// Checks one file of the staging directory, removes it, and checks it again: a program that has it open may have
    /// written in between. So a write can go unseen only during one removal, however large the landing is.
    fn remove_one(
        &self,
        item: &Item,
        (round, name): (u32, RelPath),
        end: EndState,
        seen: &[Leftover],
        keep: &mut Keep<'_>,
    ) -> Result<(), TreeError> {
        let failed = |source| TreeError::Io {
            what: "keep what was written to",
            path: item.path.to_string(),
            source,
        };
        let mut open = match self.area.tree.open_file(&name) {
            Ok(file) => Some(file),
            Err(TreeError::NotAFile { .. } | TreeError::IsADirectory { .. } | TreeError::NotFound { .. }) => {
                None
            }
            Err(error) => return Err(error),
        };
        let before = open.as_ref().map(|file| stat_of(&name, file)).transpose()?;
        let found = self.to_keep(item, (round, &name), end)?;
        if let Some(found) = found.as_ref().filter(|found| !seen.contains(found)) {
            keep(found, LeftoverSource::Path(self.area.tree.through(&name))).map_err(failed)?;
        }
        self.reached(StepKind::Removing, Some(&item.path));
        self.area.tree.remove_all(&name)?;
        self.reached(StepKind::Removed, Some(&item.path));
        let (Some(mut file), Some(before)) = (open.take(), before) else {
            return Ok(());
        };
        let after = stat_of(&name, &file)?;
        let same_times = (before.modified_ns, before.size) == (after.modified_ns, after.size);
        if same_times && surely_unwritten(&after) {
            return Ok(());
        }
        let entry = entry_of_open(&name, &mut file)?;
        let is_kept = found.is_some_and(|found| found.entry.as_ref() == Some(&entry));
        if is_kept || self.is_known(item, &entry, end)? {
            return Ok(());
        }
        let late = Leftover {
            path: item.path.clone(),
            kind: FileKind::File,
            was_there: false,
            entry: Some(entry),
            at: name.clone(),
        };
        file.rewind().map_err(failed)?;
        keep(&late, LeftoverSource::File(file)).map_err(failed)
    }

    /// What must not be lost of an entry in the staging directory, if anything.
    fn to_keep(
        self,
        item: &Item,
        (round, name): (u32, &RelPath),
        end: EndState,
    ) -> Result<Option<Leftover>, TreeError> {
        if end == EndState::Landed && round == item.round && self.is_as_seen(item, name)? {
            return Ok(None);
        }
        let Some(PathState { entry, stat }) = self.in_area(name)? else {
            return Ok(None);
        };
        match &entry {
            // An empty directory is ours, or a stand-in.
            Some(Entry::Directory) => return Ok(None),
            Some(entry) if self.is_known(item, entry, end)? => return Ok(None),
            _ => {}
        }
        let first = item.earlier.first().map_or(&item.before, |(before, _)| before);
        Ok(Some(Leftover {
            path: item.path.clone(),
            kind: stat.kind,
            was_there: entry.is_some() && entry == *first,
            entry,
            at: name.clone(),
        }))
    }

    /// Whether a content can be removed without loss: it is ours, was merged, or is in the tree.
    fn is_known(&self, item: &Item, entry: &Entry, end: EndState) -> Result<bool, TreeError> {
        let rounds = || {
            let present = (&item.before, &item.after);
            let earlier = item.earlier.iter().map(|(before, after)| (before, after));
            earlier.chain([present])
        };
        let is = |known: &Option<Entry>| known.as_ref() == Some(entry);
        if rounds().any(|(_, after)| is(after)) {
            return Ok(true);
        }
        match end {
            EndState::Landed => Ok(rounds().any(|(before, _)| is(before))),
            EndState::TakenBack => Ok(self.in_tree(&item.path)?.is_some_and(|held| held.is(Some(entry)))),
        }
    }

    /// Whether what came out is unchanged since the last check, as far as times can prove it.
    fn is_as_seen(&self, item: &Item, name: &RelPath) -> Result<bool, TreeError> {
        let Some(seen) = item.out.filter(surely_unwritten) else {
            return Ok(false);
        };
        Ok(self.area.tree.stat(name)? == Some(seen))
    }

    /// The stat data of what came out, if its times prove that it wasn't written since.
    fn unwritten(&self, item: &Item) -> Option<FileStat> {
        [item.new_name(item.round), item.old_name(item.round)]
            .iter()
            .find_map(|name| self.area.tree.stat(name).ok().flatten())
            .filter(surely_unwritten)
    }
}

/// A rename sets the ctime and leaves the mtime. If the two are apart, there was no write since: a write would have
/// set both.
fn surely_unwritten(stat: &FileStat) -> bool {
    stat.changed_ns - stat.modified_ns > SURELY_OLDER_NS
}
