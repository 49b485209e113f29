//! A child, as its owner sees it.

use std::fmt;
use std::sync::Arc;

use tokio::net::unix::pipe::Sender;

use crate::ended::{Ended, Exit, KeeperEnd, Killed};
use crate::entry::{Entry, Started};
use crate::outlet::Outlet;
use crate::proc_table;
use crate::spec::{Enforcement, StopPlan};

/// A running child. Clones refer to the same child. When the last one is dropped, the child is stopped in the
/// background, by [`StopPlan::PROMPT`].
#[derive(Clone)]
pub struct Child {
    handle: Arc<Handle>,
}

struct Handle {
    entry: Arc<Entry>,
    started: Started,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Pipes that the owner didn't take must not stay open.
        drop(self.entry.take_all());
        self.entry.request_stop(StopPlan::PROMPT);
    }
}

impl Child {
    pub(crate) fn new(entry: Arc<Entry>, started: Started) -> Self {
        Self {
            handle: Arc::new(Handle { entry, started }),
        }
    }

    /// The pid of the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.handle.started.command.pid
    }

    /// How much of the requested confinement is in force.
    #[must_use]
    pub fn confinement(&self) -> Enforcement {
        self.handle.started.confinement
    }

    /// Its standard input, once. Dropping it closes it.
    #[must_use]
    pub fn stdin(&self) -> Option<Sender> {
        self.handle.entry.take_stdin()
    }

    /// Its standard output, once. Until somebody takes it, the command can write what a pipe holds and then
    /// blocks. From the first stop request on, it is read and discarded, so that nothing hangs on it.
    #[must_use]
    pub fn stdout(&self) -> Option<Outlet> {
        self.handle.entry.take_stdout()
    }

    /// Its standard error, once, if it is [`HandedOut`](crate::StandardError::HandedOut); otherwise `None`. The
    /// rules of the standard output apply.
    #[must_use]
    pub fn stderr(&self) -> Option<Outlet> {
        self.handle.entry.take_stderr()
    }

    /// The last 64 KiB of its standard error. It is complete once the child has ended, and empty if the standard
    /// error is handed out.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.handle.entry.stderr_tail()
    }

    /// The resident memory of the child's processes, in bytes. Shared pages are counted for each.
    #[must_use]
    pub fn tree_rss_bytes(&self) -> u64 {
        self.handle.entry.keeper.get().map_or(0, |keeper| {
            let tree = proc_table::below(keeper.pid);
            tree.iter().map(proc_table::Stat::resident_bytes).sum()
        })
    }

    /// Waits until the child, and everything that it had started, has ended.
    ///
    /// *Cancel safety*: the future may be dropped at any time; any number of callers may wait.
    pub async fn ended(&self) -> Ended {
        match self.handle.entry.over().await {
            Some(ended) => (*ended).clone(),
            // A child that was returned has run, so this never happens.
            None => Ended {
                exit: Exit::Unknown,
                killed: Killed::default(),
                left: Vec::new(),
                keeper: KeeperEnd::Died,
            },
        }
    }

    /// Stops the child, and waits until it has ended. Concurrent stops are joined: for each step, the earliest
    /// time that anyone asked for counts.
    ///
    /// *Cancel safety*: the future may be dropped at any time; once polled, the stop continues.
    pub async fn stop(&self, plan: StopPlan) -> Ended {
        self.handle.entry.request_stop(plan);
        self.ended().await
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Child")
            .field("pid", &self.pid())
            .field("owner", &self.handle.entry.facts.owner)
            .finish_non_exhaustive()
    }
}
