//! The shared service.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kernel::{Cause, Clock, Deadline, Scope};
use lifecycle::{
    Health, LifecycleManager, LifecycleOptions, LifecycleSettings, Patience, Probe, ProbeResult, ServerKey,
};
use process::{Processes, Tasks};
use serde_json::Value;

use super::{
    choices::{Choice, Choices},
    error::AskError,
    representatives,
    view::{Detail, ServerView},
};
use crate::{
    client::{Reply, RequestError},
    documents::DocumentSettings,
    queries::{Query, QueryLimits},
    server::{Launcher, Site, Sites},
    servers::{Chosen, ConfigHash, Environment, Overview, Registry, WorkspaceError},
};

/// How long a server may take to answer a probe.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// How many sites are kept before those without a server are dropped.
const MOST_SITES: usize = 512;

#[derive(Debug)]
pub struct LanguagesOptions {
    pub registry: Registry,
    pub processes: Processes,
    pub tasks: Tasks,
    pub clock: Arc<dyn Clock>,
    pub scratch: PathBuf,
    pub lifecycle: LifecycleSettings,
    pub documents: DocumentSettings,
    pub limits: QueryLimits,
}

/// The language servers of a daemon. Clones share the service.
#[derive(Clone, Debug)]
pub struct Languages {
    pub(super) shared: Arc<LanguagesShared>,
}

#[derive(Debug)]
pub(super) struct LanguagesShared {
    pub(super) manager: LifecycleManager<Launcher>,
    pub(super) sites: Sites,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: QueryLimits,
    pub(super) document_limit_bytes: u64,
    pub(super) choices: Choices,
}

#[derive(Clone, Debug)]
pub struct ServerCheck {
    pub view: ServerView,
    pub probe: ProbeResult,
}

impl Languages {
    /// A service without servers. They start with the first question.
    pub fn new(options: LanguagesOptions) -> Self {
        let sites = Sites::new(options.documents, Arc::clone(&options.clock));
        let launcher = Launcher {
            sites: sites.clone(),
            processes: options.processes,
            tasks: options.tasks.clone(),
            clock: Arc::clone(&options.clock),
            scratch: options.scratch,
        };
        let manager = LifecycleManager::new(LifecycleOptions {
            launch: launcher,
            settings: options.lifecycle,
            clock: Arc::clone(&options.clock),
            tasks: Arc::new(options.tasks),
        });
        Self {
            shared: Arc::new(LanguagesShared {
                manager,
                sites,
                choices: Choices::new(options.registry, Arc::clone(&options.clock)),
                clock: options.clock,
                limits: options.limits,
                document_limit_bytes: options.documents.max_bytes as u64,
            }),
        }
    }

    /// The known state of a server, and whether it answers.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn health(&self, id: &str) -> Result<ServerCheck, AskError> {
        let key = self.key_of(id)?;
        let probe = Probe::Within(Deadline::after(&self.shared.clock, PROBE_TIME));
        let checked = self.shared.manager.health_check(&key, &probe).await;
        let Health { status, probe } = checked.map_err(|source| lost(&key, source))?;
        let view = self.view(status, Detail::Memory);
        Ok(ServerCheck { view, probe })
    }

    /// Sends a raw request. It isn't repeated if the server exits, because it may have effects.
    ///
    /// *Cancel safety*: dropping it abandons the request and tells the server.
    pub async fn request(
        &self,
        id: &str,
        method: &str,
        params: &Value,
        timeout: Duration,
        scope: &Scope,
    ) -> Result<(Reply, u64), AskError> {
        let key = self.key_of(id)?;
        let deadline = Deadline::after(&self.shared.clock, timeout);
        let patience = Patience::Wait(deadline.clone());
        let manager = &self.shared.manager;
        let lease = manager
            .get_client(&key, &patience, scope)
            .await
            .map_err(|source| lost(&key, source))?;
        let current = lease
            .server(&patience, scope)
            .await
            .map_err(|source| lost(&key, source))?;
        let generation = current.generation.get();
        let server = Arc::clone(&key.server);
        match current
            .server
            .client()
            .request(method, params, &deadline, scope)
            .await
        {
            Ok(reply) => Ok((reply, generation)),
            Err(RequestError::Closed { .. }) => Err(AskError::WentAway { server, generation }),
            Err(source) => Err(AskError::Request { server, source }),
        }
    }

    /// What is configured for a workspace.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn overview(&self, workspace: &Path) -> Result<Overview, AskError> {
        let (this, workspace) = (self.clone(), workspace.to_owned());
        let looked = self.blocking(move || this.shared.choices.registry().overview(&workspace));
        Ok(looked.await??)
    }

    /// The hash to trust for the current state of a workspace.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn hash_to_trust(&self, workspace: &Path) -> Result<ConfigHash, AskError> {
        let (this, workspace) = (self.clone(), workspace.to_owned());
        let looked: Result<ConfigHash, WorkspaceError> = self
            .blocking(move || this.shared.choices.registry().hash_to_trust(&workspace))
            .await?;
        Ok(looked?)
    }

    /// Trust has changed: earlier choices no longer count.
    pub fn trust_has_changed(&self) {
        self.shared.choices.forget();
    }

    /// Waits until the count of changes differs from what the caller saw, and returns it.
    ///
    /// *Cancel safety*: may be dropped at any time; no change is lost.
    pub async fn changed_since(&self, seen: u64, scope: &Scope) -> Result<u64, Arc<Cause>> {
        self.shared.manager.changes().since(seen, scope).await
    }

    /// The servers of a file. For workspace symbols, a directory stands for the files in it.
    pub(super) async fn choice(
        &self,
        path: &Path,
        workspace: Option<&Path>,
        query: &Query,
        caller: &Environment,
    ) -> Result<Arc<Choice>, AskError> {
        if let Some(choice) = self.shared.choices.fresh(path, workspace, caller) {
            return Ok(choice);
        }
        let this = self.clone();
        let (path, workspace) = (path.to_owned(), workspace.map(Path::to_owned));
        let of_workspace = matches!(query, Query::WorkspaceSymbols { .. });
        let caller = caller.clone();
        self.blocking(move || {
            let choices = &this.shared.choices;
            if of_workspace && path.is_dir() {
                return representatives::of_directory(choices, &path, workspace.as_deref(), &caller);
            }
            choices.choose(&path, workspace.as_deref(), &caller)
        })
        .await?
    }

    pub(super) fn note_site(&self, chosen: &Arc<Chosen>) -> Arc<Site> {
        let site = self.shared.sites.take_note(chosen);
        if self.shared.sites.count() > MOST_SITES {
            let used: Vec<ServerKey> = self
                .shared
                .manager
                .list()
                .into_iter()
                .map(|status| status.key)
                .collect();
            let is_kept = |key: &ServerKey| *key == site.key || used.contains(key);
            self.shared.sites.retain(is_kept);
        }
        site
    }

    /// Runs blocking work on a blocking thread.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AskError> {
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| AskError::ShuttingDown)
    }
}

pub(super) fn lost(key: &ServerKey, source: lifecycle::LifecycleError) -> AskError {
    AskError::Lifecycle {
        server: Arc::clone(&key.server),
        source,
    }
}
