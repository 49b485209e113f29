//! Starts an agent's process: enters the sandbox, spawns the process, performs the handshake.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Deadline, Scope};
use lifecycle::{AfterCrash, Failure, Launch, LaunchFailure, LifecycleSettings, ServerGeneration, ServerKey};
use plans::{Attribution, CommandRun};
use process::{Child, Confinement, Limits, Processes, Spec, StandardError, StopPlan, Tasks};
use protocol::TurnError;
use serde_json::json;

use super::server::{AcpServer, exit_of, leave};
use super::settings::AcpSettings;
use super::site::{Site, Sites};
use super::wire::{CallEnd, Closed, Connection, Initialized, PROTOCOL_VERSION};

/// How a process that failed to start is stopped. One that closed its output is most likely about to exit, and its exit
/// status is worth knowing.
const STOP: StopPlan = StopPlan {
    polite: Duration::from_millis(500),
    term: Duration::from_millis(500),
    kill: Duration::from_secs(5),
};

#[derive(Debug)]
pub(super) struct Launcher {
    pub(super) settings: AcpSettings,
    pub(super) sites: Sites,
    pub(super) processes: Processes,
    pub(super) tasks: Tasks,
    pub(super) clock: Arc<dyn Clock>,
}

/// Why an agent did not start: the code that its turn ends with, and a message.
struct Trouble {
    code: &'static str,
    message: String,
}

impl Trouble {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// The launcher that the manager owns. The agent shares it, to register the turns that want a process.
#[derive(Debug)]
pub(super) struct SharedLauncher(pub(super) Arc<Launcher>);

impl Launch for SharedLauncher {
    type Server = AcpServer;

    fn knows(&self, key: &ServerKey) -> bool {
        self.0.sites.find(key).is_some()
    }

    /// Another process can't continue what an agent's process was doing.
    fn settings(&self, _key: &ServerKey, usual: &LifecycleSettings) -> LifecycleSettings {
        LifecycleSettings {
            after_crash: AfterCrash::WaitForRequest,
            ..usual.clone()
        }
    }

    async fn launch(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<AcpServer, LaunchFailure> {
        let launcher = &self.0;
        let Some(site) = launcher.sites.find(key) else {
            return Err(Failure::new("its turn is over"));
        };
        site.note(|left| left.tried = true);
        let new = Attribution {
            actor: Arc::clone(&site.actor),
            tool: launcher.settings.name.clone(),
            reason: site.reason.clone(),
            job: None,
        };
        let stay = site.plans.begin_command(site.plan, new).await.map_err(|error| {
            let text = format!("it did not get into its sandbox: {}", in_words(&error));
            failed(&site, Trouble::new("acp_sandbox", text), None)
        })?;
        match launcher.start(&site, &stay, generation, scope).await {
            Ok((child, connection, initialized)) => {
                Ok(AcpServer::new(child, site, stay, connection, initialized))
            }
            Err((trouble, child)) => {
                let failure = match child {
                    Some(child) => {
                        let ended = child.stop(STOP).await;
                        failed(&site, trouble, Some((ended.exit, child.stderr_tail())))
                    }
                    None => failed(&site, trouble, None),
                };
                leave(&site, &stay).await;
                Err(failure)
            }
        }
    }
}

/// Notes for the turn why there is no process.
fn failed(site: &Site, trouble: Trouble, end: Option<(process::Exit, String)>) -> Failure {
    let (exit, stderr_tail) = end.map_or((None, String::new()), |(exit, tail)| (exit_of(exit), tail));
    let failure = Failure {
        message: trouble.message,
        exit,
        stderr_tail,
    };
    let text = failure.to_string();
    let code = trouble.code.to_owned();
    site.note(|left| left.trouble = Some(TurnError { code, text }));
    failure
}

impl Launcher {
    async fn start(
        &self,
        site: &Site,
        stay: &CommandRun,
        generation: ServerGeneration,
        scope: &Scope,
    ) -> Result<(Child, Connection, Initialized), (Trouble, Option<Child>)> {
        // This isn't dropped midway: when a start has failed, none of its processes is left.
        let spec = self.spec(site, stay, generation).await?;
        let child = self.processes.spawn(spec).await.map_err(|error| {
            let text = format!("the agent cannot be started: {}", in_words(&error));
            (Trouble::new("acp_start", text), None)
        })?;
        let (Some(stdout), Some(stdin)) = (child.stdout(), child.stdin()) else {
            return Err((Trouble::new("acp_start", "its pipes are gone"), Some(child)));
        };
        let mut connection = Connection::start(stdout, stdin, &self.tasks);
        match self.shake_hands(&mut connection, scope).await {
            Ok(initialized) => Ok((child, connection, initialized)),
            Err(trouble) => Err((trouble, Some(child))),
        }
    }

    async fn spec(
        &self,
        site: &Site,
        stay: &CommandRun,
        generation: ServerGeneration,
    ) -> Result<Spec, (Trouble, Option<Child>)> {
        let entrance = &stay.entrance;
        let mut command = self.settings.command.iter();
        let mut environment = self.settings.environment.clone();
        environment.extend(entrance.environment.clone());
        let writable = entrance.writable(&environment).await.map_err(|error| {
            let text = format!("the agent cannot be started: {}", in_words(&error));
            (Trouble::new("acp_start", text), None)
        });
        let mut write_below = writable?;
        write_below.extend(self.settings.write_below.iter().cloned());
        Ok(Spec {
            program: command.next().map(Into::into).unwrap_or_default(),
            arguments: command.map(OsString::from).collect(),
            directory: site.directory(&entrance.root),
            environment,
            owner: format!("agent/{}", self.settings.name),
            reason: site.reason.clone(),
            generation: generation.get(),
            limits: Limits {
                core_bytes: Some(0),
                ..Limits::default()
            },
            confinement: Confinement::WriteBelow(write_below),
            stderr: StandardError::KeptAsTail,
            terminal: None,
            view: entrance.view.clone(),
        })
    }

    async fn shake_hands(&self, connection: &mut Connection, scope: &Scope) -> Result<Initialized, Trouble> {
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": true, "writeTextFile": true },
                "terminal": true,
            },
            "clientInfo": { "name": "tidelock", "title": "Tidelock", "version": env!("CARGO_PKG_VERSION") },
        });
        let deadline = Deadline::after(&self.clock, self.settings.start_timeout);
        let answer = connection.call("initialize", &params, &deadline, scope).await;
        let answer = answer.map_err(|end| match end {
            CallEnd::Refused(error) => Trouble::new(
                "acp_start",
                format!("the agent refused to begin: {}", error.in_words()),
            ),
            CallEnd::Closed(Closed::EndOfFile) => {
                Trouble::new("acp_start", "the agent ended before it was ready")
            }
            CallEnd::Closed(closed) => {
                Trouble::new("acp_protocol", format!("the agent is of no use: {closed}"))
            }
            CallEnd::TimedOut => {
                let seconds = self.settings.start_timeout.as_secs();
                Trouble::new(
                    "acp_no_answer",
                    format!("the agent did not answer `initialize` within {seconds} s"),
                )
            }
            CallEnd::Cancelled => Trouble::new("acp_start", "the start was given up"),
        })?;
        let initialized: Initialized = serde_json::from_value(answer).map_err(|error| {
            Trouble::new(
                "acp_protocol",
                format!("its answer to `initialize` cannot be read: {error}"),
            )
        })?;
        if initialized.protocol_version != PROTOCOL_VERSION {
            return Err(Trouble::new(
                "acp_protocol",
                format!(
                    "it speaks version {} of the protocol, and we speak {PROTOCOL_VERSION}",
                    initialized.protocol_version
                ),
            ));
        }
        Ok(initialized)
    }
}

/// An error with all of its causes.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
