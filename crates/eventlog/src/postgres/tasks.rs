//! The tasks of one log: the drivers of its connections, and its listener.
//!
//! All of them, and the sockets, belong to the runtime in which the log was opened, whichever runtime makes a
//! connection necessary: a connection is shared, and must not hang on a runtime that stalls or ends before the log does.

use std::future::Future;

use kernel::{CancellationToken, Cause, Scope};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::TaskTracker;

/// Starts tasks, and ends those that do not end by themselves. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    /// It must be inside a runtime of tokio, and belongs to it from then on.
    pub(super) fn new() -> Self {
        Self {
            runtime: Handle::current(),
            tracker: TaskTracker::new(),
            token: CancellationToken::new(),
        }
    }

    /// The one place where this engine starts a task.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tracker.spawn_on(task, &self.runtime));
    }

    /// Does something in the runtime of the log. If nobody waits for it, it is done all the same.
    pub(super) fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tracker.spawn_on(task, &self.runtime)
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
