//! What an index is to look at next.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use watch::{Batch, Missed};

/// The most paths that are kept. If there are more, the whole tree is compared: that is not slower, and needs no list.
const MOST_PATHS: usize = 10_000;

/// What an index is to look at next. Whatever comes in while it works is put together.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Guards what has come in.
    work: Mutex<Work>,
    arrived: Notify,
}

/// What has come in.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Work {
    /// Paths that may have changed.
    pub(super) paths: BTreeSet<PathBuf>,
    /// What has to be done besides.
    pub(super) effort: Effort,
    /// The number of the last one who asked to be told when all of it is done.
    pub(super) asked: u64,
    /// Which watch is listened to. What an older one says is not heard.
    watch: u64,
}

/// How much has to be done, the least first.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Effort {
    /// Only the paths have to be looked at.
    #[default]
    Paths,
    /// The whole tree has to be compared.
    Compare,
    /// The tree has to be followed anew, and then compared.
    Follow,
    /// Everything has to be made anew.
    Rebuild,
}

impl Inbox {
    /// Takes in what a watch has seen.
    pub(super) fn take_in(&self, watch: u64, batch: Batch) {
        let mut work = self.lock();
        if work.watch != watch {
            return;
        }
        if batch.missed != Missed::Nothing {
            work.effort = work.effort.max(Effort::Compare);
        }
        for change in batch.changes {
            // What is ignored may be another now, and so what is followed.
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

    /// Wants something to be done. The number is that of the asker.
    pub(super) fn ask(&self, effort: Effort) -> u64 {
        let mut work = self.lock();
        work.effort = work.effort.max(effort);
        work.asked += 1;
        let asked = work.asked;
        drop(work);
        self.arrived.notify_one();
        asked
    }

    /// What there is to do.
    pub(super) fn take(&self) -> Work {
        let mut work = self.lock();
        let after = Work {
            asked: work.asked,
            watch: work.watch,
            ..Work::default()
        };
        std::mem::replace(&mut *work, after)
    }

    /// From now on only the watch of this number is heard.
    pub(super) fn next_watch(&self) -> u64 {
        let mut work = self.lock();
        work.watch += 1;
        work.paths.clear();
        work.watch
    }

    /// Waits until something has come in. *Cancel safety*: may be dropped at any time.
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

    fn batch(names: &[&str], missed: Missed) -> Batch {
        let changes = names.iter().map(|name| PathChange {
            path: PathBuf::from(name),
            change: FileChange::Changed,
        });
        Batch {
            changes: changes.collect(),
            missed,
        }
    }

    #[test]
    fn what_came_in_decides_how_much_is_done() {
        let many: Vec<String> = (0..=MOST_PATHS).map(|number| format!("/{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let cases: [(Vec<Batch>, usize, Effort); 5] = [
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
