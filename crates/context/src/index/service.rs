//! An index that keeps up with its tree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slot};
use process::Tasks;
use watch::Watch;

use super::inbox::{Effort, Inbox};
use super::keeper::{self, Shared, Shown, Sight};
use super::snapshot::Snapshot;
use super::way::Way;

/// What an index is made with.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// The root of the tree, canonical.
    pub root: PathBuf,
    /// The directory of this index alone. It is made if it is not there; whatever is in it may be thrown away.
    pub directory: PathBuf,
    /// Where the marks of the watch go.
    pub scratch: PathBuf,
    /// The most bytes that it may have on disk. Files that do not fit are not indexed, and are looked into without it.
    pub limit_bytes: u64,
    /// What goes on in the background.
    pub tasks: Tasks,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// An index that keeps up with its tree, until it is dropped or closed.
#[derive(Debug)]
pub struct Index {
    shared: Arc<Shared>,
}

/// How far an index is.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexState {
    /// What is on disk is being read, or made for the first time.
    Building {
        /// How many files are done.
        files: u64,
    },
    /// It can be used, and keeps up.
    Ready,
    /// It cannot be made: the tree cannot be read, or the disk is full. It is tried again when somebody asks later.
    Failed {
        /// Why.
        why: String,
    },
    /// It is closed.
    Closed,
}

/// What there is to know of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexInfo {
    /// The root of the tree.
    pub root: PathBuf,
    /// How far it is.
    pub state: IndexState,
    /// How many files it knows.
    pub files: usize,
    /// How many bytes these files have.
    pub source_bytes: u64,
    /// How many bytes it has on disk.
    pub index_bytes: u64,
    /// When it was last asked for.
    pub used: SystemTime,
}

impl Index {
    /// Opens an index, and begins to read or make it in the background. At once.
    #[must_use]
    pub fn open(options: IndexOptions) -> Arc<Self> {
        let way = Way::new(&options.clock);
        Self::open_behind(options, way)
    }

    /// The same, behind questions that walk.
    pub(crate) fn open_behind(options: IndexOptions, way: Way) -> Arc<Self> {
        let ending = CancellationToken::new();
        let (scope, tasks) = (ending.scope(), options.tasks.clone());
        let used_at = options.clock.now();
        let shared = Arc::new(Shared {
            options,
            way,
            state: Slot::new(IndexState::Building { files: 0 }),
            inbox: Inbox::default(),
            done: Slot::new(0),
            ending,
            shown: Mutex::new(Shown {
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

    /// The root of its tree.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.shared.options.root
    }

    /// The index as it is; nothing while it is made for the first time.
    #[must_use]
    pub fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.shared.shown().snapshot.clone()
    }

    /// The index with everything that has happened on disk before this call, if that can be had until the deadline; otherwise
    /// what there is. *Cancel safety*: may be dropped at any time.
    pub async fn up_to_date(&self, deadline: Deadline, scope: &Scope) -> Option<Arc<Snapshot>> {
        loop {
            let watch = self.look_again(&deadline, scope).await;
            // What was to be reported by a watch that was replaced meanwhile is reported by the next one.
            let is_the_same = {
                let now = self.shared.shown().watch.clone();
                watch.as_ref().map(Arc::as_ptr) == now.as_ref().map(Arc::as_ptr)
            };
            if is_the_same || deadline.has_passed() || scope.is_cancelled() {
                return self.snapshot();
            }
        }
    }

    /// Waits until everything that the watch has seen so far is in the index. Which watch that was.
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
                // What a watch that is behind does not know, the next question will.
                drop(watch.catch_up(deadline.clone(), scope).await);
            }
            // Until the tree is followed it is going to be compared anyway.
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

    /// Its state, for whoever waits on it.
    #[must_use]
    pub fn state(&self) -> &Slot<IndexState> {
        &self.shared.state
    }

    /// What there is to know of it.
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

    /// Throws everything away and makes it anew, in the background.
    pub fn rebuild(&self) {
        self.shared.inbox.ask(Effort::Rebuild);
    }

    /// Ends what goes on in the background. What is on disk stays.
    pub fn close(&self) {
        let cause = Cause::new("the index", "nobody needs it any more");
        self.shared.ending.cancel(cause);
    }

    /// Somebody asks for it.
    pub(crate) fn note_use(&self) {
        let (now, at) = (SystemTime::now(), self.shared.options.clock.now());
        let mut shown = self.shared.shown();
        (shown.used, shown.used_at) = (now, at);
    }

    /// Ends it if nobody has asked for it in this time, and it is not being made. If it goes on, when to look again.
    pub(crate) fn close_if_unused(&self, patience: Duration) -> Option<Instant> {
        let now = self.shared.options.clock.now();
        if self.is_building() {
            return Some(now + patience);
        }
        // Whoever asks says so under the same lock: either it is seen here, or they find that it is closed.
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
