//! The circuits of a breaker by name, behind one lock.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BreakerSettings, BreakerSettingsError, BreakerSnapshot, Circuit, CircuitSnapshot, Open, Permit,
    StaleCircuit,
    circuit::Core,
    state::{Grant, Now, Outcome, State},
};
use crate::{
    Clock, Generation,
    random::Jitter,
    sync::{Mutex, lock},
};

/// Circuit breakers by name. A name that is not known is simply closed. Clones are the same breaker.
#[derive(Clone)]
pub struct CircuitBreaker {
    shared: Arc<Shared>,
}

struct Shared {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    guarded: Mutex<Guarded>,
}

/// What the one lock guards.
struct Guarded {
    entries: BTreeMap<Arc<str>, Entry>,
    jitter: Jitter,
    /// Counts look-ups, to tell which entry was not used for longest.
    look_ups: u64,
    untracked: u64,
}

struct Entry {
    core: Arc<Core>,
    state: State,
    last_look_up: u64,
}

impl CircuitBreaker {
    /// A breaker without circuits.
    pub fn new(settings: BreakerSettings, clock: Arc<dyn Clock>) -> Result<Self, BreakerSettingsError> {
        settings.check()?;
        let guarded = Guarded {
            entries: BTreeMap::new(),
            jitter: Jitter::from_system(),
            look_ups: 0,
            untracked: 0,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                settings,
                clock,
                guarded: Mutex::new(guarded),
            }),
        })
    }

    /// The circuit of a name, for callers that use it often.
    pub fn circuit(&self, name: &str) -> Circuit {
        let core = lock(&self.shared.guarded).look_up(name, self.shared.settings.max_names);
        Circuit {
            core,
            breaker: self.clone(),
        }
    }

    /// Lets a call through or refuses it.
    pub fn acquire(&self, name: &str) -> Result<Permit<Circuit>, Open> {
        self.circuit(name).acquire_owned()
    }

    /// Notes a success of a call that had no permit: it counts as if it had been let through now. In an open
    /// circuit whose cooldown is over it closes the circuit; before that, or while a probe is out, it is late.
    pub fn record_success(&self, name: &str) {
        self.change(name, |state, now| state.report_unasked(Outcome::Success, now));
    }

    /// Notes a failure of a call that had no permit, in the same way.
    pub fn record_failure(&self, name: &str) {
        self.change_or_make(name, |state, now| {
            state.report_unasked(Outcome::Failure { retry_after: None }, now);
        });
    }

    /// Notes a failure together with the time after which the server wants to be asked again.
    pub fn record_failure_retry_after(&self, name: &str, retry_after: Duration) {
        self.change_or_make(name, |state, now| {
            state.report_unasked(
                Outcome::Failure {
                    retry_after: Some(retry_after),
                },
                now,
            );
        });
    }

    /// Whether a call would be refused now. It claims nothing: when the cooldown is over and no probe is out,
    /// the answer is no.
    pub fn is_open(&self, name: &str) -> bool {
        let now = self.now();
        let guarded = lock(&self.shared.guarded);
        guarded
            .entries
            .get(name)
            .is_some_and(|entry| entry.state.refusal(now).is_some())
    }

    /// Closes a circuit, forced or not. Calls that are under way become late. Returns whether it was known.
    pub fn reset(&self, name: &str) -> bool {
        self.change(name, |state, _| state.reset()).is_some()
    }

    /// Closes a circuit if it is still in the generation that the caller saw.
    pub fn reset_if(&self, name: &str, seen: Generation) -> Result<Generation, StaleCircuit> {
        let reset = self.change(name, |state, now| {
            if state.generation() != seen {
                return Err(StaleCircuit::Moved(state.snapshot(&Arc::from(name), now.time)));
            }
            state.reset();
            Ok(state.generation())
        });
        reset.unwrap_or(Err(StaleCircuit::Unknown))
    }

    /// Closes all circuits in one step, and returns how many there are.
    pub fn reset_all(&self) -> usize {
        let mut guarded = lock(&self.shared.guarded);
        for entry in guarded.entries.values_mut() {
            entry.state.reset();
            entry.core.mirror(&entry.state);
        }
        guarded.entries.len()
    }

    /// Opens a circuit by hand, until it is reset. Returns whether there was room to track the name.
    pub fn force_open(&self, name: &str) -> bool {
        self.change_or_make(name, |state, _| state.force_open())
    }

    /// Closes a circuit by hand, whatever happens, until it is reset. Returns whether there was room to track
    /// the name.
    pub fn force_closed(&self, name: &str) -> bool {
        self.change_or_make(name, |state, _| state.force_closed())
    }

    /// All circuits at one moment.
    pub fn snapshot(&self) -> BreakerSnapshot {
        let now = self.now();
        let guarded = lock(&self.shared.guarded);
        let circuits = guarded
            .entries
            .iter()
            .map(|(name, entry)| entry.state.snapshot(name, now))
            .collect();
        BreakerSnapshot {
            circuits,
            untracked: guarded.untracked,
        }
    }

    /// One circuit, if it is known.
    pub fn get(&self, name: &str) -> Option<CircuitSnapshot> {
        let now = self.now();
        let guarded = lock(&self.shared.guarded);
        guarded
            .entries
            .get_key_value(name)
            .map(|(name, entry)| entry.state.snapshot(name, now))
    }

    #[cold]
    pub(super) fn acquire_slowly(&self, core: &Arc<Core>) -> Result<Grant, Open> {
        let granted = self.change_held(core, |state, now| state.acquire(now));
        // An untracked circuit lets all calls through, so its word never leads here.
        granted
            .unwrap_or(Err(None))
            .map_err(|retry_after| Open { retry_after })
    }

    pub(super) fn report(&self, core: &Arc<Core>, generation: Generation, outcome: Outcome) {
        self.change_held(core, |state, now| state.report(generation, outcome, now));
    }

    pub(super) fn abandon(&self, core: &Arc<Core>, generation: Generation) {
        self.change_held(core, |state, now| state.abandon(generation, now.time));
    }

    /// Changes the circuit that somebody holds, unless it is an untracked one.
    fn change_held<R>(&self, core: &Arc<Core>, change: impl FnOnce(&mut State, Now<'_>) -> R) -> Option<R> {
        let time = self.now();
        let mut guarded = lock(&self.shared.guarded);
        let is_tracked = guarded
            .entries
            .get(&core.name)
            .is_some_and(|entry| Arc::ptr_eq(&entry.core, core));
        if is_tracked {
            self.change_locked(&mut guarded, &core.name, time, change)
        } else {
            None
        }
    }

    /// Changes the circuit of a name, if it is known.
    fn change<R>(&self, name: &str, change: impl FnOnce(&mut State, Now<'_>) -> R) -> Option<R> {
        let time = self.now();
        self.change_locked(&mut lock(&self.shared.guarded), name, time, change)
    }

    /// Changes the circuit of a name, which is made if there is room. Returns whether there was.
    fn change_or_make(&self, name: &str, change: impl FnOnce(&mut State, Now<'_>)) -> bool {
        let time = self.now();
        let mut guarded = lock(&self.shared.guarded);
        guarded.look_up(name, self.shared.settings.max_names);
        self.change_locked(&mut guarded, name, time, change).is_some()
    }

    fn change_locked<R>(
        &self,
        guarded: &mut Guarded,
        name: &str,
        time: Instant,
        change: impl FnOnce(&mut State, Now<'_>) -> R,
    ) -> Option<R> {
        let entry = guarded.entries.get_mut(name)?;
        let fraction = guarded.jitter.next_fraction();
        let changed = change(
            &mut entry.state,
            Now {
                time,
                settings: &self.shared.settings,
                fraction,
            },
        );
        entry.core.mirror(&entry.state);
        Some(changed)
    }

    fn now(&self) -> Instant {
        self.shared.clock.now()
    }
}

impl Guarded {
    /// The circuit of a name, made if need be; an untracked one if there is no room.
    fn look_up(&mut self, name: &str, max_names: usize) -> Arc<Core> {
        self.look_ups += 1;
        if let Some(entry) = self.entries.get_mut(name) {
            entry.last_look_up = self.look_ups;
            return Arc::clone(&entry.core);
        }
        let name: Arc<str> = Arc::from(name);
        let state = State::new();
        let core = Arc::new(Core::new(Arc::clone(&name), &state));
        if self.entries.len() < max_names || self.evict_one() {
            let entry = Entry {
                core: Arc::clone(&core),
                state,
                last_look_up: self.look_ups,
            };
            self.entries.insert(name, entry);
        } else {
            self.untracked += 1;
        }
        core
    }

    /// Makes room by the entry that was not used for longest, if any may go (invariant 5 of the module).
    fn evict_one(&mut self) -> bool {
        let unused = self.entries.iter().filter(|(_, entry)| entry.may_go());
        let oldest = unused
            .min_by_key(|(_, entry)| entry.last_look_up)
            .map(|(name, _)| Arc::clone(name));
        oldest.is_some_and(|name| self.entries.remove(&name).is_some())
    }
}

impl Entry {
    fn may_go(&self) -> bool {
        self.state.is_idle() && Arc::strong_count(&self.core) == 1
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(formatter)
    }
}
