//! The merge of several lists of changes, each on top of the result of the ones before it.

use std::collections::{BTreeMap, HashMap};
use std::io;

use bytes::Bytes;
use eventlog::BlobId;

use super::changes::merge_changes;
use super::types::{Conflict, Effect, MergeDriver, Ours};
use crate::{Change, ContentSink, Contents, Entry, RelPath};

/// The result of merging several lists. If there are conflicts, none of it may be carried out.
#[derive(Clone, Debug, Default)]
pub struct MergedAll {
    /// All effects together, in path order.
    pub effects: Vec<Effect>,
    /// What each list adds to the result of the ones before it.
    pub each: Vec<Vec<Effect>>,
    /// Contents that neither side had.
    pub made: HashMap<BlobId, Bytes>,
    /// Paths that were merged from changes of more than one side, in path order.
    pub combined: Vec<RelPath>,
    pub conflicts: Vec<ListConflict>,
}

/// A path in one of several lists that can't be merged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListConflict {
    pub list: usize,
    /// The conflict, with the tree or with an earlier list.
    pub conflict: Conflict,
}

/// Merges lists of changes into a tree, one after the other. A list that has conflicts is left out when merging the
/// later ones, so that they still report their own conflicts.
pub fn merge_all(lists: &[&[Change]], ours: &dyn Ours, contents: &dyn Contents) -> io::Result<MergedAll> {
    let mut all = MergedAll::default();
    let mut tree = Layered {
        below: ours,
        effects: BTreeMap::new(),
    };
    for (list, changes) in lists.iter().enumerate() {
        let merged = merge_changes(
            changes,
            &tree,
            &LayeredContents {
                made: &all.made,
                below: contents,
            },
        )?;
        if !merged.conflicts.is_empty() {
            all.each.push(Vec::new());
            let conflicts = merged.conflicts.into_iter();
            all.conflicts
                .extend(conflicts.map(|conflict| ListConflict { list, conflict }));
            continue;
        }
        tree.add(&merged.effects);
        all.each.push(merged.effects);
        all.made.extend(merged.made);
        all.combined.extend(merged.combined);
    }
    all.combined.sort();
    all.combined.dedup();
    let effects = tree.effects.into_values();
    all.effects = effects.filter(|effect| effect.before != effect.after).collect();
    Ok(all)
}

/// A tree as it would be after some effects.
struct Layered<'a> {
    below: &'a dyn Ours,
    effects: BTreeMap<RelPath, Effect>,
}

impl Layered<'_> {
    fn add(&mut self, effects: &[Effect]) {
        for effect in effects {
            self.effects
                .entry(effect.path.clone())
                .and_modify(|earlier| earlier.after.clone_from(&effect.after))
                .or_insert_with(|| effect.clone());
        }
    }

    fn is_gone(&self, path: &RelPath) -> bool {
        self.effects
            .get(path)
            .is_some_and(|effect| effect.after.is_none())
    }
}

impl Ours for Layered<'_> {
    fn at(&self, path: &RelPath) -> io::Result<Option<Entry>> {
        match self.effects.get(path) {
            Some(effect) => Ok(effect.after.clone()),
            None => self.below.at(path),
        }
    }

    fn has_others(&self, directory: &RelPath, beside: &dyn Fn(&RelPath) -> bool) -> io::Result<bool> {
        let mut made = self.effects.values().filter(|effect| effect.after.is_some());
        if made.any(|effect| effect.path.is_below(directory) && !beside(&effect.path)) {
            return Ok(true);
        }
        if matches!(self.effects.get(directory), Some(effect) if effect.before.is_none()) {
            return Ok(false);
        }
        self.below
            .has_others(directory, &|path| beside(path) || self.is_gone(path))
    }

    fn merge_driver(&self, path: &RelPath) -> MergeDriver {
        self.below.merge_driver(path)
    }

    fn find(&self, content: BlobId) -> Option<RelPath> {
        let has_it = |entry: &Option<Entry>| entry.as_ref().and_then(Entry::content) == Some(content);
        let mut effects = self.effects.values();
        match effects.find(|effect| has_it(&effect.after)) {
            Some(effect) => Some(effect.path.clone()),
            None => self
                .below
                .find(content)
                .filter(|path| !self.effects.contains_key(path)),
        }
    }
}

struct LayeredContents<'a> {
    made: &'a HashMap<BlobId, Bytes>,
    below: &'a dyn Contents,
}

impl Contents for LayeredContents<'_> {
    fn get(&self, id: BlobId) -> io::Result<Bytes> {
        match self.made.get(&id) {
            Some(content) => Ok(content.clone()),
            None => self.below.get(id),
        }
    }

    fn copy_to(&self, id: BlobId, to: &mut dyn ContentSink) -> io::Result<()> {
        match self.made.get(&id) {
            Some(content) => to.write_all(content),
            None => self.below.copy_to(id, to),
        }
    }
}
