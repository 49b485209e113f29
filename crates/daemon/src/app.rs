//! The state that every request can reach. Only [`App::start`] creates it, once the addresses are known. No part is
//! replaced later: parts that change (phase, breakers, sessions, counters) do their own locking.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ::jobs::Jobs;
use ::plans::Plans;
use kernel::{CancellationToken, Cause, CircuitBreaker, Clock};
use process::{Processes, Tasks};
use protocol::{BootId, Setting, SettingList};
use tokio::sync::{Semaphore, mpsc};

use crate::access::{Hosts, Logins, Secret};
use crate::configuration::Configuration;
use crate::context::{self, ContextService};
use crate::durable::{Durable, Note, Starting};
use crate::http::RefusedLines;
use crate::jobs::{self, Environments, Inputs, Workers};
use crate::language_servers::{self, LanguageServers};
use crate::life::Life;
use crate::mcp::Mcp;
use crate::metrics::{Metrics, Observed};
use crate::options::Options;
use crate::plans::{self, JobsSlot, Watch};
use crate::processes;
use crate::scratch::Scratch;
use crate::server::stream_permits;
use crate::sessions;
use crate::start_error::StartError;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) boot_id: BootId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    pub(crate) life: Life,
    /// For reading state and recording calls. Manual changes go through `durable.overrides` only.
    pub(crate) breakers: CircuitBreaker,
    pub(crate) durable: Durable,
    pub(crate) language_servers: LanguageServers,
    pub(crate) processes: Processes,
    pub(crate) jobs: Jobs,
    pub(crate) job_workers: Workers,
    pub(crate) job_inputs: Inputs,
    pub(crate) environments: Environments,
    pub(crate) plans: Plans,
    pub(crate) contexts: ContextService,
    pub(crate) sessions: ::sessions::Sessions,
    pub(crate) mcp: Mcp,
    pub(crate) plan_watch: Watch,
    pub(crate) kill: crate::plans::KillPoints,
    /// Keeps the jobs reachable for the services that were created before them.
    pub(crate) _jobs_slot: JobsSlot,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) hosts: Hosts,
    pub(crate) refused_lines: RefusedLines,
    pub(crate) token: Secret,
    pub(crate) logins: Logins,
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
    pub(crate) body_limit_bytes: usize,
    /// The settings as of the start.
    pub(crate) settings: SettingList,
}

/// What the daemon sets up before its parts start.
pub(crate) struct AppParts<'a> {
    pub(crate) boot_id: BootId,
    pub(crate) breakers: CircuitBreaker,
    pub(crate) settings: Vec<Setting>,
    pub(crate) token: Secret,
    pub(crate) address: SocketAddr,
    pub(crate) tasks: &'a Tasks,
    pub(crate) closing: &'a CancellationToken,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

/// The parts of a started daemon, and what it must drop before it gives up its home.
pub(crate) struct Started {
    pub(crate) app: Arc<App>,
    pub(crate) scratch: Scratch,
    pub(crate) notes: mpsc::Sender<Note>,
}

impl App {
    /// Starts the parts one by one. Each gets what it needs from the parts before it.
    pub(crate) async fn start(
        options: Options,
        mut configuration: Configuration,
        parts: AppParts<'_>,
    ) -> Result<Started, StartError> {
        let AppParts {
            boot_id,
            breakers,
            settings,
            token,
            address,
            tasks,
            closing,
            clock,
        } = parts;
        let (life, started, started_at) = (Life::new(), clock.now(), SystemTime::now());
        let progress = options.progress.clone();
        progress.tell("opening the log");
        let (durable, notes) = Durable::open(
            &options.home,
            &options.database,
            Arc::clone(clock),
            Starting {
                boot_id,
                started_at,
                machine_name: configuration.machine.name(&options.languages.environment),
            },
            &breakers,
            tasks,
            &closing.scope(),
        )
        .await?;
        if let Some(identity) = durable.identity.clone() {
            let (life, closing) = (life.clone(), closing.scope());
            tasks.spawn("identity", async move {
                if let Err(taken_over) = identity.keep(closing).await {
                    tracing::error!(%taken_over, "this home was copied, and somebody uses the copy");
                    life.stop(Cause::new("the shared log", taken_over.to_string()));
                }
            });
        }
        progress.tell("ending what an earlier daemon left running");
        let processes = processes::open(&durable, boot_id, options.keeper, tasks, clock).await?;
        let scratch = Scratch::make(&options.home).map_err(StartError::Scratch)?;
        let environment = options.languages.environment.clone();
        let for_commands = sessions::for_commands(&environment, &configuration);
        let language_servers = language_servers::start(
            &options.home,
            options.languages,
            &processes,
            &durable.trusted,
            scratch.path(),
            tasks,
            clock,
        );
        let tools = (tasks, clock);
        progress.tell("looking at plans");
        let settings_of_plans = configuration.plans.settings(options.plans.clone());
        let guarded = options.home.guarded(options.configuration.as_deref());
        let access = (options.home.plans(), guarded, settings_of_plans);
        let job_workers = Workers::new(durable.log.clone(), durable.home_id);
        let (plans, chosen_workers) = tokio::join!(
            plans::start(&durable, &processes, access, &environment, tools),
            job_workers.chosen(),
        );
        let (plans, chosen_workers) = (plans?, chosen_workers.map_err(::jobs::OpenJobsError::from)?);
        let jobs_slot = JobsSlot::default();
        let plan_watch = jobs_slot.watch(&plans, tasks, closing.scope());
        let access = jobs::SandboxAccess {
            sandboxes: Arc::new(plans.clone()),
            write_below: options.plans.write_below,
        };
        let job_inputs = Inputs::default();
        let environments = options.home.environments();
        let environments =
            Environments::open(environments, tasks, &closing.scope()).map_err(StartError::Scratch)?;
        let kill = plans::KillPoints::of(&environment);
        progress.tell("looking at jobs");
        let (jobs, untouched) = tokio::join!(
            jobs::start(
                &durable,
                (boot_id, chosen_workers),
                &processes,
                (for_commands.clone(), &environments),
                (access, &job_inputs),
                (&plan_watch, &jobs_slot, kill.clone()),
                tools,
            ),
            plans::untouched(&plans, durable.home_id),
        );
        let jobs = jobs?;
        if let Err(error) = plans::forget_unsubmitted(&plans, &jobs, untouched).await {
            tracing::warn!(%error, "plans of commands that were never submitted may stay");
        }
        // It waits for plans that are being recovered, and nothing waits for it.
        tasks.spawn("settling checks", plans::settle_all(plan_watch.clone()));
        let contexts = context::start(
            std::mem::take(&mut configuration.context),
            context::Around {
                home: &options.home,
                scratch: scratch.path(),
                breakers: &breakers,
                processes: &processes,
                language_servers: &language_servers,
                plans: &plans,
                for_commands: &for_commands,
                tasks,
                clock,
            },
        );
        let mcp = Mcp::new(std::mem::take(&mut configuration.mcp), tasks);
        progress.tell("looking at sessions");
        // Last, because queued prompts resume at once and need everything else.
        let sessions = sessions::start(
            configuration,
            options.configuration.as_deref(),
            sessions::Around {
                durable: &durable,
                boot_id,
                breakers: &breakers,
                processes: &processes,
                language_servers: &language_servers,
                jobs: &jobs,
                environments: &environments,
                plans: &plans,
                contexts: &contexts,
                environment: &environment,
                for_commands: &for_commands,
                closing: &closing.scope(),
                tasks,
                clock,
            },
        )
        .await?;
        let app = Arc::new(Self {
            boot_id,
            started,
            started_at,
            metrics: Metrics::new(Observed {
                life: life.clone(),
                breakers: breakers.clone(),
                log: Arc::clone(&durable.health),
                found_crashed: durable.boots.found_crashed,
                processes: processes.clone(),
                language_servers: language_servers.clone(),
                jobs: jobs.clone(),
                plans: plans.clone(),
                sessions: sessions.clone(),
                contexts: contexts.clone(),
                clock: Arc::clone(clock),
                started,
            }),
            life,
            breakers,
            durable,
            language_servers,
            processes,
            jobs,
            job_workers,
            job_inputs,
            environments,
            plans,
            contexts,
            sessions,
            mcp,
            plan_watch,
            kill,
            _jobs_slot: jobs_slot,
            streams: Arc::new(Semaphore::new(stream_permits(
                options.streams,
                process::raise_open_files(),
            ))),
            hosts: Hosts::new(address, &options.allowed_hosts, &token),
            refused_lines: RefusedLines::default(),
            logins: Logins::new(&token),
            token,
            address,
            socket: options.home.socket(),
            body_limit_bytes: options.body_limit_bytes,
            settings: SettingList {
                file: options.configuration.map(|path| path.display().to_string()),
                settings,
            },
            clock: Arc::clone(clock),
        });
        Ok(Started { app, scratch, notes })
    }
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.started)
    }
}

/// Milliseconds for the wire. A value that doesn't fit is as good as forever.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds for a caller that waits: rounded up, so that it doesn't come back a moment too early.
pub(crate) fn whole_ms_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use kernel::SystemClock;

    use super::*;
    use crate::home::Home;
    use crate::options::StreamLimit;

    /// The shared parts of a daemon that doesn't listen. The directory of its log is already removed.
    pub(crate) async fn detached() -> Arc<App> {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            streams: StreamLimit::AtMost(1),
            body_limit_bytes: 1024,
            keeper: crate::jobs::test_keeper(),
            ..Options::new(Home {
                runtime: directory.path().to_owned(),
                state: directory.path().to_owned(),
            })
        };
        let clock = SystemClock::shared();
        let parts = AppParts {
            boot_id: BootId::generate(),
            breakers: CircuitBreaker::new(options.breaker.clone(), Arc::clone(&clock)).unwrap(),
            settings: Vec::new(),
            token: Secret::generate().unwrap(),
            address: options.listen.address,
            tasks: &Tasks::default(),
            closing: &CancellationToken::new(),
            clock: &clock,
        };
        let started = App::start(options, Configuration::default(), parts).await;
        started.unwrap().app
    }

    #[test]
    fn a_wait_is_rounded_up_and_anything_else_down() {
        for (nanoseconds, down, up) in [(0, 0, 0), (1, 0, 1), (1_000_000, 1, 1), (1_000_001, 1, 2)] {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!((whole_ms(duration), whole_ms_up(duration)), (down, up));
        }
        assert_eq!(
            (whole_ms(Duration::MAX), whole_ms_up(Duration::MAX)),
            (u64::MAX, u64::MAX)
        );
    }
}
