//! The merge of a list of changes into a tree: first each path on its own, then how paths affect each other.

use std::collections::{BTreeMap, HashSet};
use std::io;

use bytes::Bytes;
use eventlog::BlobId;
use protocol::PlanConflictHunk;

use super::entry::{EntryMerge, MergeFiles, Texts, merge_entry};
use super::fold::fold;
use super::types::{Conflict, ConflictKind, Effect, Merged, Ours};
use crate::{Change, Contents, Entry, RelPath};

/// Merges the changes of a plan into a tree that may have changed as well. The order of the changes doesn't
/// matter, except for several changes to one path, which are applied in their order.
///
/// The effects are complete: they include missing parent directories. A directory that the plan deleted stays if
/// anything is left in it.
pub fn merge_changes(changes: &[Change], ours: &dyn Ours, mut contents: &dyn Contents) -> io::Result<Merged> {
    let mut merge = Merge::new(ours, &mut contents);
    for change in fold(changes) {
        merge.add(&change)?;
    }
    merge.finish()
}

pub(crate) struct Merge<'a> {
    ours: &'a dyn Ours,
    texts: &'a mut dyn MergeFiles,
    effects: BTreeMap<RelPath, Effect>,
    merged: Merged,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(ours: &'a dyn Ours, texts: &'a mut dyn MergeFiles) -> Self {
        Self {
            ours,
            texts,
            effects: BTreeMap::new(),
            merged: Merged::default(),
        }
    }

    fn merge_at(
        &mut self,
        path: &RelPath,
        base: Option<&Entry>,
        ours: Option<&Entry>,
        theirs: Option<&Entry>,
    ) -> io::Result<EntryMerge> {
        let tree = self.ours;
        let mut texts = Texts {
            files: self.texts,
            driver: &|| tree.merge_driver(path),
        };
        merge_entry(base, ours, theirs, &mut texts)
    }

    pub(crate) fn add(&mut self, change: &Change) -> io::Result<()> {
        let new = self.ours.at(&change.path)?;
        let Some(from) = &change.from else {
            let outcome = self.merge_at(
                &change.path,
                change.before.as_ref(),
                new.as_ref(),
                change.after.as_ref(),
            )?;
            self.settle(change, change.before.clone(), new, outcome);
            return Ok(());
        };
        let old = self.ours.at(from)?;
        match (old, new) {
            (Some(old), None) => self.add_move(change, from, old),
            (None, None) => {
                let moved = self.moved(change.before.as_ref());
                let kind = match moved {
                    Some(_) => ConflictKind::BothRenamed,
                    None => ConflictKind::DeletedByWorkspace,
                };
                let other = moved.unwrap_or_else(|| from.clone());
                self.conflict(change, change.before.clone(), None, kind, Some(other), Vec::new());
                Ok(())
            }
            // The workspace has renamed it to the same path.
            (None, Some(new)) if is_same_content(&new, change.before.as_ref()) => {
                let outcome = self.merge_at(
                    &change.path,
                    change.before.as_ref(),
                    Some(&new),
                    change.after.as_ref(),
                )?;
                self.settle(change, change.before.clone(), Some(new), outcome);
                Ok(())
            }
            (old, new) => {
                let outcome = self.merge_at(&change.path, None, new.as_ref(), change.after.as_ref())?;
                self.settle(change, None, new, outcome);
                // The new path is as wanted, or it is a conflict. Either way, the old one has to be removed.
                self.add_deletion(change, from, old)
            }
        }
    }

    /// The plan renamed a file that the workspace still has at the old path.
    fn add_move(&mut self, change: &Change, from: &RelPath, old: Entry) -> io::Result<()> {
        let outcome = self.merge_at(
            &change.path,
            change.before.as_ref(),
            Some(&old),
            change.after.as_ref(),
        )?;
        let (wanted, content) = match outcome {
            EntryMerge::Keep => (Some(old.clone()), None),
            EntryMerge::Take => (change.after.clone(), None),
            EntryMerge::Combine(entry, content) => (Some(entry), content),
            EntryMerge::Conflict(kind, hunks) => {
                let other = Some(from.clone());
                self.conflict(change, change.before.clone(), Some(old), kind, other, hunks);
                return Ok(());
            }
        };
        if Some(&old) != change.before.as_ref() {
            self.merged.combined.push(change.path.clone());
        }
        self.make(&wanted, content);
        self.effect(&change.path, None, wanted);
        self.effect(from, Some(old), None);
        Ok(())
    }

    fn add_deletion(&mut self, change: &Change, path: &RelPath, ours: Option<Entry>) -> io::Result<()> {
        let outcome = self.merge_at(path, change.before.as_ref(), ours.as_ref(), None)?;
        let deletion = Change {
            path: path.clone(),
            before: change.before.clone(),
            after: None,
            from: None,
        };
        self.settle(&deletion, change.before.clone(), ours, outcome);
        Ok(())
    }

    fn settle(&mut self, change: &Change, base: Option<Entry>, ours: Option<Entry>, outcome: EntryMerge) {
        match outcome {
            EntryMerge::Keep => {}
            EntryMerge::Take => self.effect(&change.path, ours, change.after.clone()),
            EntryMerge::Combine(entry, content) => {
                self.merged.combined.push(change.path.clone());
                let wanted = Some(entry);
                self.make(&wanted, content);
                self.effect(&change.path, ours, wanted);
            }
            EntryMerge::Conflict(kind, hunks) => {
                let other = match kind {
                    ConflictKind::DeletedByWorkspace => self.moved(base.as_ref()),
                    _ => change.from.clone(),
                };
                self.conflict(change, base, ours, kind, other, hunks);
            }
        }
    }

    /// Where the workspace has moved something, as far as it can tell. An empty file would match everywhere.
    fn moved(&self, entry: Option<&Entry>) -> Option<RelPath> {
        match entry? {
            Entry::File { hash, size: 1.., .. } => self.ours.find(*hash),
            Entry::File { .. } | Entry::Symlink { .. } | Entry::Directory => None,
        }
    }

    fn make(&mut self, entry: &Option<Entry>, content: Option<Bytes>) {
        let hash: Option<BlobId> = entry.as_ref().and_then(Entry::content);
        self.merged.made.extend(hash.zip(content));
    }

    fn effect(&mut self, path: &RelPath, before: Option<Entry>, after: Option<Entry>) {
        if before != after {
            let path = path.clone();
            self.effects.insert(path.clone(), Effect { path, before, after });
        }
    }

    fn conflict(
        &mut self,
        change: &Change,
        base: Option<Entry>,
        ours: Option<Entry>,
        kind: ConflictKind,
        other: Option<RelPath>,
        hunks: Vec<PlanConflictHunk>,
    ) {
        self.merged.conflicts.push(Conflict {
            path: change.path.clone(),
            kind,
            base,
            ours,
            theirs: change.after.clone(),
            other,
            hunks,
        });
    }

    /// Whether there are conflicts so far, looking at each path on its own.
    pub(crate) fn has_conflicts(&self) -> bool {
        !self.merged.conflicts.is_empty()
    }

    /// Resolves how the paths affect each other, and returns the result.
    pub(crate) fn finish(mut self) -> io::Result<Merged> {
        self.make_directories()?;
        self.empty_directories()?;
        self.merged.effects = self.effects.into_values().collect();
        self.merged.combined.sort();
        self.merged
            .conflicts
            .sort_by(|one, other| one.path.cmp(&other.path));
        Ok(self.merged)
    }

    /// Adds the parent directories of everything that will exist.
    fn make_directories(&mut self) -> io::Result<()> {
        let in_conflict: HashSet<RelPath> = self
            .merged
            .conflicts
            .iter()
            .map(|conflict| conflict.path.clone())
            .collect();
        let present = self.effects.values().filter(|effect| effect.after.is_some());
        let present: Vec<Effect> = present.cloned().collect();
        let mut seen = HashSet::new();
        for effect in present {
            for directory in effect.path.ancestors() {
                if in_conflict.contains(&directory) {
                    break;
                }
                if seen.contains(&directory) {
                    continue;
                }
                let found = match self.effects.get(&directory) {
                    // It was to be deleted, but won't be: something is in it.
                    Some(Effect {
                        after: None,
                        before: Some(Entry::Directory),
                        ..
                    }) => Some(Entry::Directory),
                    Some(effect) => effect.after.clone(),
                    None => self.ours.at(&directory)?,
                };
                match found {
                    Some(Entry::Directory) => {}
                    None => {
                        let before = self.effects.remove(&directory).and_then(|effect| effect.before);
                        self.effect(&directory, before, Some(Entry::Directory));
                    }
                    Some(_) => {
                        let change = Change {
                            path: effect.path.clone(),
                            before: None,
                            after: effect.after.clone(),
                            from: None,
                        };
                        let kind = ConflictKind::DirectoryAndFile;
                        self.conflict(&change, None, found, kind, Some(directory), Vec::new());
                        break;
                    }
                }
                seen.insert(directory);
            }
        }
        Ok(())
    }

    /// A directory can only be removed if nothing stays in it.
    fn empty_directories(&mut self) -> io::Result<()> {
        let leaves = |effect: &&Effect| {
            effect.before.as_ref().is_some_and(Entry::is_directory)
                && !effect.after.as_ref().is_some_and(Entry::is_directory)
        };
        let leaving: Vec<Effect> = self.effects.values().filter(leaves).cloned().collect();
        let present = self.effects.values().filter(|effect| effect.after.is_some());
        let inhabited: HashSet<RelPath> = present.flat_map(|effect| effect.path.ancestors()).collect();
        // Innermost first: a directory that stays keeps its parents.
        for effect in leaving.into_iter().rev() {
            let goes = |path: &RelPath| {
                self.effects
                    .get(path)
                    .is_some_and(|effect| effect.after.is_none())
            };
            let is_used = inhabited.contains(&effect.path) || self.ours.has_others(&effect.path, &goes)?;
            if !is_used {
                continue;
            }
            self.effects.remove(&effect.path);
            if effect.after.is_some() {
                let change = Change {
                    path: effect.path,
                    before: effect.before.clone(),
                    after: effect.after,
                    from: None,
                };
                let (base, kind) = (effect.before.clone(), ConflictKind::DirectoryAndFile);
                self.conflict(&change, base, effect.before, kind, None, Vec::new());
            }
        }
        Ok(())
    }
}

fn is_same_content(entry: &Entry, other: Option<&Entry>) -> bool {
    match (entry.content(), other.and_then(Entry::content)) {
        (Some(one), Some(other)) => one == other,
        _ => Some(entry) == other,
    }
}
