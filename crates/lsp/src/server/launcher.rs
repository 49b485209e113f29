//! Starting a language server: process, connection, handshake.

use std::{path::PathBuf, sync::Arc, time::Duration};

use kernel::{Clock, Deadline, Scope};
use lifecycle::{Failure, Launch, LaunchFailure, LifecycleSettings, ServerExit, ServerGeneration, ServerKey};
use process::{Child, Confinement, Limits, Processes, Spec, StandardError, StopPlan, Tasks};
use serde_json::Value;

use super::{
    initialize::initialize_params,
    instance::{Instance, LanguageServer},
    record::RecordLevel,
    reports::ServerReports,
    site::{Site, Sites},
};
use crate::{
    client::{Client, ClientSettings, Closed, RequestError},
    queries::Capabilities,
    servers::{Chosen, CommandSpec, LaunchSpec},
    text::uri_of_path,
    wire::Connection,
};

/// The time from the start of a process to its answer to `initialize`, unless configured. A server that reads a large
/// project first takes tens of seconds on a busy machine.
const COLD_BUDGET: Duration = Duration::from_secs(120);
/// The pause between two attempts to connect to a process that was started.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) sites: Sites,
    pub(crate) processes: Processes,
    pub(crate) tasks: Tasks,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) scratch: PathBuf,
}

impl Launch for Launcher {
    type Server = LanguageServer;

    fn knows(&self, key: &ServerKey) -> bool {
        self.sites.find(key).is_some()
    }

    fn settings(&self, key: &ServerKey, usual: &LifecycleSettings) -> LifecycleSettings {
        let mut settings = usual.clone();
        if let Some(site) = self.sites.find(key) {
            let limits = &site.chosen().limits;
            settings.idle_after = limits.idle.unwrap_or(settings.idle_after);
            let restarts = limits
                .restarts
                .and_then(|restarts| usize::try_from(restarts).ok());
            settings.max_failures = restarts.unwrap_or(settings.max_failures);
        }
        settings
    }

    async fn launch(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<LanguageServer, LaunchFailure> {
        let Some(site) = self.sites.find(key) else {
            return Err(Failure::new("its configuration is gone"));
        };
        site.record
            .add(RecordLevel::State, &format!("starting generation {generation}"));
        let launched = self.bring_up(&site, generation, scope).await;
        match &launched {
            Ok(_) => site
                .record
                .add(RecordLevel::State, &format!("generation {generation} is ready")),
            Err(failure) => site.record.add(
                RecordLevel::State,
                &format!("generation {generation} did not come up: {failure}"),
            ),
        }
        launched
    }
}

impl Launcher {
    async fn bring_up(
        &self,
        site: &Arc<Site>,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<LanguageServer, LaunchFailure> {
        let chosen = site.chosen();
        let budget = Deadline::after(&self.clock, chosen.limits.startup.unwrap_or(COLD_BUDGET));
        let (connection, child) = self.connect(&chosen, generation, &budget, scope).await?;
        let told = Arc::new(ServerReports::new(site, &chosen, &self.clock));
        let client = Client::start(
            connection,
            ClientSettings::default(),
            Arc::clone(&told) as _,
            &self.tasks,
            Arc::clone(&self.clock),
        );
        match self.shake_hands(&chosen, &client, &told, &budget, scope).await {
            Ok(capabilities) => {
                let instance = Instance {
                    site: Arc::clone(site),
                    generation,
                    client,
                    child,
                    told,
                    capabilities,
                };
                LanguageServer::start(instance, &self.tasks, &self.clock, &self.scratch)
            }
            Err(message) => {
                client.close("the server did not come up");
                Err(failure(message, child).await)
            }
        }
    }

    async fn connect(
        &self,
        chosen: &Chosen,
        generation: ServerGeneration,
        budget: &Deadline,
        scope: &Scope,
    ) -> Result<(Connection, Option<Child>), LaunchFailure> {
        match &chosen.launch {
            LaunchSpec::Stdio(command) => {
                let child = self.spawn(chosen, command.clone(), generation, scope).await?;
                match (child.stdout(), child.stdin()) {
                    (Some(stdout), Some(stdin)) => Ok((Connection::new(stdout, stdin), Some(child))),
                    _ => Err(failure("its pipes are gone".to_owned(), Some(child)).await),
                }
            }
            LaunchSpec::Tcp(address) => {
                let connected = Connection::tcp(*address, budget).await;
                let connected = connected
                    .map_err(|error| Failure::new(format!("no server answers at {address}: {error}")))?;
                Ok((connected, None))
            }
            LaunchSpec::TcpSpawned { command, address } => {
                let mut address = *address;
                let mut command = command.clone();
                if address.port() == 0 {
                    let port = free_port(address.ip()).map_err(|error| {
                        Failure::new(format!("no port is free at {}: {error}", address.ip()))
                    })?;
                    address.set_port(port);
                    command = command.with_port(port);
                }
                let child = self.spawn(chosen, command, generation, scope).await?;
                self.discard_output(&child);
                match self.connect_to_child(address, &child, budget, scope).await {
                    Ok(connection) => Ok((connection, Some(child))),
                    Err(message) => Err(failure(message, Some(child)).await),
                }
            }
        }
    }

    async fn spawn(
        &self,
        chosen: &Chosen,
        command: CommandSpec,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<Child, LaunchFailure> {
        for directory in command.needed_directories.clone() {
            let shown = directory.display().to_string();
            let made = tokio::task::spawn_blocking(move || std::fs::create_dir_all(directory));
            let made = made.await.map_err(std::io::Error::other).flatten();
            made.map_err(|error| Failure::new(format!("cannot make {shown}: {error}")))?;
        }
        let spec = Spec {
            program: command.program,
            arguments: command.arguments,
            directory: command.directory,
            environment: command.environment,
            owner: format!("lsp/{}", chosen.name),
            reason: format!("language server of {}", chosen.root.display()),
            generation: generation.get(),
            limits: Limits {
                core_bytes: Some(0),
                ..Limits::default()
            },
            confinement: Confinement::None,
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: None,
        };
        // This future isn't dropped midway: a failed start leaves no process behind.
        let child = self
            .processes
            .spawn(spec)
            .await
            .map_err(|error| Failure::new(with_sources(&error)))?;
        match scope.cause() {
            None => Ok(child),
            Some(cause) => Err(failure(format!("the start was given up: {cause}"), Some(child)).await),
        }
    }

    /// Drains what a server on a socket prints, so that its pipe doesn't fill up.
    fn discard_output(&self, child: &Child) {
        if let Some(mut stdout) = child.stdout() {
            self.tasks.spawn("lsp-discard", async move {
                drop(tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await);
            });
        }
    }

    /// Connects to a process that is about to listen. Retries until it listens or ends, or the budget is used up.
    async fn connect_to_child(
        &self,
        address: std::net::SocketAddr,
        child: &Child,
        budget: &Deadline,
        scope: &Scope,
    ) -> Result<Connection, String> {
        loop {
            let error = match Connection::tcp(address, budget).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if budget.has_passed() {
                return Err(format!("it does not listen at {address}: {error}"));
            }
            tokio::select! {
                biased;
                cause = scope.wait() => return Err(format!("the start was given up: {cause}")),
                _ = child.ended() => return Err("it ended before it listened".to_owned()),
                () = Deadline::after(&self.clock, CONNECT_PAUSE).passed() => {}
            }
        }
    }

    /// `initialize` and `initialized`. Messages that the server sends before its answer are handled.
    async fn shake_hands(
        &self,
        chosen: &Chosen,
        client: &Client,
        told: &ServerReports,
        budget: &Deadline,
        scope: &Scope,
    ) -> Result<Arc<Capabilities>, String> {
        let uri = uri_of_path(&chosen.root).map_err(|error| error.to_string())?;
        let params = initialize_params(&chosen.root, &uri, chosen.initialization_options.as_ref());
        let reply = client
            .request("initialize", &params, budget, scope)
            .await
            .map_err(|error| handshake_error(&error))?;
        let mut answer: Value = reply
            .parse()
            .map_err(|error| format!("its answer to initialize cannot be read: {error}"))?;
        let capabilities = told.initialized(answer["capabilities"].take());
        capabilities.encoding()?;
        client
            .notify("initialized", &serde_json::json!({}), budget)
            .await
            .map_err(|error| handshake_error(&error))?;
        if let Some(settings) = &chosen.settings {
            // Some servers read their settings only from here.
            let params = serde_json::json!({"settings": settings});
            client
                .notify("workspace/didChangeConfiguration", &params, budget)
                .await
                .map_err(|error| handshake_error(&error))?;
        }
        Ok(capabilities)
    }
}

fn handshake_error(error: &RequestError) -> String {
    match error {
        RequestError::Closed { reason } if matches!(**reason, Closed::EndOfFile) => {
            "it ended before it was ready".to_owned()
        }
        RequestError::Timeout { waited, .. } => {
            format!("it was not ready after {} s", waited.as_secs())
        }
        other => format!("it did not come up: {other}"),
    }
}

/// A port that is free now. If another process takes it first, the start fails.
fn free_port(ip: std::net::IpAddr) -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind((ip, 0))?.local_addr()?.port())
}

/// A process that closed its output is probably about to end; its exit status is worth knowing.
const END_BY_ITSELF: StopPlan = StopPlan {
    polite: Duration::from_millis(500),
    term: Duration::from_millis(500),
    kill: Duration::from_secs(5),
};

async fn failure(message: String, child: Option<Child>) -> Failure {
    let Some(child) = child else {
        return Failure::new(message);
    };
    let ended = child.stop(END_BY_ITSELF).await;
    Failure {
        message,
        exit: exit_of(ended.exit),
        stderr_tail: child.stderr_tail(),
    }
}

pub(super) fn exit_of(exit: process::Exit) -> Option<ServerExit> {
    match exit {
        process::Exit::Code(code) => Some(ServerExit::Code(code)),
        process::Exit::Signal(signal) => Some(ServerExit::Signal(signal)),
        process::Exit::Unknown => None,
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
