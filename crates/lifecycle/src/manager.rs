//! The handle to the servers: start, stop, restart, lease.

use std::{fmt, hash::RandomState, sync::Arc};

use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slots};

use crate::{
    Changes, ClientLease, ExpectedProcess, Failure, Health, Launch, LifecycleError, LifecycleSettings,
    ProbeResult, RunningServer, ServerGeneration, ServerKey, ServerStatus, Spawn,
    state::{Answer, Entry, EpisodeOutcome, EpisodeProgress, Event, Refusal},
    wait::{HeldEntry, Race, ServerHandle, race, wait_for_entry, wait_for_episode},
    work::ManagerShared,
};

/// How many servers are tracked. A developer's machine has a few roots with a few servers each. When the limit is
/// reached, unused entries are removed, and if there are none, a new server is refused. Generations aren't reused
/// even then.
const MAX_SERVERS: usize = 256;

/// What a manager needs.
pub struct LifecycleOptions<L> {
    /// How servers are launched.
    pub launch: L,
    /// Timeouts, back-off and limits.
    pub settings: LifecycleSettings,
    /// The time source.
    pub clock: Arc<dyn Clock>,
    /// Runs the manager's tasks.
    pub tasks: Arc<dyn Spawn>,
}

/// How long a caller waits for a server that is starting.
#[derive(Clone, Debug)]
pub enum Patience {
    /// Wait until this deadline.
    Wait(Deadline),
    /// Don't wait.
    NoWait,
}

/// Whether a health check asks the server itself.
#[derive(Clone, Debug)]
pub enum Probe {
    /// Only return what is known.
    Skip,
    /// If the server is ready, ask it and wait for an answer until this deadline.
    Within(Deadline),
}

/// The result of stopping all servers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StoppedAll {
    /// Servers that had a process and have none now.
    pub stopped: Vec<ServerKey>,
    /// Servers whose process did not end in time. They are still being stopped.
    pub still_stopping: Vec<ServerKey>,
}

/// Starts, stops and restarts servers, one process per key, for any number of callers. Clones refer to the same
/// manager. Its creator has to [close](Self::close) it: dropping the last clone doesn't stop the servers.
///
/// ```
/// use std::{future::Future, path::Path, pin::Pin, sync::Arc, thread};
/// use kernel::{CancellationToken, Deadline, Scope, SystemClock, block_on};
/// use lifecycle::{
///     EndReason, Launch, LaunchFailure, LifecycleManager, LifecycleOptions, LifecycleSettings, Patience,
///     RunningServer, ServerGeneration, ServerKey, Spawn,
/// };
///
/// #[derive(Clone)]
/// struct Echo;
///
/// impl RunningServer for Echo {
///     async fn ended(&self) -> EndReason {
///         std::future::pending().await
///     }
///     async fn stop(&self) {}
///     async fn probe(&self, _: &Deadline) -> Result<(), String> {
///         Ok(())
///     }
/// }
///
/// struct LaunchEcho;
///
/// impl Launch for LaunchEcho {
///     type Server = Echo;
///     fn knows(&self, key: &ServerKey) -> bool {
///         &*key.server == "echo"
///     }
///     async fn launch(&self, _: &ServerKey, _: ServerGeneration, _: &Scope) -> Result<Echo, LaunchFailure> {
///         Ok(Echo)
///     }
/// }
///
/// struct Threads;
///
/// impl Spawn for Threads {
///     fn spawn(&self, _: &'static str, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
///         thread::spawn(|| block_on(task));
///     }
/// }
///
/// let manager = LifecycleManager::new(LifecycleOptions {
///     launch: LaunchEcho,
///     settings: LifecycleSettings::default(),
///     clock: SystemClock::shared(),
///     tasks: Arc::new(Threads),
/// });
/// let key = ServerKey::new("echo", Path::new("/repo"));
/// let (never, scope) = (Deadline::never(), CancellationToken::new().scope());
///
/// block_on(async {
///     // The first lease starts the server.
///     let lease = manager.get_client(&key, &Patience::Wait(never.clone()), &scope).await?;
///     assert_eq!(lease.status().generation.get(), 1);
///
///     // A restart replaces its process. The lease now refers to the new one.
///     manager.restart_server(&key, &never, &scope).await?;
///     let current = lease.server(&Patience::NoWait, &scope).await?;
///     assert_eq!(current.generation.get(), 2);
///
///     let stopped = manager.close(&never, &scope).await?;
///     assert_eq!(stopped.stopped, [key]);
///     Ok::<(), lifecycle::LifecycleError>(())
/// })?;
/// # Ok::<(), lifecycle::LifecycleError>(())
/// ```
pub struct LifecycleManager<L: Launch> {
    shared: Arc<ManagerShared<L>>,
}

impl<L: Launch> LifecycleManager<L> {
    /// A manager without servers.
    pub fn new(options: LifecycleOptions<L>) -> Self {
        Self {
            shared: Arc::new(ManagerShared {
                launch: options.launch,
                settings: options.settings,
                clock: options.clock,
                tasks: options.tasks,
                slots: Slots::new(),
                visible: Default::default(),
                changes: Changes::new(),
                open: CancellationToken::new(),
                jitter_seed: RandomState::new(),
            }),
        }
    }

    /// Starts a server, or joins the start or restart in progress. Returns the generation that is up.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the start continues.
    pub async fn start_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.start_server_if(key, ExpectedProcess::Any, deadline, scope)
            .await
    }

    /// Like [`start_server`](Self::start_server), but only if the newest process is still the one that the caller
    /// saw.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the start continues.
    pub async fn start_server_if(
        &self,
        key: &ServerKey,
        seen: ExpectedProcess,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.ask(key, &Event::Start { seen }, deadline, scope).await
    }

    /// Replaces the process of a server, or joins the start or restart in progress.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the restart continues.
    pub async fn restart_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.restart_server_if(key, ExpectedProcess::Any, deadline, scope)
            .await
    }

    /// Like [`restart_server`](Self::restart_server), but only if the newest process is still the one that the
    /// caller saw. A server that somebody has stopped stays stopped; use a start, or a restart that names no
    /// process.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the restart continues.
    pub async fn restart_server_if(
        &self,
        key: &ServerKey,
        seen: ExpectedProcess,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.ask(key, &Event::Restart { seen }, deadline, scope).await
    }

    async fn ask(
        &self,
        key: &ServerKey,
        request: &Event<ServerHandle<L::Server>>,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        let held = self.entry_to_start(key)?;
        self.shared.report_if_dead(&held);
        let mut answer = self.shared.apply(&held, request);
        loop {
            let number = match answer {
                Answer::Ready { generation, .. } => return Ok(generation),
                Answer::Refused(refusal) => return Err(refusal.into()),
                Answer::Moved { seen, current } => return Err(moved(key, seen, &current)),
                Answer::Join(number) => number,
                Answer::Done | Answer::Late | Answer::Leaving(_) => {
                    return Err(LifecycleError::ServerStopped);
                }
            };
            match wait_for_episode(&held, number, deadline, scope).await? {
                EpisodeProgress::Settled(EpisodeOutcome::Ready(generation)) => return Ok(generation),
                EpisodeProgress::Settled(EpisodeOutcome::Failed(failed)) => return Err(failed.into()),
                EpisodeProgress::Settled(EpisodeOutcome::Stopped) => {
                    return Err(LifecycleError::ServerStopped);
                }
                EpisodeProgress::Forgotten | EpisodeProgress::UnderWay => {
                    answer = self.shared.apply(&held, &Event::Want)
                }
            }
        }
    }

    /// Stops a server, whatever it is doing, and waits until its process is gone. It stays stopped until somebody
    /// asks for a start. If the deadline passes first, the stop continues.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stop continues.
    pub async fn stop_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        self.stop_server_if(key, ExpectedProcess::Any, deadline, scope)
            .await
    }

    /// Like [`stop_server`](Self::stop_server), but only if the newest process is still the one that the caller
    /// saw. A restart that is still stopping that process is cancelled too.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stop continues.
    pub async fn stop_server_if(
        &self,
        key: &ServerKey,
        seen: ExpectedProcess,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        let held = self.known_entry(key)?;
        let leaving = self.begin_stop(&held, seen)?;
        self.wait_until_gone(&held, leaving, deadline, scope).await
    }

    /// Stops a server without leases, as if it had been idle for long enough, and waits until its process is
    /// gone. A server in use is left alone, and any later request starts the server again. If the deadline passes
    /// first, the stop continues.
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stop continues.
    pub async fn stop_if_unused(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        let Some(held) = self.shared.slots.find(key) else {
            return Ok(());
        };
        let leaving = match self.shared.apply(&held, &Event::StopIfUnused) {
            Answer::Leaving(leaving) => leaving,
            _ => None,
        };
        self.wait_until_gone(&held, leaving, deadline, scope).await
    }

    /// Stops all servers at the same time, so that many hung servers take one deadline. See
    /// [`stop_server`](Self::stop_server).
    ///
    /// *Cancel safety*: the future may be dropped at any time; the stops continue.
    pub async fn stop_all(&self, deadline: &Deadline, scope: &Scope) -> Result<StoppedAll, LifecycleError> {
        let keys = self.shared.slots.list().into_iter().map(|(key, _)| key);
        let all: Vec<_> = keys.filter_map(|key| self.shared.slots.find(&key)).collect();
        let stops = all.iter().map(|held| self.begin_stop(held, ExpectedProcess::Any));
        let leaving = stops.collect::<Result<Vec<_>, _>>()?;
        let mut result = StoppedAll::default();
        for (held, leaving) in all.iter().zip(leaving) {
            match self.wait_until_gone(held, leaving, deadline, scope).await {
                Ok(()) => result.stopped.extend(leaving.map(|_| held.key().clone())),
                Err(LifecycleError::RequestTimeout { .. }) => result.still_stopping.push(held.key().clone()),
                Err(other) => return Err(other),
            }
        }
        Ok(result)
    }

    /// Stops all servers and refuses to start any more.
    ///
    /// *Cancel safety*: the future may be dropped at any time; nothing is started afterwards.
    pub async fn close(&self, deadline: &Deadline, scope: &Scope) -> Result<StoppedAll, LifecycleError> {
        self.shared
            .open
            .cancel(Cause::new("lifecycle", "all servers are being stopped"));
        self.stop_all(deadline, scope).await
    }

    fn begin_stop(
        &self,
        held: &HeldEntry<L::Server>,
        seen: ExpectedProcess,
    ) -> Result<Option<ServerGeneration>, LifecycleError> {
        match self.shared.apply(held, &Event::Stop { seen }) {
            Answer::Moved { seen, current } => Err(moved(held.key(), seen, &current)),
            Answer::Leaving(leaving) => Ok(leaving),
            _ => Ok(None),
        }
    }

    async fn wait_until_gone(
        &self,
        held: &HeldEntry<L::Server>,
        leaving: Option<ServerGeneration>,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        let Some(leaving) = leaving else {
            return Ok(());
        };
        let is_gone = |entry: &Entry<_>| entry.live() != Some(leaving);
        wait_for_entry(held, is_gone, deadline, scope).await.map(drop)
    }

    /// Takes a lease on a server. The server is started if it isn't up, unless somebody has stopped it. With
    /// [`Patience::Wait`] the server is up when this returns.
    ///
    /// *Cancel safety*: the future may be dropped at any time; no lease is left behind, and a start continues.
    pub async fn get_client(
        &self,
        key: &ServerKey,
        patience: &Patience,
        scope: &Scope,
    ) -> Result<ClientLease<L>, LifecycleError> {
        let held = self.entry_to_start(key)?;
        self.shared.report_if_dead(&held);
        let answer = self.shared.apply(&held, &Event::Lease);
        if let Answer::Refused(refusal) = answer {
            return Err(refusal.into());
        }
        // From here on, the lease is returned on every path.
        let lease = ClientLease::counted(Arc::clone(&self.shared), held);
        lease.follow(answer, patience, scope).await?;
        Ok(lease)
    }

    /// Returns what is known about a server at once, whatever it is doing. If the server is ready and `probe`
    /// asks for it, also returns whether the server responds.
    ///
    /// *Cancel safety*: the future may be dropped at any time.
    pub async fn health_check(&self, key: &ServerKey, probe: &Probe) -> Result<Health, LifecycleError> {
        let Some(held) = self.shared.slots.find(key) else {
            self.require_configured(key)?;
            return Ok(Health {
                status: ServerStatus::of(
                    key,
                    &Entry::<ServerHandle<L::Server>>::new(ServerGeneration::default()),
                ),
                probe: ProbeResult::NotAsked,
            });
        };
        self.shared.report_if_dead(&held);
        let probe = match probe {
            Probe::Skip => ProbeResult::NotAsked,
            Probe::Within(deadline) => self.probe(&held, deadline).await,
        };
        let status = ServerStatus::of(key, &held.read().state);
        Ok(Health { status, probe })
    }

    async fn probe(&self, held: &HeldEntry<L::Server>, deadline: &Deadline) -> ProbeResult {
        let seen = held.read().state;
        let Some((generation, server)) = seen.ready() else {
            return ProbeResult::NotAsked;
        };
        let asked_at = self.shared.clock.now();
        let mut answer = std::pin::pin!(server.0.probe(deadline));
        // The server gets the deadline too, but a probe that ignores it must not keep the caller waiting.
        let result = match race(&mut answer, &mut deadline.clone().passed()).await {
            Race::One(result) => result,
            Race::Other(()) => Err("no answer before the deadline".to_owned()),
        };
        match result {
            Ok(()) => {
                self.shared.apply(held, &Event::ProbeAnswered { generation });
                let took = self.shared.clock.now().saturating_duration_since(asked_at);
                ProbeResult::Answered { took }
            }
            Err(message) => {
                let reason = Arc::new(Failure::new(format!("the server did not respond: {message}")));
                self.shared
                    .apply(held, &Event::ProbeFailed { generation, reason });
                ProbeResult::Failed { message }
            }
        }
    }

    /// All servers that somebody has asked for so far, ordered by key. Returns at once.
    pub fn list(&self) -> Vec<ServerStatus> {
        let entries = self.shared.slots.list().into_iter();
        entries
            .map(|(key, seen)| ServerStatus::of(&key, &seen.state))
            .collect()
    }

    /// Notifications about state changes, from now on. Leases change too often to be included.
    pub fn changes(&self) -> Changes {
        self.shared.changes.subscribe()
    }

    fn require_configured(&self, key: &ServerKey) -> Result<(), LifecycleError> {
        if self.shared.launch.knows(key) {
            Ok(())
        } else {
            let server = Arc::clone(&key.server);
            Err(LifecycleError::ServerNotFound { server })
        }
    }

    /// The entry of a server that is configured, or that is no longer configured but still tracked.
    fn known_entry(&self, key: &ServerKey) -> Result<HeldEntry<L::Server>, LifecycleError> {
        if let Some(held) = self.shared.slots.find(key) {
            return Ok(held);
        }
        self.require_configured(key)?;
        let limit = MAX_SERVERS;
        let held = self.shared.entry(key, limit);
        held.ok_or(LifecycleError::TooManyServers { limit })
    }

    /// The entry of a configured server, for a caller that wants it up.
    fn entry_to_start(&self, key: &ServerKey) -> Result<HeldEntry<L::Server>, LifecycleError> {
        self.require_configured(key)?;
        if self.shared.open.is_cancelled() {
            return Err(Refusal::Stopped.into());
        }
        let limit = MAX_SERVERS;
        let held = self.shared.entry(key, limit);
        held.ok_or(LifecycleError::TooManyServers { limit })
    }
}

fn moved<S>(key: &ServerKey, seen: ServerGeneration, current: &Entry<S>) -> LifecycleError {
    LifecycleError::ServerMoved {
        seen,
        current: Box::new(ServerStatus::of(key, current)),
    }
}

impl ServerStatus {
    pub(crate) fn of<S>(key: &ServerKey, entry: &Entry<S>) -> Self {
        Self {
            key: key.clone(),
            state: entry.state(),
            since: entry.since,
            generation: entry.generation,
            leases: entry.leases,
            restarts: entry.restarts,
            crashes: entry.crashes,
            last_error: entry.last_error.clone(),
            late_events: entry.late_events,
        }
    }
}

impl<L: Launch> Clone for LifecycleManager<L> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<L> fmt::Debug for LifecycleOptions<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LifecycleOptions")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<L: Launch> fmt::Debug for LifecycleManager<L> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("LifecycleManager")
            .field("servers", &self.shared.slots)
            .finish_non_exhaustive()
    }
}
