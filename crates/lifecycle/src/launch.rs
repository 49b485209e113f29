//! What the manager asks of whoever starts servers.

use std::{future::Future, pin::Pin};

use kernel::{Deadline, Scope};
use process::Tasks;

use crate::{EndReason, LaunchFailure, LifecycleSettings, ServerGeneration, ServerKey};

/// How servers are launched. The manager decides when.
pub trait Launch: Send + Sync + 'static {
    /// A server that is up.
    type Server: RunningServer;

    /// Whether a server of this name is configured. Only one that is not is ever 'not found'.
    fn knows(&self, key: &ServerKey) -> bool;

    /// How patient the manager is with a server, where that is not as with all others.
    fn settings(&self, _key: &ServerKey, usual: &LifecycleSettings) -> LifecycleSettings {
        usual.clone()
    }

    /// Brings one server up: process, connection, handshake. It has a deadline of its own.
    ///
    /// When the scope is cancelled it gives up soon. A failure means that no process is left. It is polled to its
    /// end, and its server is stopped if nobody wants it any more.
    fn launch(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> impl Future<Output = Result<Self::Server, LaunchFailure>> + Send;
}

/// A server that is up. Clones are the same server.
pub trait RunningServer: Clone + Send + Sync + 'static {
    /// Waits until the server is gone or of no more use, such as one that closed its output.
    ///
    /// *Cancel safety*: may be dropped at any time. It is asked often, so it is cheap, and a server that has ended
    /// answers on the first poll.
    fn ended(&self) -> impl Future<Output = EndReason> + Send;

    /// Stops the server. When it returns, no process of it is left. It is called once, also for one that has ended.
    fn stop(&self) -> impl Future<Output = ()> + Send;

    /// Whether the server answers, asked of itself.
    ///
    /// *Cancel safety*: may be dropped at any time.
    fn probe(&self, deadline: &Deadline) -> impl Future<Output = Result<(), String>> + Send;
}

/// Where the manager's tasks run. The daemon's [`Tasks`] are one; a test may want to choose who runs next.
pub trait Spawn: Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, name: &'static str, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

impl Spawn for Tasks {
    fn spawn(&self, name: &'static str, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        Self::spawn(self, name, task);
    }
}
