//! What has been noticed and not been handed over.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use notify::{EventKind, event::ModifyKind};

/// How many paths are kept for the next batch: more than a check-out of a large repository changes. What comes beyond
/// is dropped, and counted.
const MOST_PATHS: usize = 50_000;

/// What became of a file.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum FileChange {
    /// It is there now.
    Created,
    /// It has another content, or may have.
    Changed,
    /// It is gone.
    Deleted,
}

/// What became of which file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PathChange {
    /// The file, as an absolute path.
    pub path: PathBuf,
    /// What became of it.
    pub change: FileChange,
}

/// What is handed over at once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Batch {
    /// What changed, in the order of paths, each path once.
    pub changes: Vec<PathChange>,
    /// Whether that is all.
    pub missed: Missed,
}

/// What a watch has not seen. Whoever must know everything has to look at the tree.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Missed {
    /// It has seen everything.
    #[default]
    Nothing,
    /// Some changes before this batch: there were too many of them at once.
    Changes,
    /// Directories that are not followed: there are too many of them, or the system does not let us. It stays so.
    Directories,
}

/// Changes by path, in the order of paths.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: BTreeMap<PathBuf, FileChange>,
    /// Paths that appeared: if one is a directory, it has to be followed too.
    pub(super) appeared: BTreeSet<PathBuf>,
    /// How many changes there was no room for.
    pub(super) dropped: u64,
    /// What else was not seen.
    pub(super) missed: Missed,
    /// The last mark that was seen.
    pub(super) mark: Option<u64>,
}

/// Which paths of a rename are there now. A rename names both sides, or one of them; what is true is on the disk.
#[derive(Debug, Default)]
pub(super) struct Renamed {
    there: Vec<PathBuf>,
}

impl Renamed {
    /// Looks. It blocks.
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
    /// Notes an event. Marks are files of ours in the directory `marks`, with a number for a name.
    pub(super) fn note(&mut self, event: &notify::Event, renamed: &Renamed, marks: &Path) {
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
            // A directory that was closed to us may be open now.
            let may_be_open = matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_)));
            if change == FileChange::Created || may_be_open {
                self.appeared.insert(path.clone());
            }
            self.add(path.clone(), change);
        }
    }

    /// Notes what became of a path, and merges it with what is known of it.
    pub(super) fn add(&mut self, path: PathBuf, change: FileChange) {
        use FileChange::{Changed, Created, Deleted};
        if !self.changes.contains_key(&path) && self.changes.len() >= MOST_PATHS {
            self.dropped += 1;
            return;
        }
        self.changes
            .entry(path)
            .and_modify(|known| {
                *known = match (*known, change) {
                    (Created, Changed) => Created,
                    // It was there before, and is there again.
                    (Deleted, Created) => Changed,
                    (_, latest) => latest,
                };
            })
            .or_insert(change);
    }

    /// The batch so far.
    pub(super) fn into_batch(self) -> Batch {
        let changes = self.changes.into_iter();
        let dropped = if self.dropped > 0 {
            Missed::Changes
        } else {
            Missed::Nothing
        };
        Batch {
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
                Batch {
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
        for number in 0..MOST_PATHS + 3 {
            pending.add(PathBuf::from(format!("/{number}")), FileChange::Created);
        }
        pending.add(PathBuf::from("/0"), FileChange::Deleted);
        assert_eq!(pending.dropped, 3);
        let batch = pending.into_batch();
        assert_eq!((batch.changes.len(), batch.missed), (MOST_PATHS, Missed::Changes));
    }

    #[test]
    fn a_queue_that_ran_over_is_not_silent() {
        let mut pending = Pending::default();
        let ran_over = notify::Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
        pending.note(&ran_over, &Renamed::default(), Path::new("/marks"));
        let missed = Missed::Changes;
        assert_eq!(
            pending.into_batch(),
            Batch {
                changes: Vec::new(),
                missed
            }
        );
    }
}
