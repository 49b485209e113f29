//! The net result of a sequence of changes, and its inverse.

use std::collections::{BTreeMap, HashSet};

use crate::{Change, Entry, RelPath};

/// The net result of a sequence of changes so far. A plan's changes are added one by one as they are recorded.
///
/// It is exact: carrying out [`changes`](Self::changes) gives the same tree as carrying out the sequence.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Net {
    paths: BTreeMap<RelPath, Touched>,
}

/// A path that a sequence of changes touched.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Touched {
    first: Option<Entry>,
    now: Option<Entry>,
    /// Where the current entry was before the first change: here, elsewhere if it was renamed, `None` if it was
    /// created since.
    origin: Option<RelPath>,
}

impl Net {
    pub fn add(&mut self, change: &Change) {
        let origin = match &change.from {
            Some(from) => {
                let old = self.touch(from, change.before.as_ref());
                old.now = None;
                old.origin.take()
            }
            None => None,
        };
        let before = change.before.as_ref().filter(|_| change.from.is_none());
        let new = self.touch(&change.path, before);
        if change.from.is_some() {
            new.origin = origin;
        } else if change.before.is_none() || change.after.is_none() {
            // A new entry has no history, and neither has a deleted one.
            new.origin = None;
        }
        new.now.clone_from(&change.after);
    }

    /// The net changes, in path order, with at most one per path.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let renames: BTreeMap<&RelPath, &RelPath> = self
            .paths
            .iter()
            .filter_map(|(path, touched)| Some((path, self.renamed_from(path, touched)?)))
            .collect();
        let left: HashSet<&RelPath> = renames.values().copied().collect();
        let kept = self.paths.iter().filter(|(path, _)| !left.contains(path));
        kept.filter_map(|(path, touched)| {
            let from = renames.get(path).copied();
            let before = match from {
                Some(from) => &self.paths.get(from)?.first,
                None => &touched.first,
            };
            (from.is_some() || *before != touched.now).then(|| Change {
                path: path.clone(),
                before: before.clone(),
                after: touched.now.clone(),
                from: from.cloned(),
            })
        })
        .collect()
    }

    /// The entries at the paths that differ; `None` for deleted ones.
    #[must_use]
    pub fn since(&self) -> BTreeMap<RelPath, Option<Entry>> {
        let changed = self
            .paths
            .iter()
            .filter(|(_, touched)| touched.first != touched.now);
        changed
            .map(|(path, touched)| (path.clone(), touched.now.clone()))
            .collect()
    }

    /// The entry at a path, if the sequence touched it.
    #[must_use]
    pub fn at(&self, path: &RelPath) -> Option<Option<&Entry>> {
        Some(self.paths.get(path)?.now.as_ref())
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.values().all(|touched| touched.first == touched.now)
    }

    fn touch(&mut self, path: &RelPath, before: Option<&Entry>) -> &mut Touched {
        self.paths.entry(path.clone()).or_insert_with(|| Touched {
            first: before.cloned(),
            now: before.cloned(),
            origin: before.map(|_| path.clone()),
        })
    }

    /// A change can be described as a rename if the new path was free before and the old one is now.
    fn renamed_from<'a>(&'a self, path: &RelPath, touched: &'a Touched) -> Option<&'a RelPath> {
        let origin = touched.origin.as_ref().filter(|origin| *origin != path)?;
        let left = self.paths.get(origin)?;
        let is_rename =
            touched.first.is_none() && touched.now.is_some() && left.first.is_some() && left.now.is_none();
        is_rename.then_some(origin)
    }
}

impl<'a> Extend<&'a Change> for Net {
    fn extend<I: IntoIterator<Item = &'a Change>>(&mut self, changes: I) {
        changes.into_iter().for_each(|change| self.add(change));
    }
}

impl<'a> FromIterator<&'a Change> for Net {
    fn from_iter<I: IntoIterator<Item = &'a Change>>(changes: I) -> Self {
        let mut net = Self::default();
        net.extend(changes);
        net
    }
}

/// The net result of a sequence of changes, in path order, with at most one change per path.
pub fn fold<'a>(changes: impl IntoIterator<Item = &'a Change>) -> Vec<Change> {
    Net::from_iter(changes).changes()
}

/// The changes that revert others, in reverse order. [`fold`] brings them into path order.
#[must_use]
pub fn invert(changes: &[Change]) -> Vec<Change> {
    let inverse = changes.iter().rev().map(|change| Change {
        path: change.from.as_ref().unwrap_or(&change.path).clone(),
        before: change.after.clone(),
        after: change.before.clone(),
        from: change.from.as_ref().map(|_| change.path.clone()),
    });
    inverse.collect()
}
