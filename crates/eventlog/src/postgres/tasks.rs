//! The tasks of one log: the drivers of its connections, and its listener.
//!
//! All of them, and the sockets, belong to the runtime in which the log was opened, whichever runtime needs a
//! connection: connections are shared, and must not depend on a runtime that stalls or ends before the log does.

use std::future::Future;

use kernel::{CancellationToken, Cause, Scope};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::task::TaskTracker;

/// Starts tasks, and ends those that don't end by themselves. Clones refer to the same tasks.
#[derive(Clone, Debug)]
pub(super) struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
    token: CancellationToken,
}

impl Tasks {
    /// Must be called inside a tokio runtime, which then runs the tasks.
    pub(super) fn new() -> Self {
        Self {
            runtime: Handle::current(),
            tracker: TaskTracker::new(),
            token: CancellationToken::new(),
        }
    }

    /// The only place where this engine starts a task.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.tracker.spawn_on(task, &self.runtime));
    }

    /// Runs something in the runtime of the log, to completion even if nobody waits for it.
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

    /// Asks every task to end. Drivers end when their connections are dropped, which the others then do.
    pub(super) fn close(&self) {
        self.tracker.close();
        self.token
            .cancel(Cause::new("log", "the last handle on it is gone"));
    }
}
