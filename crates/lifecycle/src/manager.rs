//! The handle that everybody has.

use std::{fmt, hash::RandomState, sync::Arc};

use kernel::{CancellationToken, Cause, Clock, Deadline, Scope, Slots};

use crate::{
    Changes, ClientLease, Failure, Health, Launch, LifecycleError, LifecycleSettings, ProbeResult,
    RunningServer, Seen, ServerGeneration, ServerKey, ServerStatus, Spawn,
    state::{Answer, Entry, Event, Outcome, Refusal, Verdict},
    wait::{First, Handle, HeldEntry, entry_is, episode_over, first},
    work::Shared,
};

/// How many servers are kept track of. A developer's machine has a few roots with a few servers each; when it is
/// full, those that rest unused are forgotten, and if there are none, a new one is refused. No generation is used twice
/// all the same.
const MAX_SERVERS: usize = 256;

/// What a manager is made of.
pub struct LifecycleOptions<L> {
    /// How servers are launched.
    pub launch: L,
    /// How patient the manager is.
    pub settings: LifecycleSettings,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where its tasks run.
    pub tasks: Arc<dyn Spawn>,
}

/// How long somebody waits for a server that is on its way up.
#[derive(Clone, Debug)]
pub enum Patience {
    /// Until then.
    Wait(Deadline),
    /// Not at all.
    NoWait,
}

/// Whether a health check asks the server itself.
#[derive(Clone, Debug)]
pub enum Probe {
    /// What is known is enough.
    Skip,
    /// If it is ready, it is asked, and has until then to answer.
    Within(Deadline),
}

/// What became of a stop of all servers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StoppedAll {
    /// Those that had a process and have none now.
    pub stopped: Vec<ServerKey>,
    /// Those whose process was not gone in time. They are still being stopped.
    pub still_stopping: Vec<ServerKey>,
}

/// Starts, stops and restarts servers, one process per key, for any number of callers. Clones are the same manager.
/// Whoever makes one [closes](Self::close) it: the servers do not end with the last clone.
pub struct LifecycleManager<L: Launch> {
    shared: Arc<Shared<L>>,
}

impl<L: Launch> LifecycleManager<L> {
    /// A manager without servers.
    pub fn new(options: LifecycleOptions<L>) -> Self {
        Self {
            shared: Arc::new(Shared {
                launch: options.launch,
                settings: options.settings,
                clock: options.clock,
                tasks: options.tasks,
                slots: Slots::new(),
                kept: Default::default(),
                changes: Changes::new(),
                open: CancellationToken::new(),
                spread: RandomState::new(),
            }),
        }
    }

    /// Starts a server, or joins the start or restart that is under way. Returns which process is up.
    ///
    /// *Cancel safety*: may be dropped at any time; the start goes on.
    pub async fn start_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.start_server_if(key, Seen::Any, deadline, scope).await
    }

    /// As [`start_server`](Self::start_server), if the newest process is still the one that the caller saw.
    ///
    /// *Cancel safety*: may be dropped at any time; the start goes on.
    pub async fn start_server_if(
        &self,
        key: &ServerKey,
        seen: Seen,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.ask(key, &Event::Start { seen }, deadline, scope).await
    }

    /// Replaces the process of a server, or joins the start or restart that is under way.
    ///
    /// *Cancel safety*: may be dropped at any time; the restart goes on.
    pub async fn restart_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.restart_server_if(key, Seen::Any, deadline, scope).await
    }

    /// As [`restart_server`](Self::restart_server), if the newest process is still the one that the caller saw. If
    /// somebody has stopped it, it stays stopped: that is taken back by a start, or by a restart that names none.
    ///
    /// *Cancel safety*: may be dropped at any time; the restart goes on.
    pub async fn restart_server_if(
        &self,
        key: &ServerKey,
        seen: Seen,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        self.ask(key, &Event::Restart { seen }, deadline, scope).await
    }

    async fn ask(
        &self,
        key: &ServerKey,
        wish: &Event<Handle<L::Server>>,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<ServerGeneration, LifecycleError> {
        let held = self.open_entry(key)?;
        self.shared.bury_dead(&held);
        let mut answer = self.shared.apply(&held, wish);
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
            match episode_over(&held, number, deadline, scope).await? {
                Verdict::Settled(Outcome::Ready(generation)) => return Ok(generation),
                Verdict::Settled(Outcome::Failed(defeat)) => return Err(defeat.into()),
                Verdict::Settled(Outcome::Stopped) => return Err(LifecycleError::ServerStopped),
                Verdict::Forgotten | Verdict::UnderWay => answer = self.shared.apply(&held, &Event::Want),
            }
        }
    }

    /// Stops a server, whatever it is doing, and waits until its process is gone. It stays stopped until somebody
    /// asks for a start. When the deadline passes first, the stop goes on.
    ///
    /// *Cancel safety*: may be dropped at any time; the stop goes on.
    pub async fn stop_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        self.stop_server_if(key, Seen::Any, deadline, scope).await
    }

    /// As [`stop_server`](Self::stop_server), if the newest process is still the one that the caller saw. A restart
    /// that is taking that process down has no other one yet, so it is stopped too.
    ///
    /// *Cancel safety*: may be dropped at any time; the stop goes on.
    pub async fn stop_server_if(
        &self,
        key: &ServerKey,
        seen: Seen,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        let held = self.known_entry(key)?;
        let leaving = self.begin_stop(&held, seen)?;
        self.gone(&held, leaving, deadline, scope).await
    }

    /// Stops a server that nobody holds a lease on, as if it had been idle for long enough, and waits until its process is
    /// gone; one that is in use is left alone. Any later wish starts it again. When the deadline passes first, the stop
    /// goes on.
    ///
    /// *Cancel safety*: may be dropped at any time; the stop goes on.
    pub async fn rest_server(
        &self,
        key: &ServerKey,
        deadline: &Deadline,
        scope: &Scope,
    ) -> Result<(), LifecycleError> {
        let Some(held) = self.shared.slots.find(key) else {
            return Ok(());
        };
        let leaving = match self.shared.apply(&held, &Event::Rest) {
            Answer::Leaving(leaving) => leaving,
            _ => None,
        };
        self.gone(&held, leaving, deadline, scope).await
    }

    /// Stops all servers at once, as [`stop_server`](Self::stop_server) does; so many that hang take one deadline.
    ///
    /// *Cancel safety*: may be dropped at any time; the stops go on.
    pub async fn stop_all(&self, deadline: &Deadline, scope: &Scope) -> Result<StoppedAll, LifecycleError> {
        let keys = self.shared.slots.list().into_iter().map(|(key, _)| key);
        let all: Vec<_> = keys.filter_map(|key| self.shared.slots.find(&key)).collect();
        let stops = all.iter().map(|held| self.begin_stop(held, Seen::Any));
        let leaving = stops.collect::<Result<Vec<_>, _>>()?;
        let mut result = StoppedAll::default();
        for (held, leaving) in all.iter().zip(leaving) {
            match self.gone(held, leaving, deadline, scope).await {
                Ok(()) => result.stopped.extend(leaving.map(|_| held.key().clone())),
                Err(LifecycleError::RequestTimeout { .. }) => result.still_stopping.push(held.key().clone()),
                Err(other) => return Err(other),
            }
        }
        Ok(result)
    }

    /// Stops all servers, and starts none any more.
    ///
    /// *Cancel safety*: may be dropped at any time; nothing is started any more all the same.
    pub async fn close(&self, deadline: &Deadline, scope: &Scope) -> Result<StoppedAll, LifecycleError> {
        self.shared
            .open
            .cancel(Cause::new("lifecycle", "all servers are being stopped"));
        self.stop_all(deadline, scope).await
    }

    fn begin_stop(
        &self,
        held: &HeldEntry<L::Server>,
        seen: Seen,
    ) -> Result<Option<ServerGeneration>, LifecycleError> {
        match self.shared.apply(held, &Event::Stop { seen }) {
            Answer::Moved { seen, current } => Err(moved(held.key(), seen, &current)),
            Answer::Leaving(leaving) => Ok(leaving),
            _ => Ok(None),
        }
    }

    async fn gone(
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
        entry_is(held, is_gone, deadline, scope).await.map(drop)
    }

    /// Takes a lease on a server, which is started if it is not up, unless somebody has stopped it. With
    /// [`Patience::Wait`] the server is up when this returns.
    ///
    /// *Cancel safety*: may be dropped at any time; no lease is left behind, and a start goes on.
    pub async fn get_client(
        &self,
        key: &ServerKey,
        patience: &Patience,
        scope: &Scope,
    ) -> Result<ClientLease<L>, LifecycleError> {
        let held = self.open_entry(key)?;
        self.shared.bury_dead(&held);
        let answer = self.shared.apply(&held, &Event::Lease);
        if let Answer::Refused(refusal) = answer {
            return Err(refusal.into());
        }
        // From here on the lease is given back on every way out.
        let lease = ClientLease::counted(Arc::clone(&self.shared), held);
        lease.follow(answer, patience, scope).await?;
        Ok(lease)
    }

    /// What is known about a server, at once, whatever it is doing; and whether it answers, if that is wanted and
    /// it is ready.
    ///
    /// *Cancel safety*: may be dropped at any time.
    pub async fn health_check(&self, key: &ServerKey, probe: &Probe) -> Result<Health, LifecycleError> {
        let Some(held) = self.shared.slots.find(key) else {
            self.must_be_known(key)?;
            return Ok(Health {
                status: ServerStatus::of(key, &Entry::<Handle<L::Server>>::new(ServerGeneration::default())),
                probe: ProbeResult::NotAsked,
            });
        };
        self.shared.bury_dead(&held);
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
        // The server has the deadline too, but whoever asks for health is not kept waiting by a probe that ignores it.
        let result = match first(&mut answer, &mut deadline.clone().passed()).await {
            First::One(result) => result,
            First::Other(()) => Err("no answer before the deadline".to_owned()),
        };
        match result {
            Ok(()) => {
                self.shared.apply(held, &Event::ProbeAnswered { generation });
                let took = self.shared.clock.now().saturating_duration_since(asked_at);
                ProbeResult::Answered { took }
            }
            Err(message) => {
                let reason = Arc::new(Failure::new(format!("the server did not answer: {message}")));
                self.shared
                    .apply(held, &Event::ProbeFailed { generation, reason });
                ProbeResult::Failed { message }
            }
        }
    }

    /// All servers that somebody has wanted so far, in the order of their keys, at once.
    pub fn list(&self) -> Vec<ServerStatus> {
        let entries = self.shared.slots.list().into_iter();
        entries
            .map(|(key, seen)| ServerStatus::of(&key, &seen.state))
            .collect()
    }

    /// Notice of changes of state, from now on. Leases come and go too often to be told.
    pub fn changes(&self) -> Changes {
        self.shared.changes.subscribe()
    }

    fn must_be_known(&self, key: &ServerKey) -> Result<(), LifecycleError> {
        if self.shared.launch.knows(key) {
            Ok(())
        } else {
            let server = Arc::clone(&key.server);
            Err(LifecycleError::ServerNotFound { server })
        }
    }

    /// The entry of a configured server, or of one that is not configured any more and still known.
    fn known_entry(&self, key: &ServerKey) -> Result<HeldEntry<L::Server>, LifecycleError> {
        if let Some(held) = self.shared.slots.find(key) {
            return Ok(held);
        }
        self.must_be_known(key)?;
        let limit = MAX_SERVERS;
        let held = self.shared.entry(key, limit);
        held.ok_or(LifecycleError::TooManyServers { limit })
    }

    /// The entry of a configured server, for somebody who wants it up.
    fn open_entry(&self, key: &ServerKey) -> Result<HeldEntry<L::Server>, LifecycleError> {
        self.must_be_known(key)?;
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
