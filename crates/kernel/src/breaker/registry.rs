//! The circuits of a breaker by name, behind one lock.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    BreakerSettings, BreakerSettingsError, BreakerSnapshot, Circuit, CircuitOpen, CircuitSnapshot, Permit,
    StaleCircuit,
    circuit::Core,
    state::{CallOutcome, Grant, Now, State},
};
use crate::{
    Clock, Generation,
    random::Jitter,
    sync::{Mutex, lock},
};

/// Circuit breakers by name. An unknown name counts as closed. Clones refer to the same breaker.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use kernel::{BreakerSettings, CircuitBreaker, Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let settings = BreakerSettings { failure_threshold: 1, jitter: 0.0, ..BreakerSettings::default() };
/// let cooldown = settings.cooldown;
/// let breaker = CircuitBreaker::new(settings, Arc::clone(&clock) as Arc<dyn Clock>)?;
///
/// breaker.acquire("api.example.com")?.failure();
/// let refused = breaker.acquire("api.example.com").unwrap_err();
/// assert_eq!(refused.retry_after, Some(cooldown));
///
/// // After the cooldown, one call at a time goes through as a probe.
/// clock.advance(cooldown);
/// let probe = breaker.acquire("api.example.com")?;
/// assert!(probe.is_probe());
/// assert!(breaker.acquire("api.example.com").is_err());
/// probe.success();
/// assert!(!breaker.is_open("api.example.com"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CircuitBreaker {
    shared: Arc<BreakerShared>,
}

struct BreakerShared {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    guarded: Mutex<Guarded>,
}

struct Guarded {
    entries: BTreeMap<Arc<str>, Entry>,
    jitter: Jitter,
    /// Counts lookups, to find the least recently used entry.
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
            shared: Arc::new(BreakerShared {
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

    /// Asks for permission to make one call.
    pub fn acquire(&self, name: &str) -> Result<Permit<Circuit>, CircuitOpen> {
        self.circuit(name).acquire_owned()
    }

    /// Records the success of a call that had no permit, as if it had been let through now. If the circuit is
    /// open and its cooldown is over, the success closes it. Before that, or while a probe is running, the report
    /// is late.
    pub fn record_success(&self, name: &str) {
        self.change(name, |state, now| {
            state.report_without_permit(CallOutcome::Success, now)
        });
    }

    /// Records the failure of a call that had no permit, by the same rules.
    pub fn record_failure(&self, name: &str) {
        self.change_or_insert(name, |state, now| {
            state.report_without_permit(CallOutcome::Failure { retry_after: None }, now);
        });
    }

    /// Records a failure together with the time for which the server asked to be left alone.
    pub fn record_failure_retry_after(&self, name: &str, retry_after: Duration) {
        self.change_or_insert(name, |state, now| {
            state.report_without_permit(
                CallOutcome::Failure {
                    retry_after: Some(retry_after),
                },
                now,
            );
        });
    }

    /// Whether a call would be refused now. Asking doesn't start a probe: once the cooldown is over and no probe
    /// is running, the answer is no.
    pub fn is_open(&self, name: &str) -> bool {
        let now = self.now();
        let guarded = lock(&self.shared.guarded);
        guarded
            .entries
            .get(name)
            .is_some_and(|entry| entry.state.refusal(now).is_some())
    }

    /// Closes a circuit, forced or not. Reports of calls in flight become late. Returns whether the name was
    /// known.
    pub fn reset(&self, name: &str) -> bool {
        self.change(name, |state, _| state.reset()).is_some()
    }

    /// Closes a circuit if its generation is still the one that the caller saw.
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

    /// Closes all circuits in one step and returns how many there are.
    pub fn reset_all(&self) -> usize {
        let mut guarded = lock(&self.shared.guarded);
        for entry in guarded.entries.values_mut() {
            entry.state.reset();
            entry.core.mirror(&entry.state);
        }
        guarded.entries.len()
    }

    /// Opens a circuit until it is reset. Returns whether there was room to track the name.
    pub fn force_open(&self, name: &str) -> bool {
        self.change_or_insert(name, |state, _| state.force_open())
    }

    /// Keeps a circuit closed, whatever its calls report, until it is reset. Returns whether there was room to
    /// track the name.
    pub fn force_closed(&self, name: &str) -> bool {
        self.change_or_insert(name, |state, _| state.force_closed())
    }

    /// All circuits at one point in time.
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

    /// One circuit, if the name is known.
    pub fn get(&self, name: &str) -> Option<CircuitSnapshot> {
        let now = self.now();
        let guarded = lock(&self.shared.guarded);
        guarded
            .entries
            .get_key_value(name)
            .map(|(name, entry)| entry.state.snapshot(name, now))
    }

    #[cold]
    pub(super) fn acquire_slow(&self, core: &Arc<Core>) -> Result<Grant, CircuitOpen> {
        let granted = self.change_held(core, |state, now| state.acquire(now));
        // An untracked circuit lets all calls through, so its word never leads here.
        granted
            .unwrap_or(Err(None))
            .map_err(|retry_after| CircuitOpen { retry_after })
    }

    pub(super) fn report(&self, core: &Arc<Core>, generation: Generation, outcome: CallOutcome) {
        self.change_held(core, |state, now| state.report(generation, outcome, now));
    }

    pub(super) fn abandon(&self, core: &Arc<Core>, generation: Generation) {
        self.change_held(core, |state, now| state.abandon(generation, now.time));
    }

    /// Changes a circuit that somebody holds. Does nothing if it is untracked.
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

    /// Changes the circuit of a name, if the name is known.
    fn change<R>(&self, name: &str, change: impl FnOnce(&mut State, Now<'_>) -> R) -> Option<R> {
        let time = self.now();
        self.change_locked(&mut lock(&self.shared.guarded), name, time, change)
    }

    /// Changes the circuit of a name, adding it if there is room. Returns whether it is tracked.
    fn change_or_insert(&self, name: &str, change: impl FnOnce(&mut State, Now<'_>)) -> bool {
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
    /// The circuit of a name, added if necessary. If there is no room, the circuit is untracked.
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

    /// Evicts the least recently used entry, if one may be evicted (invariant 5 of the module).
    fn evict_one(&mut self) -> bool {
        let unused = self.entries.iter().filter(|(_, entry)| entry.is_evictable());
        let oldest = unused
            .min_by_key(|(_, entry)| entry.last_look_up)
            .map(|(name, _)| Arc::clone(name));
        oldest.is_some_and(|name| self.entries.remove(&name).is_some())
    }
}

impl Entry {
    fn is_evictable(&self) -> bool {
        self.state.is_idle() && Arc::strong_count(&self.core) == 1
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(formatter)
    }
}
