//! The tasks of the daemon and of the crates below it. Nothing is spawned elsewhere, so nothing outlives a
//! shutdown.

use std::future::Future;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// The tasks of one daemon. Clones refer to the same tasks.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
}

impl Tasks {
    /// Starts a task. Its name is attached to everything that it logs.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let span = tracing::info_span!("task", name);
        drop(self.tracker.spawn(task.instrument(span)));
    }

    /// Runs something to completion, whether or not the caller waits for the answer: what must follow a commit
    /// happens even if the caller goes away in between. `None` if the runtime shuts down.
    ///
    /// *Cancel safety*: if the future is dropped, the work continues; it has started if this was polled once.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (report, reported) = oneshot::channel();
        self.spawn(name, async move {
            // The caller may be gone.
            drop(report.send(work.await));
        });
        reported.await.ok()
    }

    /// The number of running tasks.
    pub fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Waits until no task is running.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
