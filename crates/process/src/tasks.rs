//! Tasks of the daemon and of the crates below it. Nothing is spawned elsewhere, so that nothing outlives a shutdown.

use std::future::Future;

use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// The tasks of one daemon. Clones are the same tasks.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
}

impl Tasks {
    /// Starts a task. Its name stands in the log with everything that it says.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let span = tracing::info_span!("task", name);
        drop(self.tracker.spawn(task.instrument(span)));
    }

    /// Carries something out to its end, whether or not the caller stays for the answer: a commit that has taken effect is
    /// followed by what it promises, also if the caller goes away in between. `None` if the runtime ends under it.
    ///
    /// *Cancel safety*: dropped half-way, the work goes on; it has begun if this was polled once.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (report, reported) = oneshot::channel();
        self.spawn(name, async move {
            // Whoever waits no more need not be told.
            drop(report.send(work.await));
        });
        reported.await.ok()
    }

    /// How many are running.
    pub fn running(&self) -> usize {
        self.tracker.len()
    }

    /// Waits until none is running.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn finished(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
