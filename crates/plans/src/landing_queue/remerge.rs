//! Merging again when someone saved a file while it was being replaced.

use std::collections::HashMap;
use std::io;

use bytes::Bytes;
use eventlog::BlobId;

use super::target::LandingTarget;
use crate::attributes::Attributes;
use crate::landing::{Remerge, Remerged, SavedMeanwhile};
use crate::log_contents::LogContents;
use crate::{
    Change, Conflict, ConflictKind, ContentSink, Contents, Effect, Entry, MergeDriver, Ours, RelPath,
    merge_changes,
};

/// Merges the changes of a landing with what someone has saved in the meantime.
pub(super) struct LandingRemerge<'a> {
    effects: HashMap<&'a RelPath, &'a Effect>,
    contents: &'a LogContents,
    place: &'a LandingTarget,
}

impl<'a> LandingRemerge<'a> {
    pub(super) fn new(effects: &'a [Effect], contents: &'a LogContents, place: &'a LandingTarget) -> Self {
        Self {
            effects: effects.iter().map(|effect| (&effect.path, effect)).collect(),
            contents,
            place,
        }
    }
}

impl Remerge for LandingRemerge<'_> {
    fn again(&self, path: &RelPath, found: Option<&SavedMeanwhile>) -> Result<Remerged, Box<Conflict>> {
        let conflict = || {
            let effect = self.effects.get(path);
            Box::new(Conflict {
                path: path.clone(),
                kind: ConflictKind::Moving,
                base: effect.and_then(|effect| effect.before.clone()),
                ours: found.map(|found| found.entry.clone()),
                theirs: effect.and_then(|effect| effect.after.clone()),
                other: None,
                hunks: Vec::new(),
            })
        };
        let effect = self.effects.get(path).ok_or_else(conflict)?;
        let change = Change {
            path: path.clone(),
            before: effect.before.clone(),
            after: effect.after.clone(),
            from: None,
        };
        let driver = self
            .place
            .with_tree(|tree| Attributes::of(tree).merge_driver(path))
            .map_err(|_| conflict())?;
        let ours = One { path, found, driver };
        let merged = merge_changes(
            &[change],
            &ours,
            &WithFound {
                found,
                then: self.contents,
            },
        );
        let merged = merged.map_err(|_| conflict())?;
        if let Some(conflict) = merged.conflicts.into_iter().next() {
            return Err(Box::new(conflict));
        }
        let after = match merged.effects.into_iter().find(|effect| effect.path == *path) {
            Some(effect) => effect.after,
            // The save made the same change.
            None => found.map(|found| found.entry.clone()),
        };
        let made = after.as_ref().and_then(Entry::content).and_then(|id| {
            let is_theirs = found.is_some_and(|found| found.entry.content() == Some(id));
            if is_theirs {
                return found.and_then(|found| found.content.clone());
            }
            merged.made.get(&id).cloned()
        });
        // The saved and the merged content may no longer be in the tree when the log refers to them.
        let saved = found.and_then(|found| found.content.as_ref());
        for content in saved.into_iter().chain(&made) {
            self.contents.keep(content).map_err(|_| conflict())?;
        }
        Ok(Remerged { after, made })
    }
}

struct One<'a> {
    path: &'a RelPath,
    found: Option<&'a SavedMeanwhile>,
    driver: MergeDriver,
}

impl Ours for One<'_> {
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>> {
        if path == self.path {
            return Ok(self.found.map(|found| found.entry.clone()));
        }
        // Its parent directories exist: something was saved in them, or the landing has made them.
        Ok(self.path.is_below(path).then_some(Entry::Directory))
    }

    fn has_others(&self, _: &RelPath, _: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
        Ok(false)
    }

    fn find(&self, _: BlobId) -> Option<RelPath> {
        None
    }

    fn merge_driver(&self, _: &RelPath) -> MergeDriver {
        self.driver
    }
}

struct WithFound<'a> {
    found: Option<&'a SavedMeanwhile>,
    then: &'a dyn Contents,
}

impl Contents for WithFound<'_> {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        let found = self.found.filter(|found| found.entry.content() == Some(id));
        match found.and_then(|found| found.content.clone()) {
            Some(content) => Ok(content),
            None => self.then.get(id),
        }
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        match self.found.filter(|found| found.entry.content() == Some(id)) {
            Some(SavedMeanwhile {
                content: Some(content),
                ..
            }) => to.write_all(content),
            _ => self.then.copy_to(id, to),
        }
    }
}
