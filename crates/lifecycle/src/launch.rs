//! The interface to whoever launches servers.

use std::{future::Future, pin::Pin};

use kernel::{Deadline, Scope};
use process::Tasks;

use crate::{EndReason, LaunchFailure, LifecycleSettings, ServerGeneration, ServerKey};

/// Knows how to launch servers. The manager decides when.
pub trait Launch: Send + Sync + 'static {
    /// A running server.
    type Server: RunningServer;

    /// Whether a server of this name is configured. Only a server that isn't configured is ever "not found".
    fn knows(&self, key: &ServerKey) -> bool;

    /// The settings for one server, if they differ from the usual ones.
    fn settings(&self, _key: &ServerKey, usual: &LifecycleSettings) -> LifecycleSettings {
        usual.clone()
    }

    /// Brings one server up: process, connection, handshake. The implementation sets its own deadline.
    ///
    /// It should give up soon after the scope is cancelled. A failure means that no process is left. The future
    /// is always polled to completion, and if nobody wants the server by then, it is stopped.
    fn launch(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> impl Future<Output = Result<Self::Server, LaunchFailure>> + Send;
}

/// A running server. Clones refer to the same server.
pub trait RunningServer: Clone + Send + Sync + 'static {
    /// Waits until the server is gone or unusable, for example because it closed its output.
    ///
    /// *Cancel safety*: the future may be dropped at any time. It is polled often, so it must be cheap, and it
    /// must be ready on the first poll if the server has ended.
    fn ended(&self) -> impl Future<Output = EndReason> + Send;

    /// Stops the server. When it returns, no process of the server is left. It is called once, even for a server
    /// that has ended.
    fn stop(&self) -> impl Future<Output = ()> + Send;

    /// Asks the server whether it responds.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    fn probe(&self, deadline: &Deadline) -> impl Future<Output = Result<(), String>> + Send;
}

/// Runs the tasks of the manager. The daemon uses [`Tasks`]; a test may want to choose which task runs next.
pub trait Spawn: Send + Sync + 'static {
    /// Starts a task.
    fn spawn(&self, name: &'static str, task: Pin<Box<dyn Future<Output = ()> + Send>>);
}

impl Spawn for Tasks {
    fn spawn(&self, name: &'static str, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        Self::spawn(self, name, task);
    }
}
