//! The one task that maintains an index: it takes pending work, does it, and publishes the result.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kernel::{CancellationToken, Deadline, Scope, Slot};
use tokio::task::JoinHandle;
use watch::{Deliver, Missed, Walk, Watch};

use super::compare;
use super::inbox::{Effort, Inbox, Work};
use super::merge::{Merged, merge};
use super::service::{IndexOptions, IndexState};
use super::snapshot::Snapshot;
use super::way::Way;
use super::writer::Writer;

/// How long a watch may take to start. If it takes longer, the tree is compared with every question instead.
const FOLLOW_PATIENCE: Duration = Duration::from_secs(60);
/// An index that couldn't be built isn't retried sooner than this, no matter how often it is requested.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// How many files are processed between two progress reports.
const PROGRESS_STEP: u64 = 256;

#[derive(Debug)]
pub(super) struct IndexShared {
    pub(super) options: IndexOptions,
    pub(super) way: Way,
    pub(super) state: Slot<IndexState>,
    pub(super) inbox: Inbox,
    /// The number of the last request for which everything is done. Only the task writes it.
    pub(super) done: Slot<u64>,
    pub(super) ending: CancellationToken,
    /// Guards the index that questions see; held to read or replace it.
    pub(super) shown: Mutex<VisibleIndex>,
}

#[derive(Debug)]
pub(super) struct VisibleIndex {
    pub(super) snapshot: Option<Arc<Snapshot>>,
    /// `None` while the tree isn't watched.
    pub(super) watch: Option<Arc<Watch>>,
    pub(super) sight: Sight,
    pub(super) used: SystemTime,
    pub(super) used_at: Instant,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sight {
    Whole,
    /// It doesn't, or there is no watch: the tree has to be compared.
    Partial,
}

/// Why an index is no longer maintained.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a thread that works on the index panicked")]
    Panicked,
}

impl IndexShared {
    pub(super) fn shown(&self) -> std::sync::MutexGuard<'_, VisibleIndex> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_state(&self, next: &IndexState) {
        // Building threads report progress in the meantime, but only for a state that existed before.
        while self
            .state
            .transition(self.state.read().generation, next.clone())
            .is_err()
        {}
    }

    fn tell_progress(&self, files: u64) {
        let seen = self.state.read();
        if let IndexState::Building { files: before } = &*seen.state
            && files >= before + PROGRESS_STEP
        {
            // Another thread was faster, and its report is just as good.
            drop(
                self.state
                    .transition(seen.generation, IndexState::Building { files }),
            );
        }
    }

    fn set_done(&self, asked: u64) {
        drop(self.done.transition(self.done.read().generation, asked));
    }

    fn show(&self, snapshot: Option<Snapshot>) {
        let snapshot = snapshot.map(Arc::new);
        let before = std::mem::replace(&mut self.shown().snapshot, snapshot);
        // This may be the last holder of many files.
        drop(before);
    }

    fn stop_watching(&self) {
        let watch = self.shown().watch.take();
        drop(watch);
    }
}

/// Maintains an index until the scope is cancelled.
pub(super) async fn run(shared: Arc<IndexShared>, scope: Scope) {
    while let Err(failure) = keep(&shared, &scope).await {
        if scope.is_cancelled() {
            break;
        }
        let root = shared.options.root.display();
        tracing::warn!(%root, %failure, "cannot maintain an index");
        shared.stop_watching();
        shared.show(None);
        let why = failure.to_string();
        shared.set_state(&IndexState::Failed { why });
        shared.set_done(shared.inbox.take().asked);
        let pause = Deadline::after(&shared.options.clock, RETRY_PAUSE);
        tokio::select! {
            _ = scope.wait() => break,
            _ = pause.passed() => {}
        }
        tokio::select! {
            _ = scope.wait() => break,
            () = shared.inbox.arrived() => {}
        }
        shared.set_state(&IndexState::Building { files: 0 });
    }
    shared.stop_watching();
    shared.show(None);
    shared.set_state(&IndexState::Closed);
    shared.set_done(u64::MAX);
}

/// The same, until an error occurs.
async fn keep(shared: &Arc<IndexShared>, scope: &Scope) -> Result<(), Failure> {
    let options = shared.options.clone();
    let loaded = blocking(move || Writer::load(&options.root, &options.directory, options.limit_bytes));
    let (mut writer, is_whole) = loaded.await??;
    if is_whole {
        shared.show(Some(writer.snapshot()));
    }
    let mut merging = Merging::default();
    let mut effort = Effort::Follow;
    loop {
        let work = shared.inbox.take();
        effort = effort.max(work.effort);
        let asked = work.asked;
        let kept = step(shared, scope, writer, work, effort).await;
        writer = match kept {
            Ok(writer) => writer,
            Err(failure) => {
                merging.end().await;
                return Err(failure);
            }
        };
        effort = Effort::Paths;
        shared.set_state(&IndexState::Ready);
        shared.set_done(asked);
        merging.begin(&writer, shared, scope);
        tokio::select! {
            biased;
            _ = scope.wait() => {
                merging.end().await;
                return Ok(());
            }
            () = shared.inbox.arrived() => {}
            merged = merging.finished() => {
                let merged = merged??;
                let take = blocking(move || writer.take_merged(merged).map(|()| writer));
                writer = take.await??;
                shared.show(Some(writer.snapshot()));
            }
        }
    }
}

async fn step(
    shared: &Arc<IndexShared>,
    scope: &Scope,
    mut writer: Writer,
    work: Work,
    effort: Effort,
) -> Result<Writer, Failure> {
    if effort >= Effort::Rebuild {
        shared.show(None);
        shared.set_state(&IndexState::Building { files: 0 });
        writer = blocking(move || writer.clear().map(|()| writer)).await??;
    }
    if effort >= Effort::Follow {
        follow(shared, scope).await;
    }
    let is_shown = shared.shown().snapshot.is_some();
    let noted = {
        let scope = scope.clone();
        blocking(move || {
            if effort >= Effort::Compare {
                writer.compare(&scope)?;
            } else if !work.paths.is_empty() {
                writer.compare_some(&work.paths, &scope)?;
            }
            let snapshot = writer.snapshot();
            Ok::<_, io::Error>((writer, snapshot))
        })
    };
    let (mut writer, snapshot) = noted.await??;
    // Until the changes are read, we at least know which files have them.
    if is_shown {
        shared.show(Some(snapshot));
    }
    let (scope, telling) = (scope.clone(), Arc::clone(shared));
    let caught_up = blocking(move || {
        writer.catch_up(&telling.way, &scope, &|files| telling.tell_progress(files))?;
        let snapshot = writer.snapshot();
        Ok::<_, io::Error>((writer, snapshot))
    });
    let (writer, snapshot) = caught_up.await??;
    shared.show(Some(snapshot));
    Ok(writer)
}

/// Starts to watch the tree again. When it is done, every later change is reported.
async fn follow(shared: &Arc<IndexShared>, scope: &Scope) {
    shared.stop_watching();
    let number = shared.inbox.next_watch();
    let deliver: Deliver = {
        let shared = Arc::downgrade(shared);
        Arc::new(move |batch| {
            if let Some(shared) = shared.upgrade() {
                if batch.missed == Missed::Directories {
                    shared.shown().sight = Sight::Partial;
                }
                shared.inbox.take_in(number, batch);
            }
            Box::pin(async {})
        })
    };
    let options = &shared.options;
    let walk: Walk = {
        let (root, scope) = (options.root.clone(), scope.clone());
        Arc::new(move |start| compare::followed(&root, start, &scope))
    };
    shared.shown().sight = Sight::Whole;
    let watch = Watch::start_with(&options.root, &options.scratch, walk, deliver, &options.tasks);
    let followed = match watch {
        Ok(watch) => {
            let patience = Deadline::after(&options.clock, FOLLOW_PATIENCE);
            watch.catch_up(patience, scope).await.map(|()| watch).ok()
        }
        Err(error) => {
            tracing::warn!(root = %options.root.display(), %error, "cannot watch a tree");
            None
        }
    };
    let mut shown = shared.shown();
    if followed.is_none() {
        shown.sight = Sight::Partial;
    }
    shown.watch = followed.map(Arc::new);
}

/// The merge that runs in the background, if there is one.
#[derive(Debug, Default)]
struct Merging(Option<JoinHandle<io::Result<Merged>>>);

impl Merging {
    fn begin(&mut self, writer: &Writer, shared: &IndexShared, scope: &Scope) {
        if self.0.is_some() {
            return;
        }
        if let Some(parts) = writer.to_merge() {
            let (directory, scope) = (shared.options.directory.clone(), scope.clone());
            self.0 = Some(tokio::task::spawn_blocking(move || {
                merge(parts, &directory, &scope)
            }));
        }
    }

    /// Waits until it has ended; forever if no merge is running. *Cancel safety*: the future may be dropped
    /// at any time.
    async fn finished(&mut self) -> Result<io::Result<Merged>, Failure> {
        let Some(merging) = &mut self.0 else {
            return std::future::pending().await;
        };
        let merged = merging.await.map_err(|_| Failure::Panicked);
        self.0 = None;
        merged
    }

    async fn end(&mut self) {
        if let Some(merging) = self.0.take() {
            // Its scope is cancelled, or the result isn't needed.
            drop(merging.await);
        }
    }
}

async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::Panicked)
}
