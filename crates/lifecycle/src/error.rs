//! Errors of requests for a server.

use std::{sync::Arc, time::Instant};

use kernel::Cause;

use crate::{Failure, ServerGeneration, ServerState, ServerStatus};

/// Why a server is not available, or could not be started or stopped.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LifecycleError {
    /// No server of this name is configured.
    #[error("no server is configured under the name {server:?}")]
    ServerNotFound {
        /// The name.
        server: Arc<str>,
    },
    /// The server is starting, and the caller did not want to wait.
    #[error("the server is starting (generation {generation}); wait or try again")]
    ServerRestarting {
        /// The newest process launched so far.
        generation: ServerGeneration,
    },
    /// The server did not come up, or did not stay up.
    #[error("the server has failed after {attempts} attempts: {reason}")]
    ServerFailed {
        /// Why.
        reason: Arc<Failure>,
        /// How many times it failed recently.
        attempts: usize,
        /// From this time on, the next caller that needs the server triggers another attempt. An explicit start
        /// works at once.
        retry_at: Instant,
    },
    /// Somebody has stopped the server, and nobody has started it since.
    #[error("the server is stopped; start it to use it")]
    ServerStopped,
    /// The caller saw another process than the current one. Nothing was changed.
    #[error("the server has changed: expected generation {seen}, but the current one is {}", current.generation)]
    ServerMoved {
        /// The generation that the caller saw.
        seen: ServerGeneration,
        /// The current status.
        current: Box<ServerStatus>,
    },
    /// The caller's deadline passed.
    #[error("timed out while the server was {}", state.name())]
    RequestTimeout {
        /// The state of the server at that time.
        state: ServerState,
    },
    /// The caller was cancelled.
    #[error("cancelled by {cause}")]
    Cancelled {
        /// Who cancelled it, and why.
        cause: Arc<Cause>,
    },
    /// The limit of servers is reached, and all of them are in use.
    #[error("all {limit} servers are in use; stop one first")]
    TooManyServers {
        /// The limit.
        limit: usize,
    },
}
