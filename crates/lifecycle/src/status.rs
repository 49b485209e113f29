//! A server as people see it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{Failure, ServerGeneration, ServerKey};

/// The state of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServerState {
    /// The first process, or one after a rest, is on its way up.
    Starting,
    /// It is up.
    Ready,
    /// The old process is being stopped, a pause is kept, or the new one is on its way up.
    Restarting,
    /// It is being stopped. The process may still be alive.
    Stopping,
    /// There is no process.
    Stopped {
        /// Why.
        by: StoppedBy,
    },
    /// There is no process, because it did not come up or did not stay.
    Failed {
        /// Why.
        reason: Arc<Failure>,
        /// How often it failed of late.
        attempts: usize,
        /// From then on the next who wants it may have it tried again.
        retry_at: Instant,
    },
}

/// Why a server is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoppedBy {
    /// Nobody has wanted it yet.
    NeverStarted,
    /// Nobody held a lease on it for a while. The next who wants it has it started.
    Idleness,
    /// Somebody has asked for it. It stays so until somebody asks for a start.
    Request,
}

impl ServerState {
    /// The name, as it stands in lists.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Stopped { .. } => "stopped",
            Self::Failed { .. } => "failed",
        }
    }
}

/// What is known about a server without asking it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerStatus {
    /// Which server.
    pub key: ServerKey,
    /// Its state.
    pub state: ServerState,
    /// Since when; `None` if nobody has wanted it yet.
    pub since: Option<Instant>,
    /// The newest process that was launched; it is alive unless the state says otherwise.
    pub generation: ServerGeneration,
    /// How many use it.
    pub leases: usize,
    /// How often a new process has come up in the place of another.
    pub restarts: u64,
    /// How often it ended without being asked to.
    pub crashes: u64,
    /// What went wrong last, also if all is well since.
    pub last_error: Option<Arc<Failure>>,
    /// Reports of processes that were no longer the current one. They changed nothing.
    pub late_events: u64,
}

/// A server's status, and whether it answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Health {
    /// What is known without asking it.
    pub status: ServerStatus,
    /// Whether it answers.
    pub probe: ProbeResult,
}

/// Whether a server answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProbeResult {
    /// It was not asked: the caller did not want it, or the server is not ready.
    NotAsked,
    /// It answered.
    Answered {
        /// How long that took.
        took: Duration,
    },
    /// It did not.
    Failed {
        /// Why.
        message: String,
    },
}
