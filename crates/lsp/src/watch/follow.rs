//! The two ends of a watch: where events come in, and where batches go out.

use std::{
    future::Future,
    mem,
    path::Path,
    pin::Pin,
    sync::{Arc, PoisonError},
};

use kernel::Scope;
use notify::{RecursiveMode, Watcher as _};

use super::{
    Shared,
    pending::{FileChange, PathChange, Pending},
    tree,
};

/// Takes a batch of changes.
pub(crate) type Deliver =
    Arc<dyn Fn(Vec<PathChange>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Starts to listen. The thread behind it only notes what happens: to add a directory from there would wait for itself.
pub(super) fn start_watcher(shared: &Arc<Shared>) -> notify::Result<()> {
    let listening = Arc::downgrade(shared);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let (Some(shared), Ok(event)) = (listening.upgrade(), event) else {
            return;
        };
        let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.note(&event, shared.marks.path());
        drop(pending);
        shared.arrived.notify_one();
    })?;
    watcher.watch(shared.marks.path(), RecursiveMode::NonRecursive)?;
    *shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
    Ok(())
}

/// Follows the directories, then hands over what happens until the scope is cancelled.
pub(super) async fn run(shared: Arc<Shared>, deliver: Deliver, scope: Scope) {
    let root = shared.root.clone();
    // What is there already is not news.
    drop(followed(&shared, root).await);
    loop {
        let pending = {
            let mut pending = shared.pending.lock().unwrap_or_else(PoisonError::into_inner);
            mem::take(&mut *pending)
        };
        hand_over(&shared, &deliver, pending).await;
        tokio::select! {
            biased;
            _ = scope.wait() => return,
            () = shared.arrived.notified() => {}
        }
    }
}

async fn hand_over(shared: &Arc<Shared>, deliver: &Deliver, mut pending: Pending) {
    for path in mem::take(&mut pending.appeared) {
        if path.is_dir() && tree::is_followed(&shared.root, &path) {
            // Files may have come into it before it was followed.
            for file in followed(shared, path).await {
                pending.add(file, FileChange::Created);
            }
        }
    }
    if pending.dropped > 0 {
        tracing::warn!(root = %shared.root.display(), dropped = pending.dropped, "more files changed than a watch keeps");
    }
    let mark = pending.mark;
    let changes = pending.into_changes();
    if !changes.is_empty() {
        deliver(changes).await;
    }
    if let Some(mark) = mark {
        let seen = shared.caught_up.read();
        // This task alone writes it.
        drop(shared.caught_up.transition(seen.generation, mark));
    }
}

/// Follows a directory and those below it, and tells which files are there.
async fn followed(shared: &Arc<Shared>, start: impl AsRef<Path> + Send + 'static) -> Vec<std::path::PathBuf> {
    let shared = Arc::clone(shared);
    let walked = tokio::task::spawn_blocking(move || {
        let walked = tree::walk(&shared.root, start.as_ref());
        if walked.cut {
            tracing::warn!(root = %shared.root.display(), "there are too many directories to follow all of them");
        }
        let mut watcher = shared.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = watcher.as_mut() {
            let mut paths = watcher.paths_mut();
            for directory in &walked.directories {
                if let Err(error) = paths.add(directory, RecursiveMode::NonRecursive) {
                    tracing::warn!(directory = %directory.display(), %error, "a directory is not followed");
                    break;
                }
            }
            if let Err(error) = paths.commit() {
                tracing::warn!(%error, "directories are not followed");
            }
        }
        walked.files
    });
    walked.await.unwrap_or_default()
}
