//! Checks of workspace roots that don't wait forever for a file system that doesn't respond.
//!
//! A thread that queries a dead mount is stuck until the mount is gone. So there is at most one such thread for each
//! root: further callers wait for the same answer, and no longer than [`PATIENCE`].

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kernel::{Clock, Deadline};
use protocol::WorkspaceState;
use tokio::sync::watch;

use crate::WorkspaceRecord;

/// How long a file system may take to stat a directory.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct RootFound {
    /// The device and inode of the directory, if it exists.
    directory: Option<(u64, u64)>,
    is_git: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RootState {
    pub(crate) presence: WorkspaceState,
    pub(crate) is_git: bool,
}

/// The checks in progress.
pub(crate) struct RootChecks {
    clock: Arc<dyn Clock>,
    /// Guards which roots are being checked; only looked up and replaced under it.
    under_way: Arc<Mutex<HashMap<PathBuf, watch::Receiver<Option<RootFound>>>>>,
}

impl std::fmt::Debug for RootChecks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RootChecks")
    }
}

impl RootChecks {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            under_way: Arc::default(),
        }
    }

    /// Checks the root of a workspace. *Cancel safety*: may be dropped; it changes nothing.
    pub(crate) async fn at(&self, record: &WorkspaceRecord) -> RootState {
        let mut answer = self.begin(&record.root);
        let deadline = Deadline::after(&self.clock, PATIENCE);
        let found = tokio::select! {
            biased;
            found = answer.wait_for(Option::is_some) => found.ok().and_then(|found| *found),
            () = deadline.passed() => None,
        };
        let presence = match found {
            None => WorkspaceState::Unreachable,
            Some(found) => match found.directory {
                Some(identity) if identity == record.identity => WorkspaceState::Present,
                Some(_) => WorkspaceState::Replaced,
                None => WorkspaceState::Missing,
            },
        };
        RootState {
            presence,
            is_git: found.is_some_and(|found| found.is_git),
        }
    }

    /// Joins the check in progress, or starts one.
    fn begin(&self, root: &Path) -> watch::Receiver<Option<RootFound>> {
        let mut under_way = lock(&self.under_way);
        if let Some(answer) = under_way.get(root) {
            return answer.clone();
        }
        let (told, answer) = watch::channel(None);
        under_way.insert(root.to_owned(), answer.clone());
        drop(under_way);
        let (looks, root) = (Arc::clone(&self.under_way), root.to_owned());
        drop(tokio::task::spawn_blocking(move || {
            let found = look(&root);
            // The next caller checks again.
            lock(&looks).remove(&root);
            told.send_replace(Some(found));
        }));
        answer
    }
}

/// Takes the lock that guards the checks in progress; held for one lookup or change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn look(root: &Path) -> RootFound {
    let directory = std::fs::metadata(root).ok().filter(std::fs::Metadata::is_dir);
    RootFound {
        is_git: directory.is_some() && root.join(".git").exists(),
        directory: directory.map(|found| (found.dev(), found.ino())),
    }
}
