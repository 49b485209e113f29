//! An index that keeps up with its tree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slot};
use process::Tasks;
use watch::Watch;

use super::inbox::{Effort, Inbox};
use super::keeper::{self, IndexShared, Sight, VisibleIndex};
use super::snapshot::Snapshot;
use super::way::Way;

#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// The root of the tree, canonical.
    pub root: PathBuf,
    /// The directory of this index alone. It is created if it is missing, and its content may be deleted.
    pub directory: PathBuf,
    pub scratch: PathBuf,
    /// The size limit on disk. Files that don't fit aren't indexed, and are searched without the index.
    pub limit_bytes: u64,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
}

/// An index that keeps up with its tree, until it is dropped or closed.
#[derive(Debug)]
pub struct Index {
    shared: Arc<IndexShared>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexState {
    /// It is being read from disk, or built for the first time.
    Building {
        files: u64,
    },
    Ready,
    /// It can't be built: the tree can't be read, or the disk is full. A later request tries again.
    Failed {
        why: String,
    },
    Closed,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexInfo {
    pub root: PathBuf,
    pub state: IndexState,
    pub files: usize,
    pub source_bytes: u64,
    pub index_bytes: u64,
    pub used: SystemTime,
}

impl Index {
    /// Opens an index, and starts to read or build it in the background. Returns at once.
    #[must_use]
    pub fn open(options: IndexOptions) -> Arc<Self> {
        let way = Way::new(&options.clock);
        Self::open_behind(options, way)
    }

    pub(crate) fn open_behind(options: IndexOptions, way: Way) -> Arc<Self> {
        let ending = CancellationToken::new();
        let (scope, tasks) = (ending.scope(), options.tasks.clone());
        let used_at = options.clock.now();
        let shared = Arc::new(IndexShared {
            options,
            way,
            state: Slot::new(IndexState::Building { files: 0 }),
            inbox: Inbox::default(),
            done: Slot::new(0),
            ending,
            shown: Mutex::new(VisibleIndex {
                snapshot: None,
                watch: None,
                sight: Sight::Partial,
                used: SystemTime::now(),
                used_at,
            }),
        });
        tasks.spawn("index", keeper::run(Arc::clone(&shared), scope));
        Arc::new(Self { shared })
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.shared.options.root
    }

    /// The current index; `None` while it is built for the first time.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.shared.shown().snapshot.clone()
    }

    /// The index with everything that has happened on disk before this call, if that is possible until the
    /// deadline; otherwise the current one. *Cancel safety*: the future may be dropped at any time.
    pub async fn up_to_date(&self, deadline: Deadline, scope: &Scope) -> Option<Arc<Snapshot>> {
        loop {
            let watch = self.look_again(&deadline, scope).await;
            // If the watch was replaced in the meantime, the next one reports the missing changes.
            let is_the_same = {
                let now = self.shared.shown().watch.clone();
                watch.as_ref().map(Arc::as_ptr) == now.as_ref().map(Arc::as_ptr)
            };
            if is_the_same || deadline.has_passed() || scope.is_cancelled() {
                return self.snapshot();
            }
        }
    }

    /// Waits until everything that the watch has seen so far is in the index. Returns that watch.
    async fn look_again(&self, deadline: &Deadline, scope: &Scope) -> Option<Arc<Watch>> {
        self.note_use();
        let shared = &self.shared;
        let (watch, sight) = {
            let shown = shared.shown();
            (shown.watch.clone(), shown.sight)
        };
        let mut effort = Effort::Paths;
        match &watch {
            Some(watch) if sight == Sight::Whole => {
                // If the watch is behind, the next question will see the rest.
                drop(watch.catch_up(deadline.clone(), scope).await);
            }
            // Until the tree is watched, it will be compared anyway.
            None if self.is_building() => {}
            _ => effort = Effort::Compare,
        }
        let asked = shared.inbox.ask(effort);
        if !matches!(*shared.state.read().state, IndexState::Failed { .. }) {
            let is_done = move |done: &u64| *done >= asked;
            drop(shared.done.wait_until(is_done, deadline.clone(), scope).await);
        }
        watch
    }

    #[must_use]
    pub fn state(&self) -> &Slot<IndexState> {
        &self.shared.state
    }

    #[must_use]
    pub fn info(&self) -> IndexInfo {
        let (snapshot, used) = {
            let shown = self.shared.shown();
            (shown.snapshot.clone().unwrap_or_default(), shown.used)
        };
        IndexInfo {
            root: self.shared.options.root.clone(),
            state: IndexState::clone(&self.shared.state.read().state),
            files: snapshot.len(),
            source_bytes: snapshot.source_bytes(),
            index_bytes: snapshot.index_bytes(),
            used,
        }
    }

    /// Deletes everything and builds it again, in the background.
    pub fn rebuild(&self) {
        self.shared.inbox.ask(Effort::Rebuild);
    }

    /// Stops the background work. The index stays on disk.
    pub fn close(&self) {
        let cause = Cause::new("the index", "nobody needs it any more");
        self.shared.ending.cancel(cause);
    }

    pub(crate) fn note_use(&self) {
        let (now, at) = (SystemTime::now(), self.shared.options.clock.now());
        let mut shown = self.shared.shown();
        (shown.used, shown.used_at) = (now, at);
    }

    /// Closes it if it wasn't used for this long and isn't being built. Otherwise returns when to check again.
    pub(crate) fn close_if_unused(&self, patience: Duration) -> Option<Instant> {
        let now = self.shared.options.clock.now();
        if self.is_building() {
            return Some(now + patience);
        }
        // Uses are recorded under the same lock: either this sees the use, or the user sees that it is closed.
        let shown = self.shared.shown();
        let due = shown.used_at + patience;
        if now < due {
            return Some(due);
        }
        self.close();
        None
    }

    fn is_building(&self) -> bool {
        matches!(*self.shared.state.read().state, IndexState::Building { .. })
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.close();
    }
}
