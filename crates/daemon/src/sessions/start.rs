//! Sets up the sessions service of a daemon.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use jobs::Jobs;
use kernel::{CircuitBreaker, Clock, Scope};
use plans::Plans;
use process::{Processes, Tasks};
use protocol::BootId;
use sessions::agents::acp::AcpAgent;
use sessions::{Ports, SessionError, Sessions, SessionsOptions, Sharing};

use super::agents::{Variables, acp_settings, built_in, default_agent, model_settings, programs};
use super::languages::SharedLanguages;
use super::shell::JobShell;
use crate::configuration::{Configuration, ConfigurationError};
use crate::context::ContextService;
use crate::durable::Durable;
use crate::jobs::Environments;
use crate::language_servers::LanguageServers;
use crate::plans::TurnFinisher;
use crate::start_error::StartError;

/// What sessions depend on.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) durable: &'a Durable,
    pub(crate) boot_id: BootId,
    pub(crate) breakers: &'a CircuitBreaker,
    pub(crate) processes: &'a Processes,
    pub(crate) language_servers: &'a LanguageServers,
    pub(crate) jobs: &'a Jobs,
    pub(crate) environments: &'a Environments,
    pub(crate) plans: &'a Plans,
    pub(crate) contexts: &'a ContextService,
    /// The variables of the daemon. Agents get them, because they include the agents' own API keys.
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) for_commands: &'a [(OsString, OsString)],
    /// Cancelled when everything else has ended.
    pub(crate) closing: &'a Scope,
    pub(crate) tasks: &'a Tasks,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

/// Opens the sessions of this log. Turns that an earlier daemon left running become `interrupted`, and the prompts
/// queued behind them start, so everything that they need must be ready.
pub(crate) async fn start(
    configuration: Configuration,
    file: Option<&Path>,
    around: Around<'_>,
) -> Result<Sessions, StartError> {
    let variables = Variables(around.environment);
    let settings = model_settings(&configuration.model, variables)?;
    let mut agents = built_in(settings, around.breakers, around.clock);
    let ports = ports(around);
    for (name, program) in programs(&configuration.agents, variables) {
        let settings = acp_settings(&name, program, variables);
        let agent = AcpAgent::new(
            settings,
            around.processes.clone(),
            ports.clone(),
            around.tasks.clone(),
            Arc::clone(around.clock),
        );
        agents.insert(name, agent);
    }
    let chosen = configuration.sessions.default_agent.as_deref();
    let default_agent = default_agent(chosen, &agents).map_err(|what| ConfigurationError::Invalid {
        path: file.map(Path::to_owned).unwrap_or_default(),
        what,
    })?;
    tracing::info!(
        agents = ?agents.keys().collect::<Vec<_>>(),
        default_agent,
        "agents can be asked"
    );
    let opened = Sessions::open(SessionsOptions {
        log: around.durable.log.clone(),
        sharing: match around.durable.engine {
            protocol::LogEngine::Sqlite => Sharing::Alone,
            protocol::LogEngine::Postgres => Sharing::WithOthers,
        },
        home_id: around.durable.home_id,
        boot_id: around.boot_id,
        plans: around.plans.clone(),
        ports,
        agents,
        settings: configuration.sessions.settings(default_agent),
        tasks: around.tasks.clone(),
        clock: Arc::clone(around.clock),
    });
    opened.await.map_err(|error: SessionError| error.into())
}

/// The services that agents use.
fn ports(around: Around<'_>) -> Ports {
    Ports {
        shell: Arc::new(JobShell {
            jobs: around.jobs.clone(),
            plans: around.plans.clone(),
            log: around.durable.log.clone(),
            home_id: around.durable.home_id,
            environments: around.environments.clone(),
            environment: around.for_commands.into(),
            closing: around.closing.clone(),
        }),
        finisher: Arc::new(TurnFinisher {
            jobs: around.jobs.clone(),
            home: around.durable.home_id,
        }),
        languages: Arc::new(SharedLanguages(around.language_servers.clone())),
        context: Arc::new(around.contexts.clone()),
    }
}
