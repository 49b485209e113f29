//! The two ends of a watch: where events come in, and where batches go out.

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
    pending::{Batch, FileChange, Missed, Pending, Renamed},
    tree::MOST_DIRECTORIES,
    watch::Shared,
};

/// How often a directory is walked until no new directory has come into it. Somebody who is faster than that for so long is
/// told that something was missed.
const MOST_WALKS: usize = 8;

/// Takes a batch of changes.
pub type Deliver = Arc<dyn Fn(Batch) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Starts to listen. The thread behind it only notes what happens: to add a directory from there would wait for itself.
pub(super) fn start_watcher(shared: &Arc<Shared>) -> notify::Result<()> {
    let listening = Arc::downgrade(shared);
    // Reading is no change, and whoever reads the whole tree would make an event of every file.
    let config = Config::default().with_event_kinds(EventKindMask::CORE);
    let note = move |event: notify::Result<notify::Event>| {
        let Some(shared) = listening.upgrade() else {
            return;
        };
        // What is on the disk is looked at before the lock is taken: others wait for the lock on threads of the runtime.
        let renamed = event.as_ref().map(Renamed::look).unwrap_or_default();
        let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(event) => pending.note(&event, &renamed, shared.marks.path()),
            Err(_) => pending.missed = pending.missed.max(Missed::Changes),
        }
        drop(pending);
        shared.arrived.notify_one();
    };
    let mut watcher = RecommendedWatcher::new(note, config)?;
    watcher.watch(shared.marks.path(), RecursiveMode::NonRecursive)?;
    *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    Ok(())
}

/// Follows the directories, then hands over what happens until the scope is cancelled.
pub(super) async fn run(shared: Arc<Shared>, deliver: Deliver, scope: Scope) {
    let root = shared.root.clone();
    // What is there already is not news.
    let (_, mut missed) = followed(&shared, root).await;
    loop {
        let mut pending = {
            let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *pending)
        };
        pending.missed = pending.missed.max(mem::take(&mut missed));
        hand_over(&shared, &deliver, pending).await;
        tokio::select! {
            biased;
            _ = scope.wait() => return,
            () = shared.arrived.notified() => {}
        }
    }
}

async fn hand_over(shared: &Arc<Shared>, deliver: &Deliver, mut pending: Pending) {
    for path in directories(mem::take(&mut pending.appeared)).await {
        // Files may have come into it before it was followed.
        let (files, missed) = followed(shared, path).await;
        pending.missed = pending.missed.max(missed);
        for file in files {
            pending.add(file, FileChange::Created);
        }
    }
    let mark = pending.mark;
    let batch = pending.into_batch();
    if batch.missed != Missed::Nothing {
        tracing::warn!(root = %shared.root.display(), missed = ?batch.missed, "a watch has not seen everything");
    }
    if !batch.changes.is_empty() || batch.missed != Missed::Nothing {
        deliver(batch).await;
    }
    if let Some(mark) = mark {
        let seen = shared.caught_up.read();
        // This task alone writes it. A mark that was made late is behind what was seen already.
        drop(
            shared
                .caught_up
                .transition(seen.generation, mark.max(*seen.state)),
        );
    }
}

/// Those that are directories now.
async fn directories(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    if paths.is_empty() {
        return Vec::new();
    }
    let is_directory = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    let looked = tokio::task::spawn_blocking(move || paths.into_iter().filter(is_directory).collect());
    // It fails only if the runtime ends.
    looked.await.unwrap_or_default()
}

/// Follows a directory and those below it, and tells which files are there, and whether something may be missed.
async fn followed(shared: &Arc<Shared>, start: PathBuf) -> (Vec<PathBuf>, Missed) {
    let shared = Arc::clone(shared);
    let walked = tokio::task::spawn_blocking(move || {
        let mut known = BTreeSet::new();
        for _ in 0..MOST_WALKS {
            let walked = (shared.walk)(&start);
            let new: Vec<PathBuf> = walked
                .directories
                .into_iter()
                .filter(|path| !known.contains(path))
                .collect();
            // What came into a directory before it was followed was seen only if it was walked after that.
            if new.is_empty() && !walked.cut {
                return (walked.files, Missed::Nothing);
            }
            let too_many = known.len() + new.len() > MOST_DIRECTORIES;
            if walked.cut || too_many || !follow_all(&shared, &new) {
                return (walked.files, Missed::Directories);
            }
            known.extend(new);
        }
        (Vec::new(), Missed::Changes)
    });
    // It fails only if the walk panicked, or the runtime ends.
    walked.await.unwrap_or((Vec::new(), Missed::Directories))
}

/// Adds directories to the watcher. Whether all of them that are still there are followed now.
fn follow_all(shared: &Shared, directories: &[PathBuf]) -> bool {
    let mut watcher = shared.watcher.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(watcher) = watcher.as_mut() else {
        return true;
    };
    let mut left: Vec<PathOp> = directories.iter().map(PathOp::watch_non_recursive).collect();
    while let Err(failed) = watcher.update_paths(mem::take(&mut left)) {
        let Some(PathOp::Watch(directory, _) | PathOp::Unwatch(directory)) = failed.origin else {
            tracing::warn!(error = %failed.source, "directories are not followed");
            return false;
        };
        // What is gone, or closed to us, has nothing to tell. When it is opened, that is an event above it.
        if !is_closed(&failed.source) && directory.symlink_metadata().is_ok() {
            tracing::warn!(directory = %directory.display(), error = %failed.source, "a directory is not followed");
            return false;
        }
        left = failed.remaining;
    }
    true
}

fn is_closed(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied)
}
