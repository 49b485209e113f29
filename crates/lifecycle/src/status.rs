//! A server as users see it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{Failure, ServerGeneration, ServerKey};

/// The state of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ServerState {
    /// The first process, or the first one after a stop, is starting.
    Starting,
    /// The server is up.
    Ready,
    /// The old process is being stopped, the back-off is running, or the new process is starting.
    Restarting,
    /// The server is being stopped. Its process may still be alive.
    Stopping,
    /// There is no process.
    Stopped {
        /// Why.
        by: StoppedBy,
    },
    /// There is no process, because it did not come up or did not stay up.
    Failed {
        /// Why.
        reason: Arc<Failure>,
        /// How many times it failed recently.
        attempts: usize,
        /// From this time on, the next caller that needs the server triggers another attempt.
        retry_at: Instant,
    },
}

/// Why a server is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StoppedBy {
    /// Nobody has asked for it yet.
    NeverStarted,
    /// It had no leases for a while. The next caller that needs it starts it.
    Idleness,
    /// Somebody has asked for the stop. It stays stopped until somebody asks for a start.
    Request,
}

impl ServerState {
    /// The name of the state in lists.
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
    /// The server.
    pub key: ServerKey,
    /// The current state.
    pub state: ServerState,
    /// When it entered that state, or `None` if nobody has asked for it yet.
    pub since: Option<Instant>,
    /// The newest process that was launched. It is alive unless the state says otherwise.
    pub generation: ServerGeneration,
    /// How many leases there are.
    pub leases: usize,
    /// How many times a new process has replaced an old one.
    pub restarts: u64,
    /// How many times it ended without being asked to.
    pub crashes: u64,
    /// The last error, even if the server has recovered since.
    pub last_error: Option<Arc<Failure>>,
    /// Reports from processes that were no longer the current one. They had no effect.
    pub late_events: u64,
}

/// The status of a server, and whether it responds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Health {
    /// What is known without asking it.
    pub status: ServerStatus,
    /// Whether it responds.
    pub probe: ProbeResult,
}

/// Whether a server responds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProbeResult {
    /// It wasn't asked, because the caller did not want that or the server isn't ready.
    NotAsked,
    /// It responded.
    Answered {
        /// How long that took.
        took: Duration,
    },
    /// It did not respond.
    Failed {
        /// Why.
        message: String,
    },
}
