//! Changes that were recorded but not delivered yet.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use notify::{EventKind, event::ModifyKind};

/// How many paths are kept for the next batch: more than a checkout of a large repository changes. Further ones
/// are dropped and counted.
const MAX_PATHS: usize = 50_000;

/// What happened to a file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FileChange {
    /// It exists now.
    Created,
    /// Its content has changed, or may have.
    Changed,
    /// It is gone.
    Deleted,
}

/// A file, and what happened to it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PathChange {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// What happened to it.
    pub change: FileChange,
}

/// The changes that are delivered together.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChangeBatch {
    /// The changes, ordered by path, each path once.
    pub changes: Vec<PathChange>,
    /// Whether the batch is complete.
    pub missed: Missed,
}

/// What a watch has missed. A reader that must know everything has to scan the tree.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Missed {
    /// Nothing.
    #[default]
    Nothing,
    /// Some changes before this batch: there were too many of them at once.
    Changes,
    /// Some directories, permanently: there are too many of them, or the system doesn't allow it.
    Directories,
}

/// Changes by path.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: BTreeMap<PathBuf, FileChange>,
    /// Paths that appeared: if one is a directory, it has to be watched too.
    pub(super) appeared: BTreeSet<PathBuf>,
    /// How many changes were dropped because there were too many.
    pub(super) dropped: u64,
    /// What else was missed.
    pub(super) missed: Missed,
    /// The last mark that was seen.
    pub(super) mark: Option<u64>,
}

/// The paths of a rename that exist now. An event names both sides of a rename, or one of them; only the disk
/// tells.
#[derive(Debug, Default)]
pub(super) struct RenamedPaths {
    there: Vec<PathBuf>,
}

impl RenamedPaths {
    /// Checks the paths. It blocks.
    pub(super) fn look(event: &notify::Event) -> Self {
        let paths: &[PathBuf] = match event.kind {
            EventKind::Modify(ModifyKind::Name(_)) => &event.paths,
            _ => &[],
        };
        let there = paths.iter().filter(|path| path.symlink_metadata().is_ok());
        Self {
            there: there.cloned().collect(),
        }
    }
}

impl Pending {
    /// Records an event. Marks are files in our directory `marks` whose names are numbers.
    pub(super) fn record(&mut self, event: &notify::Event, renamed: &RenamedPaths, marks: &Path) {
        if event.need_rescan() {
            self.missed = self.missed.max(Missed::Changes);
        }
        for path in &event.paths {
            if path.parent() == Some(marks) {
                let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
                self.mark = self.mark.max(number);
                continue;
            }
            let change = match event.kind {
                EventKind::Create(_) => FileChange::Created,
                EventKind::Remove(_) => FileChange::Deleted,
                EventKind::Modify(ModifyKind::Name(_)) => {
                    if renamed.there.contains(path) {
                        FileChange::Created
                    } else {
                        FileChange::Deleted
                    }
                }
                EventKind::Modify(_) => FileChange::Changed,
                EventKind::Access(_) | EventKind::Any | EventKind::Other => continue,
            };
            // A directory that we couldn't read may be readable now.
            let may_be_open = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
            if change == FileChange::Created || may_be_open {
                self.appeared.insert(path.clone());
            }
            self.add(path.clone(), change);
        }
    }

    /// Records a change of a path, and merges it with an earlier one.
    pub(super) fn add(&mut self, path: PathBuf, change: FileChange) {
        use FileChange::{Changed, Created, Deleted};
        if !self.changes.contains_key(&path) && self.changes.len() >= MAX_PATHS {
            self.dropped += 1;
            return;
        }
        self.changes
            .entry(path)
            .and_modify(|known| {
                *known = match (*known, change) {
                    (Created, Changed) => Created,
                    // It existed before, and does again.
                    (Deleted, Created) => Changed,
                    (_, latest) => latest,
                };
            })
            .or_insert(change);
    }

    pub(super) fn into_batch(self) -> ChangeBatch {
        let changes = self.changes.into_iter();
        let dropped = if self.dropped > 0 {
            Missed::Changes
        } else {
            Missed::Nothing
        };
        ChangeBatch {
            changes: changes
                .map(|(path, change)| PathChange { path, change })
                .collect(),
            missed: self.missed.max(dropped),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_path_in_the_end_is_told_once() {
        use FileChange::{Changed, Created, Deleted};
        let cases: [(&[FileChange], FileChange); 6] = [
            (&[Created], Created),
            (&[Created, Changed, Changed], Created),
            (&[Changed, Deleted], Deleted),
            (&[Deleted, Created], Changed),
            (&[Created, Deleted], Deleted),
            (&[Changed, Deleted, Created, Changed], Changed),
        ];
        for (changes, expected) in cases {
            let mut pending = Pending::default();
            changes
                .iter()
                .for_each(|change| pending.add(PathBuf::from("/a"), *change));
            let path = PathBuf::from("/a");
            assert_eq!(
                pending.into_batch(),
                ChangeBatch {
                    changes: vec![PathChange {
                        path,
                        change: expected
                    }],
                    missed: Missed::Nothing,
                },
                "{changes:?}"
            );
        }
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let mut pending = Pending::default();
        for number in 0..MAX_PATHS + 3 {
            pending.add(PathBuf::from(format!("/{number}")), FileChange::Created);
        }
        pending.add(PathBuf::from("/0"), FileChange::Deleted);
        assert_eq!(pending.dropped, 3);
        let batch = pending.into_batch();
        assert_eq!((batch.changes.len(), batch.missed), (MAX_PATHS, Missed::Changes));
    }

    #[test]
    fn a_queue_that_ran_over_is_not_silent() {
        let mut pending = Pending::default();
        let ran_over = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        pending.record(&ran_over, &RenamedPaths::default(), Path::new("/marks"));
        let missed = Missed::Changes;
        assert_eq!(
            pending.into_batch(),
            ChangeBatch {
                changes: Vec::new(),
                missed
            }
        );
    }
}
