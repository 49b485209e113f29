//! One slot per key, for as long as anybody uses it.
//!
//! Invariants:
//!
//! 1. The entries and their holder counts change only while the lock is held.
//! 2. An entry is there as long as its count is above zero; taking the last holder away and removing the entry
//!    is one step. A [`Held`] counts, and so does a wait that was started on one.
//! 3. Each entry starts at a generation beyond all of earlier entries of its key, so that a generation seen
//!    before an entry went away is never taken for one of its successor.
//!
//! The lock of a slot is never taken while the lock of the entries is held.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::{
    Deadline, Generation, Scope, Seen, Slot, Stale, WaitError, WaitUntil, block_on,
    sync::{Mutex, lock},
};

/// How many generations an entry may use before its successor's begin (invariant 3).
const GENERATIONS_OF_AN_ENTRY: u64 = 1 << 32;

/// A registry of slots. Clones are the same registry.
pub struct Slots<K: Ord + Clone, S> {
    shared: Arc<Mutex<Guarded<K, S>>>,
}

struct Guarded<K, S> {
    entries: BTreeMap<K, Counted<S>>,
    entries_made: u64,
}

struct Counted<S> {
    slot: Slot<S>,
    holders: usize,
}

impl<K: Ord + Clone, S> Slots<K, S> {
    /// A registry without entries.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Mutex::new(Guarded {
                entries: BTreeMap::new(),
                entries_made: 0,
            })),
        }
    }

    /// Holds the entry of a key, which starts in the given state if there is none.
    pub fn hold(&self, key: K, initial: S) -> Held<K, S> {
        let mut guarded = lock(&self.shared);
        let slot = if let Some(counted) = guarded.entries.get_mut(&key) {
            counted.holders += 1;
            counted.slot.clone()
        } else {
            let first = Generation::from_u64(guarded.entries_made * GENERATIONS_OF_AN_ENTRY + 1);
            guarded.entries_made += 1;
            let slot = Slot::starting_at(first, initial);
            guarded.entries.insert(
                key.clone(),
                Counted {
                    slot: slot.clone(),
                    holders: 1,
                },
            );
            slot
        };
        drop(guarded);
        Held {
            slots: self.clone(),
            key,
            slot,
        }
    }

    /// Holds the entry of a key, if there is one.
    pub fn find(&self, key: &K) -> Option<Held<K, S>> {
        let mut guarded = lock(&self.shared);
        let counted = guarded.entries.get_mut(key)?;
        counted.holders += 1;
        let slot = counted.slot.clone();
        drop(guarded);
        Some(Held {
            slots: self.clone(),
            key: key.clone(),
            slot,
        })
    }

    /// All entries and what state they are in, in the order of their keys. It answers at once.
    pub fn list(&self) -> Vec<(K, Seen<S>)> {
        let slots: Vec<_> = {
            let guarded = lock(&self.shared);
            guarded
                .entries
                .iter()
                .map(|(key, counted)| (key.clone(), counted.slot.clone()))
                .collect()
        };
        slots.into_iter().map(|(key, slot)| (key, slot.read())).collect()
    }

    /// Counts one holder out, and removes the entry with the last one (invariant 2).
    fn release(&self, key: &K) {
        let mut guarded = lock(&self.shared);
        let Some(counted) = guarded.entries.get_mut(key) else {
            return;
        };
        counted.holders -= 1;
        let unused = if counted.holders == 0 {
            guarded.entries.remove(key)
        } else {
            None
        };
        drop(guarded);
        drop(unused);
    }
}

/// One holder of an entry: as long as it lives, the entry is there. It is given back on drop.
pub struct Held<K: Ord + Clone, S> {
    slots: Slots<K, S>,
    key: K,
    slot: Slot<S>,
}

impl<K: Ord + Clone, S> Held<K, S> {
    /// The key of the entry.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// See [`Slot::read`].
    pub fn read(&self) -> Seen<S> {
        self.slot.read()
    }

    /// See [`Slot::transition`].
    pub fn transition(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.slot.transition(seen, next)
    }

    /// See [`Slot::transition_unnoticed`].
    pub fn transition_unnoticed(&self, seen: Generation, next: S) -> Result<Generation, Stale<S>>
    where
        S: fmt::Debug,
    {
        self.slot.transition_unnoticed(seen, next)
    }

    /// See [`Slot::wait_until`]. The wait holds the entry too. Cancel safety: as there.
    pub fn wait_until<P>(&self, predicate: P, deadline: Deadline, scope: &Scope) -> WaitUntil<S, P, Self>
    where
        P: FnMut(&S) -> bool + Unpin,
    {
        self.slot.wait_keeping(self.clone(), predicate, deadline, scope)
    }

    /// See [`Slot::wait_until_blocking`].
    pub fn wait_until_blocking<P>(
        &self,
        predicate: P,
        deadline: Deadline,
        scope: &Scope,
    ) -> Result<Seen<S>, WaitError<S>>
    where
        P: FnMut(&S) -> bool + Unpin,
        K: Unpin,
        S: fmt::Debug,
    {
        block_on(self.wait_until(predicate, deadline, scope))
    }
}

impl<K: Ord + Clone, S> Clone for Held<K, S> {
    fn clone(&self) -> Self {
        if let Some(counted) = lock(&self.slots.shared).entries.get_mut(&self.key) {
            counted.holders += 1;
        }
        Self {
            slots: self.slots.clone(),
            key: self.key.clone(),
            slot: self.slot.clone(),
        }
    }
}

impl<K: Ord + Clone, S> Drop for Held<K, S> {
    fn drop(&mut self) {
        self.slots.release(&self.key);
    }
}

impl<K: Ord + Clone, S> Clone for Slots<K, S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Ord + Clone, S> Default for Slots<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone + fmt::Debug, S: fmt::Debug> fmt::Debug for Slots<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.list()).finish()
    }
}

impl<K: Ord + Clone + fmt::Debug, S: fmt::Debug> fmt::Debug for Held<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Held")
            .field("key", &self.key)
            .field("slot", &self.slot)
            .finish()
    }
}
