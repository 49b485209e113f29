//! The two ends of a watch: where events arrive, and where batches are delivered.

use std::{
    collections::BTreeSet,
    future::Future,
    io, mem,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, PoisonError},
};

use kernel::Scope;
use notify::{Config, EventKindMask, PathOp, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::{
    pending::{ChangeBatch, FileChange, Missed, Pending, RenamedPaths},
    tree::MAX_DIRECTORIES,
    watch::WatchShared,
};

/// How many times a directory is walked until no new directory appears in it. If somebody creates them faster
/// than that, the watch reports that it missed something.
const MAX_WALKS: usize = 8;

/// Receives a batch of changes.
pub type Deliver = Arc<dyn Fn(ChangeBatch) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Starts the watcher. Its thread only records events, because adding a directory from there would deadlock.
pub(super) fn start_watcher(shared: &Arc<WatchShared>) -> notify::Result<()> {
    let listening = Arc::downgrade(shared);
    // Reads aren't changes, and whoever reads the whole tree would cause an event per file.
    let config = Config::default().with_event_kinds(EventKindMask::CORE);
    let record = move |event: notify::Result<notify::Event>| {
        let Some(shared) = listening.upgrade() else {
            return;
        };
        // The disk is read before the lock is taken, because runtime threads wait for the lock.
        let renamed = event.as_ref().map(RenamedPaths::look).unwrap_or_default();
        let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(event) => pending.record(&event, &renamed, shared.marks.path()),
            Err(_) => pending.missed = pending.missed.max(Missed::Changes),
        }
        drop(pending);
        shared.arrived.notify_one();
    };
    let mut watcher = RecommendedWatcher::new(record, config)?;
    watcher.watch(shared.marks.path(), RecursiveMode::NonRecursive)?;
    *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    Ok(())
}

/// Watches the directories, then delivers changes until the scope is cancelled.
pub(super) async fn run(shared: Arc<WatchShared>, deliver: Deliver, scope: Scope) {
    let root = shared.root.clone();
    // What already exists isn't a change.
    let (_, mut missed) = follow_tree(&shared, root).await;
    loop {
        let mut pending = {
            let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *pending)
        };
        pending.missed = pending.missed.max(mem::take(&mut missed));
        deliver_pending(&shared, &deliver, pending).await;
        tokio::select! {
            biased;
            _ = scope.wait() => return,
            () = shared.arrived.notified() => {}
        }
    }
}

async fn deliver_pending(shared: &Arc<WatchShared>, deliver: &Deliver, mut pending: Pending) {
    for path in directories(mem::take(&mut pending.appeared)).await {
        // Files may have been created in it before it was watched.
        let (files, missed) = follow_tree(shared, path).await;
        pending.missed = pending.missed.max(missed);
        for file in files {
            pending.add(file, FileChange::Created);
        }
    }
    let mark = pending.mark;
    let batch = pending.into_batch();
    if batch.missed != Missed::Nothing {
        tracing::warn!(root = %shared.root.display(), missed = ?batch.missed, "a watch missed some changes");
    }
    if !batch.changes.is_empty() || batch.missed != Missed::Nothing {
        deliver(batch).await;
    }
    if let Some(mark) = mark {
        let seen = shared.caught_up.read();
        // Only this task writes it. A late mark may be behind what was already reached.
        drop(
            shared
                .caught_up
                .transition(seen.generation, mark.max(*seen.state)),
        );
    }
}

async fn directories(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    if paths.is_empty() {
        return Vec::new();
    }
    let is_directory = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let looked = tokio::task::spawn_blocking(move || paths.into_iter().filter(is_directory).collect());
    // Only fails if the runtime shuts down.
    looked.await.unwrap_or_default()
}

/// Watches a directory and those below it. Returns their files, and whether something may have been missed.
async fn follow_tree(shared: &Arc<WatchShared>, start: PathBuf) -> (Vec<PathBuf>, Missed) {
    let shared = Arc::clone(shared);
    let walked = tokio::task::spawn_blocking(move || {
        let mut known = BTreeSet::new();
        for _ in 0..MAX_WALKS {
            let walked = (shared.walk)(&start);
            let new: Vec<PathBuf> = walked
                .directories
                .into_iter()
                .filter(|path| !known.contains(path))
                .collect();
            // What appeared in a directory before it was watched is only seen if the directory is walked after
            // that.
            if new.is_empty() && !walked.cut {
                return (walked.files, Missed::Nothing);
            }
            let too_many = known.len() + new.len() > MAX_DIRECTORIES;
            if walked.cut || too_many || !follow_all(&shared, &new) {
                return (walked.files, Missed::Directories);
            }
            known.extend(new);
        }
        (Vec::new(), Missed::Changes)
    });
    // Only fails if the walk panicked or the runtime shuts down.
    walked.await.unwrap_or((Vec::new(), Missed::Directories))
}

/// Adds directories to the watcher. Returns whether all of them that still exist are watched now.
fn follow_all(shared: &WatchShared, directories: &[PathBuf]) -> bool {
    let mut watcher = shared.watcher.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(watcher) = watcher.as_mut() else {
        return true;
    };
    let mut left: Vec<PathOp> = directories.iter().map(PathOp::watch_non_recursive).collect();
    while let Err(failed) = watcher.update_paths(mem::take(&mut left)) {
        let Some(PathOp::Watch(directory, _) | PathOp::Unwatch(directory)) = failed.origin else {
            tracing::warn!(error = %failed.source, "could not watch directories");
            return false;
        };
        // A directory that is gone, or that we may not read, has nothing to report. If it becomes readable, that
        // is an event in its parent.
        if !is_closed(&failed.source) && directory.symlink_metadata().is_ok() {
            tracing::warn!(directory = %directory.display(), error = %failed.source, "could not watch a directory");
            return false;
        }
        left = failed.remaining;
    }
    true
}

fn is_closed(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
}
