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

/// How an agent is stopped after its input was closed: most exit on their own then.
const STOP: StopPlan = StopPlan {
    polite: Duration::from_millis(500),
    term: Duration::from_secs(2),
    kill: Duration::from_secs(5),
};

/// A running agent. Clones share the same process.
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
    /// Guards the connection, which the turn takes out.
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

    /// Takes the connection. Only the first call returns it.
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

    /// The agent's working directory, as the agent sees it.
    pub(super) fn directory(&self) -> PathBuf {
        self.shared.site.directory(self.root())
    }

    /// Stops the process and returns how it ended. For a process that has closed its output and is about to exit
    /// anyway.
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

    /// The protocol has no request without side effects, so all we know is that the process is running.
    async fn probe(&self, _deadline: &Deadline) -> Result<(), String> {
        Ok(())
    }
}

/// Called once no part of the process is running: records its changes, and notes them for its turn.
pub(super) async fn leave(site: &Site, stay: &CommandRun) {
    match site.plans.end_command(stay).await {
        Ok(changeset) => site.note(|left| left.changes.extend(changeset)),
        Err(error) => {
            tracing::warn!(%error, plan = %stay.plan, "what an agent changed could not be recorded");
            site.note(|left| left.not_recorded = Some(error));
        }
    }
}

pub(super) fn exit_of(exit: process::Exit) -> Option<ServerExit> {
    match exit {
        process::Exit::Code(code) => Some(ServerExit::Code(code)),
        process::Exit::Signal(signal) => Some(ServerExit::Signal(signal)),
        process::Exit::Unknown => None,
    }
}
