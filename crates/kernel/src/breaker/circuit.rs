//! One circuit of a breaker, looked up once and used often.

use std::{fmt, sync::Arc};

use super::{
    CircuitBreaker, CircuitOpen, Permit,
    state::{Grant, Role, State},
};
use crate::{
    Generation,
    sync::{AtomicU64, Ordering},
};

/// A handle to the circuit of one name. The circuit isn't evicted while a handle exists. Clones refer to the same
/// circuit.
#[derive(Clone)]
pub struct Circuit {
    pub(super) core: Arc<Core>,
    pub(super) breaker: CircuitBreaker,
}

/// The part of a circuit that callers read without the lock.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) name: Arc<str>,
    /// The mirror of the state (invariant 2 of the module).
    word: AtomicU64,
}

/// Set while the circuit lets calls through.
const LETS_CALLS_THROUGH: u64 = 1;
/// Set while there are counted failures that a success would reset.
const COUNTS_FAILURES: u64 = 2;
const GENERATION_SHIFT: u32 = 2;

impl Core {
    pub(super) fn new(name: Arc<str>, state: &State) -> Self {
        Self {
            name,
            word: AtomicU64::new(word_of(state)),
        }
    }

    /// Updates the mirror. The caller holds the lock under which the state changed.
    pub(super) fn mirror(&self, state: &State) {
        self.word.store(word_of(state), Ordering::Release);
    }
}

fn word_of(state: &State) -> u64 {
    let mut word = state.generation().get() << GENERATION_SHIFT;
    if state.lets_calls_through() {
        word |= LETS_CALLS_THROUGH;
    }
    if state.counts_failures() {
        word |= COUNTS_FAILURES;
    }
    word
}

impl Circuit {
    /// The name of what the circuit protects.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Asks for permission to make a call.
    #[inline]
    pub fn acquire(&self) -> Result<Permit<&Self>, CircuitOpen> {
        let grant = self.grant()?;
        Ok(Permit::new(self, grant))
    }

    /// Like [`acquire`](Self::acquire), with a permit that owns its circuit.
    #[inline]
    pub fn acquire_owned(self) -> Result<Permit<Self>, CircuitOpen> {
        let grant = self.grant()?;
        Ok(Permit::new(self, grant))
    }

    #[inline]
    fn grant(&self) -> Result<Grant, CircuitOpen> {
        let word = self.core.word.load(Ordering::Acquire);
        if word & LETS_CALLS_THROUGH != 0 {
            let generation = Generation::from_u64(word >> GENERATION_SHIFT);
            return Ok(Grant {
                generation,
                role: Role::Call,
            });
        }
        self.breaker.acquire_slow(&self.core)
    }

    /// Whether a success in this generation changes nothing, so that it needn't be recorded.
    #[inline]
    pub(super) fn is_success_a_no_op(&self, generation: Generation) -> bool {
        let word = self.core.word.load(Ordering::Acquire);
        word == generation.get() << GENERATION_SHIFT | LETS_CALLS_THROUGH
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Circuit").field(&self.core.name).finish()
    }
}
