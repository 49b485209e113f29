//! One process of an agent, in a sandbox, from its answer to `initialize` to its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kernel::Deadline;
use lifecycle::{EndReason, Failure, RunningServer, ServerExit};
use plans::CommandRun;
use process::{Child, StopPlan};

use super::site::Site;
use super::wire::{Connection, Initialized, Outbox};

/// How an agent is stopped whose input was closed: most end by themselves then.
const STOP: StopPlan = StopPlan {
    polite: Duration::from_millis(500),
    term: Duration::from_secs(2),
    kill: Duration::from_secs(5),
};

/// An agent that is up. Clones are the same one.
#[derive(Clone, Debug)]
pub(super) struct AcpServer {
    shared: Arc<ServerState>,
}

#[derive(Debug)]
struct ServerState {
    child: Child,
    site: Arc<Site>,
    stay: CommandRun,
    outbox: Outbox,
    initialized: Initialized,
    /// Guards the conversation, which the turn takes out.
    connection: Mutex<Option<Connection>>,
}

impl AcpServer {
    pub(super) fn new(
        child: Child,
        site: Arc<Site>,
        stay: CommandRun,
        connection: Connection,
        initialized: Initialized,
    ) -> Self {
        Self {
            shared: Arc::new(ServerState {
                child,
                site,
                stay,
                outbox: connection.outbox().clone(),
                initialized,
                connection: Mutex::new(Some(connection)),
            }),
        }
    }

    /// The conversation, once.
    pub(super) fn take_connection(&self) -> Option<Connection> {
        let mut connection = self
            .shared
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connection.take()
    }

    pub(super) fn initialized(&self) -> &Initialized {
        &self.shared.initialized
    }

    /// The root of the workspace, as the agent sees it.
    pub(super) fn root(&self) -> &Path {
        &self.shared.stay.entrance.root
    }

    /// Where it works, as it sees it.
    pub(super) fn directory(&self) -> PathBuf {
        self.shared.site.directory(self.root())
    }

    /// Ends the process, and says how it ended. It is for one that has closed its output, and is about to end by itself.
    pub(super) async fn how_it_ended(&self) -> Failure {
        let ended = self.shared.child.stop(STOP).await;
        Failure {
            message: "the agent ended in the middle of its work".to_owned(),
            exit: exit_of(ended.exit),
            stderr_tail: self.shared.child.stderr_tail(),
        }
    }
}

impl RunningServer for AcpServer {
    async fn ended(&self) -> EndReason {
        let ended = self.shared.child.ended().await;
        Failure {
            message: "the process ended".to_owned(),
            exit: exit_of(ended.exit),
            stderr_tail: self.shared.child.stderr_tail(),
        }
    }

    async fn stop(&self) {
        self.shared.outbox.close();
        drop(self.take_connection());
        self.shared.child.stop(STOP).await;
        leave(&self.shared.site, &self.shared.stay).await;
    }

    /// The protocol has no question that changes nothing, so all that is known is that it runs.
    async fn probe(&self, _deadline: &Deadline) -> Result<(), String> {
        Ok(())
    }
}

/// Nothing of the process runs any more: what it changed is recorded, and noted for its turn.
pub(super) async fn leave(site: &Site, stay: &CommandRun) {
    match site.plans.end_command(stay).await {
        Ok(changeset) => site.note(|left| left.changes.extend(changeset)),
        Err(error) => {
            tracing::warn!(%error, plan = %stay.plan, "what an agent changed could not be recorded");
            site.note(|left| left.not_recorded = Some(error));
        }
    }
}

/// How a process ended.
pub(super) fn exit_of(exit: process::Exit) -> Option<ServerExit> {
    match exit {
        process::Exit::Code(code) => Some(ServerExit::Code(code)),
        process::Exit::Signal(signal) => Some(ServerExit::Signal(signal)),
        process::Exit::Unknown => None,
    }
}
