//! What is done about a decision. Each effect is one task; it looks at the state to learn that it is not wanted any
//! more, and reports what came of it under its generation.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, RandomState},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kernel::{CancellationToken, Cause, Clock, Deadline, Slots, WaitError};

use crate::{
    Changes, Failure, Launch, LifecycleSettings, RunningServer, Seen, ServerGeneration, ServerKey, Spawn,
    state::{Answer, Effect, Entry, EpisodeNumber, Event, Now, Phase},
    wait::{First, Handle, HeldEntry, Panicked, ServerEntry, at_once, first, guarded},
};

/// What the manager and its tasks share.
pub(crate) struct Shared<L: Launch> {
    pub(crate) launch: L,
    pub(crate) settings: LifecycleSettings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Arc<dyn Spawn>,
    pub(crate) slots: Slots<ServerKey, ServerEntry<L::Server>>,
    /// Guards which entries stay visible although nobody works with them.
    pub(crate) kept: Mutex<Kept<L::Server>>,
    pub(crate) changes: Changes,
    /// Cancelled when nothing may be launched any more.
    pub(crate) open: CancellationToken,
    /// Spreads the jitter: it differs from process to process.
    pub(crate) spread: RandomState,
}

/// Entries that stay visible.
pub(crate) struct Kept<S> {
    entries: BTreeMap<ServerKey, HeldEntry<S>>,
    /// The newest generation of those that were forgotten. Whoever comes anew goes on from there, so that what
    /// somebody saw of a server that was forgotten since is not taken for its next process.
    forgotten: ServerGeneration,
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            forgotten: ServerGeneration::default(),
        }
    }
}

impl<L: Launch> Shared<L> {
    /// Takes an event in: read, decide, write under the generation that was read. Who is refused looks again, and
    /// that somebody else was faster means that somebody got on.
    pub(crate) fn apply(
        self: &Arc<Self>,
        held: &HeldEntry<L::Server>,
        event: &Event<Handle<L::Server>>,
    ) -> Answer<Handle<L::Server>> {
        let settings = self.launch.settings(held.key(), &self.settings);
        loop {
            let seen = held.read();
            let now = self.now(held.key(), seen.state.generation, &settings);
            let step = seen.state.step(event, now);
            if let Some(next) = step.next {
                let is_visible = next.since != seen.state.since || next.state() != seen.state.state();
                // Leases come and go with every question, and nobody waits for that: see `watch_idleness`.
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
                    tracing::debug!(server = %held.key(), ?event, "the server's state has changed");
                    self.changes.note();
                }
            }
            for effect in step.effects {
                self.carry_out(held, effect);
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
        let draw = self.spread.hash_one((key, generation)) >> 11;
        Now {
            time: self.clock.now(),
            settings,
            fraction: draw as f64 / (1_u64 << 53) as f64,
        }
    }

    fn carry_out(self: &Arc<Self>, held: &HeldEntry<L::Server>, effect: Effect<Handle<L::Server>>) {
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

    /// Launches, and tells the launch when nobody wants it any more. It is waited for in any case, since its
    /// process may live.
    async fn launch(self: Arc<Self>, held: HeldEntry<L::Server>, generation: ServerGeneration) {
        let token = self.open.child();
        let scope = token.scope();
        let result = if scope.is_cancelled() {
            // Closed since the wish was taken in; without the stop the failure could be retried.
            self.apply(&held, &Event::Stop { seen: Seen::Any });
            Err(Failure::new("the daemon is shutting down"))
        } else {
            let launching = guarded(self.launch.launch(held.key(), generation, &scope));
            let mut launching = pin!(launching);
            let mut unwanted =
                pin!(held.wait_until(|entry| !entry.wants_launch(generation), Deadline::never(), &scope));
            let launched = match first(&mut launching, &mut unwanted).await {
                First::One(launched) => launched,
                First::Other(_) => {
                    token.cancel(Cause::new("lifecycle", "the server is not wanted any more"));
                    launching.await
                }
            };
            launched.unwrap_or_else(|Panicked| Err(Failure::new("the launch panicked")))
        };
        let event = match result {
            Ok(server) => Event::Launched {
                generation,
                server: Handle(server),
            },
            Err(reason) => {
                tracing::warn!(server = %held.key(), %generation, %reason, "the server did not come up");
                Event::LaunchFailed {
                    generation,
                    reason: Arc::new(reason),
                }
            }
        };
        self.apply(&held, &event);
    }

    /// Watches one process: its end is reported, and its idleness.
    async fn watch(
        self: Arc<Self>,
        held: HeldEntry<L::Server>,
        generation: ServerGeneration,
        Handle(server): Handle<L::Server>,
    ) {
        let mut ended = pin!(guarded(server.ended()));
        let mut replaced = pin!(self.watch_idleness(&held, generation));
        if let First::One(reason) = first(&mut ended, &mut replaced).await {
            let reason = reason.unwrap_or_else(|Panicked| Failure::new("the watch over the server panicked"));
            tracing::warn!(server = %held.key(), %generation, %reason, "the server ended");
            let reason = Arc::new(reason);
            self.apply(&held, &Event::Ended { generation, reason });
        }
    }

    /// Reports when the process has been idle for long enough. Returns when it is not the current one any more.
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
            // A lease that comes and goes does not move the alarm: when it goes off, the state says whether it is time.
            // So nobody has to be woken by leases.
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
                // Whoever closes the manager stops the server as well.
                Err(WaitError::Cancelled { .. }) => return,
            }
        }
    }

    async fn stop(
        self: Arc<Self>,
        held: HeldEntry<L::Server>,
        generation: ServerGeneration,
        Handle(server): Handle<L::Server>,
    ) {
        if guarded(server.stop()).await.is_err() {
            // The last handle is dropped with this task, and a server that is dropped is killed.
            tracing::error!(server = %held.key(), %generation, "the stop panicked");
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

    /// Tells the entry of a server that has died, if nobody has noticed yet.
    pub(crate) fn bury_dead(self: &Arc<Self>, held: &HeldEntry<L::Server>) {
        let seen = held.read().state;
        if let Some((generation, server)) = seen.ready()
            && let Some(reason) = at_once(server.0.ended())
        {
            let reason = Arc::new(reason);
            self.apply(held, &Event::Ended { generation, reason });
        }
    }

    /// The entry of a key, which stays visible from now on. `None` if there are too many already.
    pub(crate) fn entry(&self, key: &ServerKey, limit: usize) -> Option<HeldEntry<L::Server>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = kept.entries.get(key) {
            return Some(held.clone());
        }
        let mut forgotten = Vec::new();
        if kept.entries.len() >= limit {
            // Whoever works with one of these holds it too, so that it only goes when nobody does.
            let rests = |_: &ServerKey, held: &mut HeldEntry<_>| held.read().state.is_forgettable();
            forgotten.extend(kept.entries.extract_if(.., rests));
            let newest = forgotten
                .iter()
                .map(|(_, held)| held.read().state.generation)
                .max();
            kept.forgotten = kept.forgotten.max(newest.unwrap_or_default());
        }
        let held = (kept.entries.len() < limit).then(|| {
            let held = self.slots.hold(key.clone(), Entry::new(kept.forgotten));
            kept.entries.insert(key.clone(), held.clone());
            held
        });
        drop(kept);
        drop(forgotten);
        held
    }
}
