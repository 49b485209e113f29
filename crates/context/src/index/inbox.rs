//! The pending work of an index.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use watch::{ChangeBatch, Missed};

/// How many paths are kept. If there are more, the whole tree is compared, which isn't slower and needs no list.
const MOST_PATHS: usize = 10_000;

/// The pending work of an index. What arrives while it works is merged.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Guards the pending work; held to merge into it or to take it out.
    work: Mutex<Work>,
    arrived: Notify,
}

#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Work {
    pub(super) paths: BTreeSet<PathBuf>,
    pub(super) effort: Effort,
    /// The number of the last request to be notified when all of it is done.
    pub(super) asked: u64,
    /// The current watch. Reports of older ones are ignored.
    watch: u64,
}

/// How much has to be done, from least to most.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Effort {
    /// Only check the paths.
    #[default]
    Paths,
    Compare,
    Follow,
    Rebuild,
}

impl Inbox {
    pub(super) fn take_in(&self, watch: u64, batch: ChangeBatch) {
        let mut work = self.lock();
        if work.watch != watch {
            return;
        }
        if batch.missed != Missed::Nothing {
            work.effort = work.effort.max(Effort::Compare);
        }
        for change in batch.changes {
            // The ignored files may have changed, and with them the watched directories.
            if change.path.file_name().is_some_and(|name| name == ".gitignore") {
                work.effort = work.effort.max(Effort::Follow);
            }
            work.paths.insert(change.path);
        }
        if work.paths.len() > MOST_PATHS {
            work.paths.clear();
            work.effort = work.effort.max(Effort::Compare);
        }
        drop(work);
        self.arrived.notify_one();
    }

    /// Requests work. Returns the number of the request.
    pub(super) fn ask(&self, effort: Effort) -> u64 {
        let mut work = self.lock();
        work.effort = work.effort.max(effort);
        work.asked += 1;
        let asked = work.asked;
        drop(work);
        self.arrived.notify_one();
        asked
    }

    pub(super) fn take(&self) -> Work {
        let mut work = self.lock();
        let after = Work {
            asked: work.asked,
            watch: work.watch,
            ..Work::default()
        };
        std::mem::replace(&mut *work, after)
    }

    pub(super) fn next_watch(&self) -> u64 {
        let mut work = self.lock();
        work.watch += 1;
        work.paths.clear();
        work.watch
    }

    /// Waits until there is work. *Cancel safety*: the future may be dropped at any time.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use watch::{FileChange, PathChange};

    use super::*;

    fn batch(names: &[&str], missed: Missed) -> ChangeBatch {
        let changes = names.iter().map(|name| PathChange {
            path: PathBuf::from(name),
            change: FileChange::Changed,
        });
        ChangeBatch {
            changes: changes.collect(),
            missed,
        }
    }

    #[test]
    fn what_came_in_decides_how_much_is_done() {
        let many: Vec<String> = (0..=MOST_PATHS).map(|number| format!("/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let cases: [(Vec<ChangeBatch>, usize, Effort); 5] = [
            (
                vec![
                    batch(&["/a", "/b"], Missed::Nothing),
                    batch(&["/a"], Missed::Nothing),
                ],
                2,
                Effort::Paths,
            ),
            (
                vec![batch(&["/a"], Missed::Changes), batch(&["/b"], Missed::Nothing)],
                2,
                Effort::Compare,
            ),
            (vec![batch(&[], Missed::Directories)], 0, Effort::Compare),
            (
                vec![batch(&["/d/.gitignore"], Missed::Changes)],
                1,
                Effort::Follow,
            ),
            (vec![batch(&many, Missed::Nothing)], 0, Effort::Compare),
        ];
        for (batches, paths, effort) in cases {
            let inbox = Inbox::default();
            let watch = inbox.next_watch();
            inbox.take_in(watch - 1, batch(&["/old/.gitignore"], Missed::Changes));
            batches
                .iter()
                .for_each(|batch| inbox.take_in(watch, batch.clone()));
            let work = inbox.take();
            assert_eq!((work.paths.len(), work.effort), (paths, effort), "{effort:?}");
            assert_eq!(
                (inbox.take().effort, inbox.take().paths.len()),
                (Effort::Paths, 0)
            );
        }
    }
}
