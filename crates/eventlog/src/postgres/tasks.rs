//! The tasks of one log: the drivers of its connections, and its listener.

use std::future::Future;

use kernel::{CancellationToken, Cause, Scope};
use tokio_util::task::TaskTracker;

/// Starts tasks, and ends those that do not end by themselves. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    pub(super) fn new() -> Self {
        Self {
            tracker: TaskTracker::new(),
            token: CancellationToken::new(),
        }
    }

    /// The one place where this engine starts a task. It must be inside a runtime of tokio.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tracker.spawn(task));
    }

    /// Cancelled when the log is closed.
    pub(super) fn scope(&self) -> Scope {
        self.token.scope()
    }

    /// Asks every task to end. Drivers end when their connections are given up, which the others do then.
    pub(super) fn close(&self) {
        self.tracker.close();
        self.token
            .cancel(Cause::new("log", "the last handle on it is gone"));
    }
}
