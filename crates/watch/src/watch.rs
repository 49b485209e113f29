//! The watch itself: started, caught up with, and dropped.

use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use kernel::{CancellationToken, Cause, Deadline, Scope, Slot, WaitError};
use notify::RecommendedWatcher;
use process::Tasks;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::follow::{self, Deliver};
use crate::pending::Pending;
use crate::tree::{self, Walk};

/// Watches a root until it is dropped.
pub struct Watch {
    shared: Arc<WatchShared>,
    ending: CancellationToken,
}

pub(crate) struct WatchShared {
    pub(crate) root: PathBuf,
    /// Decides which directories are watched.
    pub(crate) walk: Walk,
    /// A directory of our own. The files written there show how far the queue has been read.
    pub(crate) marks: TempDir,
    /// The number of the last mark.
    pub(crate) last_mark: Mutex<u64>,
    /// Guards the watcher; held to add or remove a directory, or to drop it.
    pub(crate) watcher: Mutex<Option<RecommendedWatcher>>,
    /// Guards the changes that nobody has taken yet; held to add or take them.
    pub(crate) pending: Mutex<Pending>,
    pub(crate) arrived: Notify,
    /// The last mark up to which everything has been delivered.
    pub(crate) caught_up: Slot<u64>,
}

/// Why it is unknown whether everything has been delivered.
#[derive(Debug, thiserror::Error)]
pub enum CatchUpError {
    /// The mark couldn't be written.
    #[error("the mark of a watch cannot be written")]
    Mark(#[source] io::Error),
    /// It took too long, or the caller was cancelled.
    #[error("timed out waiting for the file watch to catch up")]
    TooSlow,
}

impl Watch {
    /// Watches the directories of a root that people work in. The directory `scratch` is for marks, and must not
    /// be below the root.
    ///
    /// The directories are walked in the background, and changes during that time may be missed. So start the
    /// watch before a server reads the tree.
    pub fn start(root: &Path, scratch: &Path, deliver: Deliver, tasks: &Tasks) -> io::Result<Self> {
        let below = root.to_owned();
        let walk: Walk = Arc::new(move |start| tree::walk(&below, start));
        Self::start_with(root, scratch, walk, deliver, tasks)
    }

    /// Like [`start`](Self::start), but `walk` decides which directories are watched.
    pub fn start_with(
        root: &Path,
        scratch: &Path,
        walk: Walk,
        deliver: Deliver,
        tasks: &Tasks,
    ) -> io::Result<Self> {
        let marks = tempfile::Builder::new().prefix("watch-").tempdir_in(scratch)?;
        let shared = Arc::new(WatchShared {
            root: root.to_owned(),
            walk,
            marks,
            last_mark: Mutex::new(0),
            watcher: Mutex::new(None),
            pending: Mutex::new(Pending::default()),
            arrived: Notify::new(),
            caught_up: Slot::new(0),
        });
        follow::start_watcher(&shared).map_err(io::Error::other)?;
        let ending = CancellationToken::new();
        tasks.spawn("watch", follow::run(Arc::clone(&shared), deliver, ending.scope()));
        Ok(Self { shared, ending })
    }

    /// Waits until everything that has happened so far has been delivered.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub async fn catch_up(&self, deadline: Deadline, scope: &Scope) -> Result<(), CatchUpError> {
        let mark = {
            let mut last = self
                .shared
                .last_mark
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *last += 1;
            *last
        };
        let path = self.shared.marks.path().join(mark.to_string());
        // Marks may be written in another order than they were numbered: any that is written after the call will
        // do.
        let marked = tokio::task::spawn_blocking(move || -> io::Result<()> {
            File::create_new(&path)?;
            // Its creation has been reported, so it isn't needed anymore.
            drop(std::fs::remove_file(&path));
            Ok(())
        });
        let marked = marked.await.map_err(io::Error::other).flatten();
        marked.map_err(CatchUpError::Mark)?;
        let reached = self
            .shared
            .caught_up
            .wait_until(move |reached| *reached >= mark, deadline, scope);
        match reached.await {
            Ok(_) => Ok(()),
            Err(WaitError::DeadlineExceeded { .. } | WaitError::Cancelled { .. }) => {
                Err(CatchUpError::TooSlow)
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ending
            .cancel(Cause::new("the watch", "nobody needs it any more"));
        let watcher = self
            .shared
            .watcher
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(watcher);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watch")
            .field("root", &self.shared.root)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use kernel::SystemClock;

    use super::*;
    use crate::{ChangeBatch, FileChange, Missed, PathChange, Walked};

    /// A watch whose batches are collected.
    fn watched(root: &Path, scratch: &Path, tasks: &Tasks) -> (Watch, Arc<Mutex<Vec<PathChange>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let deliver: Deliver = {
            let seen = Arc::clone(&seen);
            Arc::new(move |batch| {
                seen.lock().unwrap().extend(batch.changes);
                Box::pin(async {})
            })
        };
        (Watch::start(root, scratch, deliver, tasks).unwrap(), seen)
    }

    #[tokio::test]
    async fn what_happened_before_a_catch_up_has_been_handed_over_after_it() {
        let (directory, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = directory.path();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::write(root.join("src/old.rs"), "1").unwrap();
        let tasks = Tasks::default();
        let (watch, seen) = watched(root, scratch.path(), &tasks);
        let scope = CancellationToken::new().scope();
        let patience = || Deadline::after(&SystemClock::shared(), Duration::from_secs(30));
        watch.catch_up(patience(), &scope).await.unwrap();
        assert_eq!(*seen.lock().unwrap(), []);

        for round in 0..50 {
            let (new, dropped) = (
                root.join(format!("src/{round}.rs")),
                root.join(format!("target/{round}")),
            );
            fs::write(&new, "x").unwrap();
            fs::write(&dropped, "x").unwrap();
            fs::write(root.join("src/old.rs"), round.to_string()).unwrap();
            watch.catch_up(patience(), &scope).await.unwrap();
            let mut paths: Vec<PathBuf> = seen.lock().unwrap().drain(..).map(|change| change.path).collect();
            paths.sort();
            paths.dedup();
            assert_eq!(paths, [new, root.join("src/old.rs")], "round {round}");
        }

        // A directory that appears is followed, with what came into it before anybody looked.
        fs::create_dir_all(root.join("new/deep")).unwrap();
        fs::write(root.join("new/deep/a.rs"), "x").unwrap();
        fs::remove_file(root.join("src/old.rs")).unwrap();
        watch.catch_up(patience(), &scope).await.unwrap();
        let changes: Vec<PathChange> = seen.lock().unwrap().drain(..).collect();
        for (path, change) in [
            ("new/deep/a.rs", FileChange::Created),
            ("src/old.rs", FileChange::Deleted),
        ] {
            let expected = PathChange {
                path: root.join(path),
                change,
            };
            assert!(changes.contains(&expected), "{expected:?} is not in {changes:?}");
        }
        fs::write(root.join("new/deep/b.rs"), "x").unwrap();
        watch.catch_up(patience(), &scope).await.unwrap();
        assert!(
            seen.lock()
                .unwrap()
                .iter()
                .any(|change| change.path.ends_with("new/deep/b.rs"))
        );

        drop(watch);
        tasks.finished().await;
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }

    /// What the kernel was asked to tell, of everything that this process follows.
    fn masks() -> Vec<u32> {
        let open = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        let told = open.filter_map(|file| fs::read_to_string(file.path()).ok());
        let lines: String = told.collect();
        let mask_of = |line: &str| {
            let mask = line.split(' ').find_map(|part| part.strip_prefix("mask:"))?;
            u32::from_str_radix(mask, 16).ok()
        };
        let follow_tree = lines.lines().filter(|line| line.starts_with("inotify "));
        follow_tree.filter_map(mask_of).collect()
    }

    /// Whoever reads the whole tree would otherwise fill the queue of the kernel, and changes would be lost.
    #[tokio::test]
    async fn nobody_is_told_of_reading() {
        const ACCESS: u32 = 0x1;
        const MODIFY: u32 = 0x2;
        const CLOSE_AFTER_READING: u32 = 0x10;
        const OPEN: u32 = 0x20;
        let (directory, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tasks = Tasks::default();
        let (watch, _) = watched(directory.path(), scratch.path(), &tasks);
        let patience = Deadline::after(&SystemClock::shared(), Duration::from_secs(30));
        watch
            .catch_up(patience, &CancellationToken::new().scope())
            .await
            .unwrap();
        let masks = masks();
        assert!(masks.iter().any(|mask| mask & MODIFY != 0), "{masks:x?}");
        let reading = ACCESS | CLOSE_AFTER_READING | OPEN;
        assert!(masks.iter().all(|mask| mask & reading == 0), "{masks:x?}");
        drop(watch);
        tasks.finished().await;
    }

    #[tokio::test]
    async fn whoever_listens_is_told_that_directories_are_not_followed() {
        let (directory, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let deliver: Deliver = {
            let seen = Arc::clone(&seen);
            Arc::new(move |batch: ChangeBatch| {
                seen.lock().unwrap().push(batch);
                Box::pin(async {})
            })
        };
        let walk: Walk = Arc::new(|start| Walked {
            directories: vec![start.to_owned()],
            files: Vec::new(),
            cut: true,
        });
        let tasks = Tasks::default();
        let watch = Watch::start_with(directory.path(), scratch.path(), walk, deliver, &tasks).unwrap();
        let patience = Deadline::after(&SystemClock::shared(), Duration::from_secs(30));
        watch
            .catch_up(patience, &CancellationToken::new().scope())
            .await
            .unwrap();
        let missed = ChangeBatch {
            changes: Vec::new(),
            missed: Missed::Directories,
        };
        assert_eq!(*seen.lock().unwrap(), [missed]);
        drop(watch);
        tasks.finished().await;
    }
}
