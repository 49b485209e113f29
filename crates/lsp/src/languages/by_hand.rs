//! Explicit start, stop and restart of servers. A caller that names the process it saw affects no other process.

use std::{path::Path, sync::Arc, time::Duration};

use kernel::{Deadline, Scope};
use lifecycle::{ExpectedProcess, LifecycleError, ServerKey, StoppedAll};

use super::{
    error::AskError,
    representatives,
    service::{Languages, lost},
    view::{Detail, ServerView},
};
use crate::servers::{Chosen, Environment};

/// How long an explicit start or restart may take.
const START_TIME: Duration = Duration::from_secs(150);
/// How long an explicit stop may take: the longest path from `shutdown` to the end of the process.
const STOP_TIME: Duration = Duration::from_secs(15);

impl Languages {
    /// Starts the servers of a path, or the named one, and waits until they are up. They are looked up with the
    /// caller's variables, as in [`Ask`](super::Ask).
    ///
    /// *Cancel safety*: the future may be dropped at any time; the starts continue.
    pub async fn start(
        &self,
        path: &Path,
        workspace: Option<&Path>,
        server: Option<&str>,
        caller: &Environment,
        scope: &Scope,
    ) -> Result<Vec<ServerView>, AskError> {
        let chosen = self.to_start(path, workspace, server, caller).await?;
        let starts = chosen
            .iter()
            .map(|chosen| self.start_chosen(chosen, ExpectedProcess::Any, scope));
        futures_util::future::join_all(starts).await.into_iter().collect()
    }

    /// Starts a server that was used before, with its current configuration, and waits until it is up.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the start continues.
    pub async fn start_again(
        &self,
        id: &str,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<ServerView, AskError> {
        let key = self.key_of(id)?;
        let all = self
            .to_start(
                &key.root,
                Some(&key.root),
                Some(&key.server),
                &Environment::default(),
            )
            .await?;
        // It must be the same server, not one further up.
        let chosen = all.iter().find(|chosen| *chosen.root == *key.root);
        let Some(chosen) = chosen else {
            let server = Arc::clone(&key.server);
            return Err(lost(&key, LifecycleError::ServerNotFound { server }));
        };
        self.start_chosen(chosen, seen, scope).await
    }

    /// Stops a server until somebody starts it explicitly, and waits until its process has ended.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stop continues.
    pub async fn stop(&self, id: &str, seen: ExpectedProcess, scope: &Scope) -> Result<ServerView, AskError> {
        let key = self.key_of(id)?;
        let deadline = Deadline::after(&self.shared.clock, STOP_TIME);
        let stopped = self.shared.manager.stop_server_if(&key, seen, &deadline, scope);
        stopped.await.map_err(|source| self.refused(&key, source))?;
        self.find(id, Detail::Memory)
    }

    /// Restarts a server, and waits until it is up.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the restart continues.
    pub async fn restart(
        &self,
        id: &str,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<ServerView, AskError> {
        let key = self.key_of(id)?;
        let deadline = Deadline::after(&self.shared.clock, START_TIME);
        let restarted = self
            .shared
            .manager
            .restart_server_if(&key, seen, &deadline, scope);
        restarted.await.map_err(|source| self.refused(&key, source))?;
        self.find(id, Detail::Memory)
    }

    /// Stops all servers until somebody starts them explicitly, and waits until their processes have ended;
    /// many that hang take as long as one. Returns those that had a process, by root and name, including
    /// those that are still stopping.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stops continue.
    pub async fn stop_all(&self, scope: &Scope) -> Result<Vec<ServerView>, AskError> {
        let deadline = Deadline::after(&self.shared.clock, STOP_TIME);
        let stopped = self.shared.manager.stop_all(&deadline, scope).await;
        let StoppedAll {
            stopped,
            still_stopping,
        } = stopped.map_err(AskError::StopOfAll)?;
        let mut all = self.list(Detail::Memory);
        all.retain(|view| stopped.contains(&view.status.key) || still_stopping.contains(&view.status.key));
        Ok(all)
    }

    /// Stops all servers and refuses to start any more.
    ///
    /// *Cancel safety*: the future may be dropped at any time; nothing is started afterwards.
    pub async fn close(&self, deadline: &Deadline, scope: &Scope) -> StoppedAll {
        self.shared
            .manager
            .close(deadline, scope)
            .await
            .unwrap_or_default()
    }

    async fn to_start(
        &self,
        path: &Path,
        workspace: Option<&Path>,
        server: Option<&str>,
        caller: &Environment,
    ) -> Result<Vec<Arc<Chosen>>, AskError> {
        let this = self.clone();
        let caller = caller.clone();
        let (path, workspace) = (path.to_owned(), workspace.map(Path::to_owned));
        let server = server.map(str::to_owned);
        self.blocking(move || {
            let choices = &this.shared.choices;
            representatives::to_start(choices, &path, workspace.as_deref(), server.as_deref(), &caller)
        })
        .await?
    }

    async fn start_chosen(
        &self,
        chosen: &Arc<Chosen>,
        seen: ExpectedProcess,
        scope: &Scope,
    ) -> Result<ServerView, AskError> {
        let key = self.note_site(chosen).key.clone();
        let deadline = Deadline::after(&self.shared.clock, START_TIME);
        let started = self.shared.manager.start_server_if(&key, seen, &deadline, scope);
        started.await.map_err(|source| self.refused(&key, source))?;
        let id = super::view::server_id(&key.server, &key.root);
        self.find(&id, Detail::Memory)
    }

    fn refused(&self, key: &ServerKey, source: LifecycleError) -> AskError {
        match source {
            LifecycleError::ServerMoved { seen, current } => AskError::Moved {
                seen,
                current: Box::new(self.view(*current, Detail::Memory)),
            },
            source => lost(key, source),
        }
    }
}
