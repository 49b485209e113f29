//! Carries out the decisions. Each effect is one task. It watches the state to learn whether it is still wanted,
//! and reports its result under its generation.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kernel::{CancellationToken, Cause, Clock, Deadline, Slots, WaitError};

use crate::{
    Changes, ExpectedProcess, Failure, Launch, LifecycleSettings, RunningServer, ServerGeneration, ServerKey,
    Spawn,
    state::{Answer, Effect, Entry, EpisodeNumber, Event, Now, Phase},
    wait::{HeldEntry, Panicked, Race, ServerEntry, ServerHandle, catch_panic, poll_once, race},
};

pub(crate) struct ManagerShared<L: Launch> {
    pub(crate) launch: L,
    pub(crate) settings: LifecycleSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Arc<dyn Spawn>,
    pub(crate) slots: Slots<ServerKey, ServerEntry<L::Server>>,
    /// The entries that stay visible although nobody holds them.
    pub(crate) visible: Mutex<VisibleEntries<L::Server>>,
    pub(crate) changes: Changes,
    /// Cancelled when nothing may be launched anymore.
    pub(crate) open: CancellationToken,
    /// Seeds the jitter, which differs from process to process.
    pub(crate) jitter_seed: RandomState,
}

pub(crate) struct VisibleEntries<S> {
    entries: BTreeMap<ServerKey, HeldEntry<S>>,
    /// The newest generation of all removed entries. New entries continue from there, so a generation that a
    /// caller saw of a removed server never matches a later process.
    forgotten: ServerGeneration,
}

impl<S> Default for VisibleEntries<S> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            forgotten: ServerGeneration::default(),
        }
    }
}

impl<L: Launch> ManagerShared<L> {
    /// Applies an event: read, decide, write under the generation that was read. If the write is refused,
    /// somebody else made progress, and the event is decided again.
    pub(crate) fn apply(
        self: &Arc<Self>,
        held: &HeldEntry<L::Server>,
        event: &Event<ServerHandle<L::Server>>,
    ) -> Answer<ServerHandle<L::Server>> {
        let settings = self.launch.settings(held.key(), &self.settings);
        loop {
            let seen = held.read();
            let now = self.now(held.key(), seen.state.generation, &settings);
            let step = seen.state.step(event, now);
            if let Some(next) = step.next {
                let is_visible = next.since != seen.state.since || next.state() != seen.state.state();
                // Leases come and go with every query, and nobody waits for them (see `watch_idleness`).
                let is_count = matches!(event, Event::Lease | Event::LeaseReturned | Event::Want);
                let written = if is_count && !is_visible && step.effects.is_empty() {
                    held.transition_unnoticed(seen.generation, next)
                } else {
                    held.transition(seen.generation, next)
                };
                if written.is_err() {
                    continue;
                }
                if is_visible {
                    tracing::debug!(server = %held.key(), ?event, "server state changed");
                    self.changes.note();
                }
            }
            for effect in step.effects {
                self.spawn_effect(held, effect);
            }
            return step.answer;
        }
    }

    fn now<'a>(
        &self,
        key: &ServerKey,
        generation: ServerGeneration,
        settings: &'a LifecycleSettings,
    ) -> Now<'a> {
        // The upper 53 bits are what a double can hold exactly.
        let draw = self.jitter_seed.hash_one((key, generation)) >> 11;
        Now {
            time: self.clock.now(),
            settings,
            fraction: draw as f64 / (1_u64 << 53) as f64,
        }
    }

    fn spawn_effect(self: &Arc<Self>, held: &HeldEntry<L::Server>, effect: Effect<ServerHandle<L::Server>>) {
        let (shared, held) = (Arc::clone(self), held.clone());
        match effect {
            Effect::Launch { generation } => {
                let task = async move { shared.launch(held, generation).await };
                self.tasks.spawn("server-launch", Box::pin(task));
            }
            Effect::Watch { generation, server } => {
                let task = async move { shared.watch(held, generation, server).await };
                self.tasks.spawn("server-watch", Box::pin(task));
            }
            Effect::Stop { generation, server } => {
                let task = async move { shared.stop(held, generation, server).await };
                self.tasks.spawn("server-stop", Box::pin(task));
            }
            Effect::Pause { episode, until } => {
                let task = async move { shared.pause(held, episode, until).await };
                self.tasks.spawn("server-pause", Box::pin(task));
            }
        }
    }

    /// Launches a server, and cancels the launch when nobody wants it anymore. It waits for the launch in any
    /// case, because its process may be alive.
    async fn launch(self: Arc<Self>, held: HeldEntry<L::Server>, generation: ServerGeneration) {
        let token = self.open.child();
        let scope = token.scope();
        let result = if scope.is_cancelled() {
            // The manager was closed after the request was accepted. Without the stop, the failure could be
            // retried.
            self.apply(
                &held,
                &Event::Stop {
                    seen: ExpectedProcess::Any,
                },
            );
            Err(Failure::new("the daemon is shutting down"))
        } else {
            let launching = catch_panic(self.launch.launch(held.key(), generation, &scope));
            let mut launching = pin!(launching);
            let mut unwanted =
                pin!(held.wait_until(|entry| !entry.wants_launch(generation), Deadline::never(), &scope));
            let launched = match race(&mut launching, &mut unwanted).await {
                Race::One(launched) => launched,
                Race::Other(_) => {
                    token.cancel(Cause::new("lifecycle", "the server is no longer wanted"));
                    launching.await
                }
            };
            launched.unwrap_or_else(|Panicked| Err(Failure::new("the launch panicked")))
        };
        let event = match result {
            Ok(server) => Event::Launched {
                generation,
                server: ServerHandle(server),
            },
            Err(reason) => {
                tracing::warn!(server = %held.key(), %generation, %reason, "server failed to start");
                Event::LaunchFailed {
                    generation,
                    reason: Arc::new(reason),
                }
            }
        };
        self.apply(&held, &event);
    }

    /// Watches one process and reports when it ends or has been idle for long enough.
    async fn watch(
        self: Arc<Self>,
        held: HeldEntry<L::Server>,
        generation: ServerGeneration,
        ServerHandle(server): ServerHandle<L::Server>,
    ) {
        let mut ended = pin!(catch_panic(server.ended()));
        let mut replaced = pin!(self.watch_idleness(&held, generation));
        if let Race::One(reason) = race(&mut ended, &mut replaced).await {
            let reason = reason.unwrap_or_else(|Panicked| Failure::new("watching the server panicked"));
            tracing::warn!(server = %held.key(), %generation, %reason, "server ended unexpectedly");
            let reason = Arc::new(reason);
            self.apply(&held, &Event::Ended { generation, reason });
        }
    }

    /// Reports when the process has been idle for long enough. Returns when it is no longer the current one.
    async fn watch_idleness(self: &Arc<Self>, held: &HeldEntry<L::Server>, generation: ServerGeneration) {
        let scope = self.open.scope();
        loop {
            let seen = held.read().state;
            let Phase::Ready { idle_since, .. } = &seen.phase else {
                return;
            };
            if !seen.is_ready(generation) {
                return;
            }
            // Leases that come and go don't move the alarm: when it goes off, the state tells whether the server
            // is idle. So leases don't have to wake anyone.
            let settings = self.launch.settings(held.key(), &self.settings);
            let idle_for = idle_since.map_or(Duration::ZERO, |since| {
                self.clock.now().saturating_duration_since(since)
            });
            let end = Deadline::after(&self.clock, settings.idle_after.saturating_sub(idle_for));
            let is_replaced = |entry: &Entry<_>| !entry.is_ready(generation);
            let waited = held.wait_until(is_replaced, end, &scope).await;
            match waited {
                Ok(_) => {}
                Err(WaitError::DeadlineExceeded { .. }) => {
                    self.apply(held, &Event::IdleTime { generation });
                }
                // Whoever closes the manager also stops the server.
                Err(WaitError::Cancelled { .. }) => return,
            }
        }
    }

    async fn stop(
        self: Arc<Self>,
        held: HeldEntry<L::Server>,
        generation: ServerGeneration,
        ServerHandle(server): ServerHandle<L::Server>,
    ) {
        if catch_panic(server.stop()).await.is_err() {
            // The last handle is dropped with this task, and dropping a server kills it.
            tracing::error!(server = %held.key(), %generation, "stopping the server panicked");
        }
        drop(server);
        self.apply(&held, &Event::StopFinished { generation });
    }

    async fn pause(self: Arc<Self>, held: HeldEntry<L::Server>, episode: EpisodeNumber, until: Instant) {
        let is_over = |entry: &Entry<_>| !matches!(&entry.phase, Phase::Pausing { episode: current, .. } if current.number == episode);
        let scope = self.open.scope();
        let rest = until.saturating_duration_since(self.clock.now());
        let end = Deadline::after(&self.clock, rest);
        let waited = held.wait_until(is_over, end, &scope).await;
        if let Err(WaitError::DeadlineExceeded { .. }) = waited {
            self.apply(&held, &Event::PauseOver { episode });
        }
    }

    /// Reports that a server has died, if nobody has noticed yet.
    pub(crate) fn report_if_dead(self: &Arc<Self>, held: &HeldEntry<L::Server>) {
        let seen = held.read().state;
        if let Some((generation, server)) = seen.ready()
            && let Some(reason) = poll_once(server.0.ended())
        {
            let reason = Arc::new(reason);
            self.apply(held, &Event::Ended { generation, reason });
        }
    }

    /// The entry of a key, which stays visible from now on. `None` if the limit is reached.
    pub(crate) fn entry(&self, key: &ServerKey, limit: usize) -> Option<HeldEntry<L::Server>> {
        let mut visible = self.visible.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = visible.entries.get(key) {
            return Some(held.clone());
        }
        let mut forgotten = Vec::new();
        if visible.entries.len() >= limit {
            // Whoever works with one of these entries holds it too, so removing it here doesn't take it from
            // anyone.
            let is_stopped = |_: &ServerKey, held: &mut HeldEntry<_>| held.read().state.is_forgettable();
            forgotten.extend(visible.entries.extract_if(.., is_stopped));
            let newest = forgotten
                .iter()
                .map(|(_, held)| held.read().state.generation)
                .max();
            visible.forgotten = visible.forgotten.max(newest.unwrap_or_default());
        }
        let held = (visible.entries.len() < limit).then(|| {
            let held = self.slots.hold(key.clone(), Entry::new(visible.forgotten));
            visible.entries.insert(key.clone(), held.clone());
            held
        });
        drop(visible);
        drop(forgotten);
        held
    }
}
