//! What can go wrong when somebody wants something of a server.

use std::{sync::Arc, time::Instant};

use kernel::Cause;

use crate::{Failure, ServerGeneration, ServerState, ServerStatus};

/// Why a server could not be had, started or stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LifecycleError {
    /// No server of this name is configured.
    #[error("no server is configured under the name {server:?}")]
    ServerNotFound {
        /// The name.
        server: Arc<str>,
    },
    /// The server is on its way up, and the caller did not want to wait.
    #[error("the server is on its way up (generation {generation}); wait, or try again")]
    ServerRestarting {
        /// The newest process that was launched so far.
        generation: ServerGeneration,
    },
    /// The server did not come up, or did not stay.
    #[error("the server has failed after {attempts} attempts: {reason}")]
    ServerFailed {
        /// Why.
        reason: Arc<Failure>,
        /// How often it failed of late.
        attempts: usize,
        /// From then on the next who wants it may have it tried again. An explicit start works at once.
        retry_at: Instant,
    },
    /// Somebody has stopped the server, and nobody has started it since.
    #[error("the server is stopped; start it to use it")]
    ServerStopped,
    /// It is not the process that the caller saw. Nothing was changed.
    #[error("generation {seen} was seen, and it is {} now", current.generation)]
    ServerMoved {
        /// What the caller saw.
        seen: ServerGeneration,
        /// How it stands.
        current: Box<ServerStatus>,
    },
    /// The caller's deadline passed.
    #[error("the time was over while the server was {}", state.name())]
    RequestTimeout {
        /// The state of the server at that time.
        state: ServerState,
    },
    /// The caller was cancelled.
    #[error("cancelled by {cause}")]
    Cancelled {
        /// By whom, and why.
        cause: Arc<Cause>,
    },
    /// There are as many servers as there may be, and all are in use.
    #[error("there are {limit} servers already, all of them in use; stop one")]
    TooManyServers {
        /// How many there may be.
        limit: usize,
    },
}
