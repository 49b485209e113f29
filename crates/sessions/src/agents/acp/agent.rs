//! The agent itself: it starts a process for each turn, and stops it afterwards.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{CancellationToken, Clock, Deadline};
use lifecycle::{
    ClientLease, LifecycleError, LifecycleManager, LifecycleOptions, LifecycleSettings, Patience, ServerKey,
};
use process::{Processes, Tasks};
use protocol::{AgentKind, TurnError};

use super::drive::Drive;
use super::launch::{Launcher, SharedLauncher, in_words};
use super::settings::AcpSettings;
use super::site::{Left, Site, Sites};
use crate::agent::{Agent, AgentEnd, AgentInfo, AgentTurn};
use crate::ports::Ports;

/// How long the processes have to end when the daemon stops.
const CLOSE_TIME: Duration = Duration::from_secs(10);
/// What a launch may take beyond the handshake: entering the sandbox, starting a keeper, and undoing that if it fails.
const LAUNCH_MARGIN: Duration = Duration::from_secs(60);
/// How much of the standard error is reported with an end.
const LAST_WORDS_CHARS: usize = 600;

/// A program that speaks the Agent Client Protocol.
pub struct AcpAgent {
    settings: AcpSettings,
    launcher: Arc<Launcher>,
    manager: LifecycleManager<SharedLauncher>,
    ports: Ports,
}

impl AcpAgent {
    /// Creates an agent. Each readiness check looks up its program again.
    #[expect(
        clippy::new_ret_no_self,
        reason = "nobody needs to know more of it than that it is an agent"
    )]
    #[must_use]
    pub fn new(
        settings: AcpSettings,
        processes: Processes,
        ports: Ports,
        tasks: Tasks,
        clock: Arc<dyn Clock>,
    ) -> Arc<dyn Agent> {
        let launcher = Arc::new(Launcher {
            settings: settings.clone(),
            sites: Sites::default(),
            processes,
            tasks: tasks.clone(),
            clock: Arc::clone(&clock),
        });
        let manager = LifecycleManager::new(LifecycleOptions {
            launch: super::launch::SharedLauncher(Arc::clone(&launcher)),
            settings: LifecycleSettings::default(),
            clock,
            tasks: Arc::new(tasks),
        });
        Arc::new(Self {
            settings,
            launcher,
            manager,
            ports,
        })
    }

    /// Runs the turn once it has a plan: starts a process, sends the prompt, stops the process.
    async fn run_in(&self, turn: &AgentTurn, site: &Arc<Site>, workspace: &Path) -> AgentEnd {
        // A process serves one session at a time, and a session has one turn at a time.
        let key = ServerKey::new(self.settings.name.as_str(), Path::new(&turn.session.to_string()));
        self.launcher.sites.put(&key, site);
        let end = match self.process(turn, site, &key).await {
            Ok(lease) => self.converse(turn, workspace, &lease).await,
            Err(end) => end,
        };
        // Always stop it and wait: when this returns, no part of it is running. The steps of the stop itself
        // limit how long that takes.
        let nobody = CancellationToken::new().scope();
        if let Err(error) = self
            .manager
            .stop_if_unused(&key, &Deadline::never(), &nobody)
            .await
        {
            tracing::warn!(%error, %key, "an agent could not be stopped");
        }
        self.launcher.sites.take(&key);
        self.settle(turn, site.take_left(), end).await
    }

    /// Starts a process for this turn. If the last one has just failed, this waits out its pause first.
    async fn process(
        &self,
        turn: &AgentTurn,
        site: &Site,
        key: &ServerKey,
    ) -> Result<ClientLease<SharedLauncher>, AgentEnd> {
        loop {
            let budget = self.settings.start_timeout.saturating_add(LAUNCH_MARGIN);
            let patience = Patience::Wait(Deadline::after(&turn.clock, budget));
            match self.manager.get_client(key, &patience, &turn.scope).await {
                Ok(lease) => return Ok(lease),
                Err(LifecycleError::Cancelled { .. }) => return Err(AgentEnd::Cancelled),
                Err(LifecycleError::ServerFailed { retry_at, .. }) if !site.was_tried() => {
                    let rest = retry_at.saturating_duration_since(turn.clock.now());
                    tokio::select! {
                        biased;
                        _ = turn.scope.wait() => return Err(AgentEnd::Cancelled),
                        () = Deadline::after(&turn.clock, rest).passed() => {}
                    }
                }
                Err(error) => return Err(AgentEnd::failed("acp_start", error.to_string())),
            }
        }
    }

    async fn converse(
        &self,
        turn: &AgentTurn,
        workspace: &Path,
        lease: &ClientLease<SharedLauncher>,
    ) -> AgentEnd {
        let server = match lease.server(&Patience::NoWait, &turn.scope).await {
            Ok(current) => current.server,
            Err(LifecycleError::Cancelled { .. }) => return AgentEnd::Cancelled,
            Err(error) => return gone(error.to_string()),
        };
        let Some(connection) = server.take_connection() else {
            return gone("the agent is not there any more".to_owned());
        };
        let drive = Drive::new(
            turn.clone(),
            self.settings.clone(),
            server,
            connection,
            workspace.to_owned(),
            self.ports.clone(),
            self.launcher.tasks.clone(),
        );
        drive.run().await
    }

    /// Reports what the process left, which may change how the turn ended.
    async fn settle(&self, turn: &AgentTurn, left: Left, end: AgentEnd) -> AgentEnd {
        let changes = left.changes.iter().flat_map(|changeset| &changeset.changes);
        let paths = changes.map(|recorded| recorded.change.path.to_string()).collect();
        turn.desk.tell_changes(paths).await;
        if let Some(error) = &left.not_recorded {
            let text = format!(
                "what the agent changed could not be recorded: {}",
                in_words(error)
            );
            turn.sink.trouble("acp_not_recorded", text.clone()).await.ok();
            if end == AgentEnd::Done {
                return AgentEnd::failed("acp_not_recorded", text);
            }
        }
        match (end, left.trouble) {
            // The manager only says that it did not start; the reason is here.
            (AgentEnd::Failed(_), Some(trouble)) => AgentEnd::Failed(shortened(trouble)),
            (AgentEnd::Failed(error), None) => AgentEnd::Failed(shortened(error)),
            (AgentEnd::Interrupted(error), _) => AgentEnd::Interrupted(shortened(error)),
            (end, _) => end,
        }
    }
}

#[async_trait]
impl Agent for AcpAgent {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            name: self.settings.name.clone(),
            kind: AgentKind::Acp,
            description: self.settings.description.clone(),
            readiness: self.settings.readiness(),
        }
    }

    async fn run(&self, turn: AgentTurn) -> AgentEnd {
        let plan = match turn.desk.plan().await {
            Ok(plan) => plan,
            Err(error) => return no_plan(&error),
        };
        let workspace = match turn.desk.plans().get(plan).await {
            Ok(plan) => plan.record.facts.root,
            Err(error) => return no_plan(&error),
        };
        let below = turn.desk.directory().strip_prefix(&workspace);
        let below = below.map(PathBuf::from).unwrap_or_default();
        let site = Arc::new(Site::new(
            turn.desk.plans().clone(),
            plan,
            turn.desk.actor(),
            below,
            format!("{} in {}", self.settings.name, turn.turn),
        ));
        self.run_in(&turn, &site, &workspace).await
    }

    async fn close(&self) {
        let deadline = Deadline::after(&self.launcher.clock, CLOSE_TIME);
        let nobody = CancellationToken::new().scope();
        if let Err(error) = self.manager.close(&deadline, &nobody).await {
            tracing::warn!(%error, agent = %self.settings.name, "agents could not be stopped");
        }
    }
}

fn no_plan(error: &plans::PlanError) -> AgentEnd {
    AgentEnd::failed(
        "acp_plan",
        format!("there is no plan to work in: {}", in_words(error)),
    )
}

fn gone(text: String) -> AgentEnd {
    let code = "acp_ended".to_owned();
    AgentEnd::Interrupted(TurnError { code, text })
}

fn shortened(error: TurnError) -> TurnError {
    let text = match error.text.char_indices().nth(LAST_WORDS_CHARS) {
        Some((end, _)) => format!("{}…", &error.text[..end]),
        None => error.text,
    };
    TurnError { text, ..error }
}

impl fmt::Debug for AcpAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpAgent")
            .field("settings", &self.settings.name)
            .finish_non_exhaustive()
    }
}
