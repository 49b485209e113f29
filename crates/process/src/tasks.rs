//! Tasks of the daemon and of the crates below it. Nothing is spawned elsewhere, so that nothing outlives a shutdown.

use std::future::Future;

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
