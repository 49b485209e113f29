//! What every request can reach. Made once, when the addresses are known, and never changed: what moves inside
//! (phase, breakers, sessions, counters) guards itself.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jobs::Jobs;
use kernel::{CircuitBreaker, Clock};
use plans::Plans;
use process::Processes;
use protocol::{BootId, SettingList};
use tokio::sync::Semaphore;

use crate::access::{Hosts, Secret, Sessions};
use crate::context::ContextService;
use crate::durable::Durable;
use crate::http::RefusedLines;
use crate::jobs::{Environments, Inputs, Workers};
use crate::language_servers::LanguageServers;
use crate::life::Life;
use crate::mcp::Mcp;
use crate::metrics::Metrics;
use crate::plans::{LateJobs, Watch};

/// The shared parts of one daemon.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) boot_id: BootId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    pub(crate) life: Life,
    /// To be looked at, and to record calls in. By hand they are changed through `durable.overrides` alone.
    pub(crate) breakers: CircuitBreaker,
    pub(crate) durable: Durable,
    pub(crate) language_servers: LanguageServers,
    pub(crate) processes: Processes,
    pub(crate) jobs: Jobs,
    pub(crate) job_workers: Workers,
    /// Where commands meet the clients that feed them.
    pub(crate) job_inputs: Inputs,
    pub(crate) environments: Environments,
    pub(crate) plans: Plans,
    /// Questions about code.
    pub(crate) contexts: ContextService,
    /// Conversations with agents. They are named so because the page has sessions of its own.
    pub(crate) conversations: ::sessions::Sessions,
    /// Clients of the Model Context Protocol.
    pub(crate) mcp: Mcp,
    /// What watches over plans and jobs together.
    pub(crate) plan_watch: Watch,
    pub(crate) kill: crate::plans::KillPoints,
    /// Keeps the jobs reachable for those that were made before them.
    pub(crate) _late_jobs: LateJobs,
    /// The places for event streams.
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) hosts: Hosts,
    /// How much of the log refused requests get.
    pub(crate) refused_lines: RefusedLines,
    pub(crate) token: Secret,
    pub(crate) sessions: Sessions,
    pub(crate) address: SocketAddr,
    pub(crate) socket: PathBuf,
    pub(crate) body_limit_bytes: usize,
    /// How it is set up, as it was when it started.
    pub(crate) settings: SettingList,
}

impl App {
    pub(crate) fn uptime(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.started)
    }
}

/// Milliseconds for the wire. What does not fit is as good as for ever.
pub(crate) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds for somebody who waits: rounded up, so that they do not come a moment too early.
pub(crate) fn whole_ms_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use kernel::{BreakerSettings, CancellationToken, SystemClock};

    use super::*;
    use crate::durable::{Database, Starting};
    use crate::home::Home;
    use process::Tasks;

    /// The shared parts of a daemon that listens nowhere. Its log is in a directory that is gone already.
    pub(crate) async fn detached() -> Arc<App> {
        let clock = SystemClock::shared();
        let breakers = CircuitBreaker::new(BreakerSettings::default(), Arc::clone(&clock)).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], 7180));
        let (life, started, started_at) = (Life::new(), clock.now(), SystemTime::now());
        let boot_id = BootId::generate();
        let directory = tempfile::tempdir().unwrap();
        let home = Home {
            runtime: directory.path().to_owned(),
            state: directory.path().to_owned(),
        };
        let starting = Starting {
            boot_id,
            started_at,
            machine_name: None,
        };
        let (durable, _notes) = Durable::open(
            &home,
            &Database::File,
            Arc::clone(&clock),
            starting,
            &breakers,
            (&Tasks::default(), &CancellationToken::new().scope()),
        )
        .await
        .unwrap();
        let keeper = crate::jobs::test_keeper();
        let processes = crate::processes::open(&durable, boot_id, keeper, &Tasks::default(), &clock)
            .await
            .unwrap();
        let language_servers = crate::language_servers::start(
            &home,
            crate::options::LanguageOptions::default(),
            (&processes, &durable.trusted),
            &home.scratch(),
            (&Tasks::default(), &clock),
        );
        let tasks = Tasks::default();
        let plans = crate::plans::start(
            &durable,
            &processes,
            (home.plans(), Vec::new(), plans::PlansSettings::default()),
            &[],
            (&tasks, &clock),
        )
        .await
        .unwrap();
        let late_jobs = LateJobs::default();
        let plan_watch = late_jobs.watch(&plans, &tasks, life.scope());
        let access = crate::jobs::SandboxAccess {
            sandboxes: Arc::new(plans.clone()),
            write_below: Vec::new(),
        };
        let job_inputs = crate::jobs::Inputs::default();
        let environments =
            crate::jobs::Environments::open(home.environments(), &tasks, &life.scope()).unwrap();
        let job_workers = crate::jobs::Workers::new(durable.log.clone(), durable.home_id);
        let jobs = crate::jobs::start(
            &durable,
            (boot_id, None),
            &processes,
            (Vec::new(), &environments),
            (access, &job_inputs),
            (&plan_watch, &late_jobs, crate::plans::KillPoints::default()),
            (&tasks, &clock),
        )
        .await
        .unwrap();
        let contexts = crate::context::start(
            crate::configuration::ContextSection::default(),
            crate::context::Around {
                home: &home,
                scratch: &home.scratch(),
                breakers: &breakers,
                processes: &processes,
                language_servers: &language_servers,
                plans: &plans,
                for_commands: &[],
                tasks: &tasks,
                clock: &clock,
            },
        );
        let token = Secret::generate().unwrap();
        let conversations = crate::sessions::start(
            crate::configuration::Configuration::default(),
            None,
            crate::sessions::Around {
                durable: &durable,
                boot_id,
                breakers: &breakers,
                processes: &processes,
                language_servers: &language_servers,
                jobs: &jobs,
                environments: &environments,
                plans: &plans,
                contexts: &contexts,
                environment: &[],
                for_commands: &[],
                closing: &life.scope(),
                tasks: &tasks,
                clock: &clock,
            },
        )
        .await
        .unwrap();
        Arc::new(App {
            boot_id,
            started,
            started_at,
            metrics: Metrics::new(
                &life,
                &breakers,
                (&durable, &processes, &language_servers),
                (&jobs, &plans, &conversations),
                &contexts,
                (Arc::clone(&clock), started),
            ),
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
            conversations,
            mcp: Mcp::new(crate::configuration::McpSection::default(), &tasks),
            plan_watch,
            kill: crate::plans::KillPoints::default(),
            _late_jobs: late_jobs,
            streams: Arc::new(Semaphore::new(1)),
            hosts: Hosts::new(address, &[], &token),
            refused_lines: RefusedLines::default(),
            sessions: Sessions::new(&token),
            token,
            address,
            socket: PathBuf::new(),
            body_limit_bytes: 1024,
            settings: SettingList::default(),
            clock,
        })
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
